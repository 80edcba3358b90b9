// Time as an amount of work, and random numbers.
#pragma once
#include <chrono>
#include <cstdint>

namespace search {

// Time as an amount of work, about a nanosecond for each operation. What is tried in which order depends on it alone, so a
// search that ends before the real time is up gives the same result on every machine.
class Clock {
  public:
    explicit Clock(double budget, const volatile int32_t* stop = nullptr) : budget_(budget), stop_(stop) {}
    void add(double operations) const { work_ += operations; }
    double seconds() const { return 1e-9 * work_; }
    // From 0 again: what follows does not depend on what came before, to the last bit.
    void restart() const { work_ = 0; }
    double elapsed() const {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
    }
    bool late() const { return late_ || (late_ = elapsed() > budget_ || (stop_ && *stop_)); }
    bool past(double deadline) const { return seconds() > deadline || late(); }

  private:
    std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
    double budget_;
    const volatile int32_t* stop_;  // set by another thread: the caller was interrupted
    mutable double work_ = 0;
    mutable bool late_ = false;
};

// xoshiro256++ (Blackman and Vigna 2019).
struct Random {
    uint64_t s[4];
    explicit Random(uint64_t seed) {
        for (auto& word : s) {
            uint64_t z = (seed += 0x9E3779B97F4A7C15ull);
            z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
            z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
            word = z ^ (z >> 31);
        }
    }
    static uint64_t turn(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
    uint64_t next() {
        const uint64_t result = turn(s[0] + s[3], 23) + s[0], t = s[1] << 17;
        s[2] ^= s[0], s[3] ^= s[1], s[1] ^= s[2], s[0] ^= s[3], s[2] ^= t, s[3] = turn(s[3], 45);
        return result;
    }
    uint32_t below(uint32_t n) { return uint32_t((uint64_t(uint32_t(next() >> 32)) * n) >> 32); }
    double uniform() { return double(next() >> 11) * 0x1p-53; }
};

}  // namespace search
