// Memory and threads of the kernel.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <thread>
#include <vector>
#if defined(__linux__)
#include <sys/mman.h>
#endif
#if defined(__GLIBC__)
#include <malloc.h>
#endif

// Return freed memory to the system; by default glibc keeps blocks of less than 32 MB.
inline void return_freed(int64_t edges) {
#if defined(__GLIBC__)
    if (edges >= int64_t(1) << 18) malloc_trim(0);
#endif
}

// Memory that only grows, aligned for vectors, in huge pages if the system has them.
template <class T> class Buffer {
  public:
    T* reserve(int64_t count) {
        if (count > room) {
            constexpr size_t page = size_t(1) << 21;
            const size_t wanted = std::max<size_t>(count * sizeof(T), 64), unit = wanted >= 2 * page ? page : 64;
            const size_t bytes = (wanted + unit - 1) / unit * unit;
            release();
            held.reset(static_cast<T*>(std::aligned_alloc(unit, bytes)));
            if (!held) throw std::bad_alloc();
#if defined(__linux__)
            if (unit == page) madvise(held.get(), bytes, MADV_HUGEPAGE);
#endif
            room = count;
        }
        return held.get();
    }
    void release() { held.reset(), room = 0; }
    T* get() const { return held.get(); }

  private:
    struct Free {
        void operator()(T* pointer) const { std::free(pointer); }
    };
    std::unique_ptr<T, Free> held;
    int64_t room = 0;
};

// Lets threads wait for each other between rounds. Waits are short, so threads spin before they yield.
class Barrier {
  public:
    explicit Barrier(int size) : size(size) {}
    void wait() {
        const unsigned round = generation.load(std::memory_order_acquire);
        if (arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == size) {
            arrived.store(0, std::memory_order_relaxed);
            generation.fetch_add(1, std::memory_order_release);
            return;
        }
        for (int spins = 0; generation.load(std::memory_order_acquire) == round; ++spins)
            if (spins > 2000) std::this_thread::yield();
#if defined(__x86_64__)
            else __builtin_ia32_pause();
#endif
    }

  private:
    const int size;
    std::atomic<int> arrived{0};
    std::atomic<unsigned> generation{0};
};

struct Team {
    int rank = 0, size = 1;
    Barrier* barrier = nullptr;
    void wait() const {
        if (barrier) barrier->wait();
    }
    // This thread's share of 0..count.
    int64_t begin(int64_t count) const { return count * rank / size; }
    int64_t end(int64_t count) const { return count * (rank + 1) / size; }
};

// Run `work(rank)` on several threads; it must not throw. If a thread cannot be started, no thread works, and the error
// is thrown: work that waits at a barrier needs all of them.
template <class Work> void in_parallel(int threads, const Work& work) {
    enum { WAIT, WORK, LEAVE };
    std::atomic<int> order{threads > 1 ? WAIT : WORK};
    const auto follow = [&](int rank) {
        while (order.load(std::memory_order_acquire) == WAIT) std::this_thread::yield();
        if (order.load(std::memory_order_relaxed) == WORK) work(rank);
    };
    std::vector<std::thread> crew;
    try {
        crew.reserve(threads - 1);
        for (int rank = 1; rank < threads; ++rank) crew.emplace_back(follow, rank);
    } catch (...) {
        order.store(LEAVE, std::memory_order_release);
        for (auto& thread : crew) thread.join();
        throw;
    }
    order.store(WORK, std::memory_order_release);
    work(0);
    for (auto& thread : crew) thread.join();
}
