// Exact inference on batches of chains: forward pass, backward pass, and tracing of the best labels.
#include <numeric>
#include <stdexcept>
#include <system_error>
#include "backward.hpp"

enum Status { SOLVED, OUT_OF_MEMORY, NO_THREADS };

template <class R> struct Solver {
    static constexpr int W = WIDTH<R>;

    // Run `work(tables, block, room, item)` for every block of chains. The order of sums depends only on the number of
    // threads.
    template <class Work, class Finish>
    static int run(const Arguments& given, bool back, const Work& work, const Finish& finish) {
        try {
            if (given.own) return run_with(given, OwnTables<R>(given), back, work, finish);
            return run_with(given, SharedTables<R>(given), back, work, finish);
        } catch (const std::bad_alloc&) {
            return OUT_OF_MEMORY;
        } catch (const std::length_error&) {
            return OUT_OF_MEMORY;
        } catch (const std::system_error&) {
            return NO_THREADS;
        }
    }
    template <class Tables, class Work, class Finish>
    static int run_with(const Arguments& given, const Tables& tables, bool back, const Work& work,
                        const Finish& finish) {
        const int64_t items = Block<R>::items(given);
        const int threads = int(std::max<int64_t>(1, std::min(given.threads, items)));
        std::vector<Room<R>> rooms(threads);
        for (auto& room : rooms) {
            room.reserve(given, back, !Tables::SHARED);
            if constexpr (Tables::SHARED)
                if (back && given.edge_result) room.sums.resize(tables.count * given.states * given.states);
        }
        in_parallel(threads, [&](int rank) {
            for (int64_t item = rank; item < items; item += threads)
                work(tables, Block<R>(given, item), rooms[rank], item);
        });
        finish(rooms);
        return SOLVED;
    }

    static Lanes<R>* stored(const Arguments& given, int64_t item) {
        return (Lanes<R>*)given.messages + item * given.length * given.states;
    }

    static int run_forward(const Arguments& given) {
        if (given.lengths) {
            std::iota(given.order, given.order + given.chains, int64_t(0));
            std::stable_sort(given.order, given.order + given.chains,
                             [&](int64_t a, int64_t b) { return given.lengths[a] > given.lengths[b]; });
        }
        const auto work = [&](const auto& tables, const Block<R>& block, Room<R>& room, int64_t item) {
            Lanes<R>* to = stored(given, item);
            double total[W];
            int domain = given.best ? BEST : LINEAR;
            if (given.best) forward<R, BEST>(block, tables, room, to, total);
            else if (!forward<R, LINEAR>(block, tables, room, to, total)) {
                forward<R, LOGS>(block, tables, room, to, total);
                domain = LOGS;
            }
            given.domain[item] = int8_t(domain);
            for (int l = 0; l < block.used; ++l)
                ((R*)given.log_partition)[block.replica * given.chains + block.chain[l]] = R(total[l]);
        };
        return run(given, false, work, [](auto&) {});
    }

    static int run_backward(const Arguments& given) {
        const auto work = [&](const auto& tables, const Block<R>& block, Room<R>& room, int64_t item) {
            const int domain = given.domain[item];
            const Lanes<R>* behind = stored(given, item);
            if (domain == BEST) backward<R, BEST>(block, tables, room, behind);
            else if (domain == LOGS) backward<R, LOGS>(block, tables, room, behind);
            else if (!backward<R, LINEAR>(block, tables, room, behind)) {
                double total[W];
                forward<R, LOGS>(block, tables, room, room.left.get(), total);
                backward<R, LOGS>(block, tables, room, room.left.get());
            }
        };
        const auto finish = [&](auto& rooms) {
            if (given.own || !given.edge_result) return;
            for (size_t k = 0; k < rooms[0].sums.size(); ++k) {
                double total = 0;
                for (auto& room : rooms) total += room.sums[k];
                ((R*)given.edge_result)[k] = R(total);
            }
        };
        return run(given, true, work, finish);
    }

    // Labels from the messages of a BEST forward pass, from the last position to the first.
    static int run_trace(const Arguments& given) {
        using Whole = typename IntegerOf<R>::type;
        const int64_t states = given.states;
        const auto work = [&](const auto& tables, const Block<R>& block, Room<R>& room, int64_t item) {
            const Lanes<R>* messages = stored(given, item);
            Mask<R>* labels = (Mask<R>*)room.node.get();
            Mask<R> label{};
            for (int64_t t = block.longest - 1; t >= 0; --t) {
                const Mask<R> linked = block.lasts_beyond(t + 1);
                const bool any_linked = any<R>(linked);
                Lanes<R> best = splat(-INF<R>);
                Mask<R> which{};
                for (int64_t i = 0; i < states; ++i) {
                    Lanes<R> value = messages[t * states + i];
                    if (any_linked) value += linked ? tables.column(block, t, i, label) : Lanes<R>{};
                    const Mask<R> better = value > best;
                    best = better ? value : best;
                    which = better ? Whole(i) - Mask<R>{} : which;
                }
                labels[t] = label = which;
            }
            for (int l = 0; l < block.used; ++l) {
                int64_t* to = given.labels + (block.replica * given.chains + block.chain[l]) * given.length;
                for (int64_t t = 0; t < block.size[l]; ++t) to[t] = labels[t][l];
                std::fill(to + block.size[l], to + given.length, int64_t(-1));
            }
        };
        return run(given, false, work, [](auto&) {});
    }
};

extern "C" {
int accord_chains_lanes_float32() { return WIDTH<float>; }
int accord_chains_lanes_float64() { return WIDTH<double>; }
int accord_chains_forward_float32(const Arguments* given) { return Solver<float>::run_forward(*given); }
int accord_chains_forward_float64(const Arguments* given) { return Solver<double>::run_forward(*given); }
int accord_chains_backward_float32(const Arguments* given) { return Solver<float>::run_backward(*given); }
int accord_chains_backward_float64(const Arguments* given) { return Solver<double>::run_backward(*given); }
int accord_chains_trace_float32(const Arguments* given) { return Solver<float>::run_trace(*given); }
int accord_chains_trace_float64(const Arguments* given) { return Solver<double>::run_trace(*given); }
}
