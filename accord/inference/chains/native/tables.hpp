// Tables ready for use: those that chains share are prepared once, those of single chains when a block needs them.
#pragma once
#include <vector>
#include "block.hpp"

// Scale a table for LINEAR: exp(table - peak) in place. False if it spans too much for that.
template <class R> bool exponentiate(const Lanes<R>* from, int64_t count, Lanes<R>* to, Lanes<R>& peak) {
    peak = larger<R>(largest<R>(from, count), splat(LOWEST<R>));
    Lanes<R> low = peak;
    for (int64_t k = 0; k < count; ++k) {
        low = smaller<R>(low, from[k] > -INF<R> ? from[k] : peak);
        to[k] = exp_kept<R>(from[k] - peak);
    }
    return !any_above<R>(peak - low, splat(WIDEST<R>));
}

template <class R> struct SharedTables {
    static constexpr bool SHARED = true;
    std::vector<R> linear, peak;
    std::vector<char> safe;
    const Arguments& given;
    int64_t table, per_step, steps, count;

    explicit SharedTables(const Arguments& given) : given(given), table(given.states * given.states) {
        per_step = given.edge_step ? 1 : 0;
        steps = per_step ? given.length - 1 : 1;
        count = steps * (given.edge_replica ? given.replicas : 1);
        if (given.length < 2) count = 0;
        if (given.best || !count) return;
        linear.resize(count * table), peak.resize(count), safe.resize(count);
        constexpr int W = WIDTH<R>;
        for (int64_t number = 0; number < count; ++number) {
            const R* from = raw(number);
            R top = LOWEST<R>, low = INF<R>;
            for (int64_t k = 0; k < table; ++k) {
                top = std::max(top, from[k]);
                if (from[k] > -INF<R>) low = std::min(low, from[k]);
            }
            for (int64_t k = 0; k < table; k += W) {
                const int some = int(std::min<int64_t>(W, table - k));
                const Lanes<R> values = exp_kept<R>(load_first(from + k, some) - top);
                __builtin_memcpy(&linear[number * table + k], &values, some * sizeof(R));
            }
            peak[number] = top, safe[number] = !(top - low > WIDEST<R>);
        }
    }
    int64_t number(int64_t replica, int64_t step) const {
        return (given.edge_replica ? replica * steps : 0) + per_step * step;
    }
    const R* raw(int64_t number) const {
        return (const R*)given.edge + number / steps * given.edge_replica + number % steps * given.edge_step;
    }
    template <int D> bool at(const Block<R>& block, int64_t step, Lanes<R>*, Shared<R>& out, Lanes<R>& top) const {
        const int64_t which = number(block.replica, step);
        out.entries = D == LINEAR ? &linear[which * table] : raw(which);
        top = splat(D == LINEAR ? peak[which] : R(0));
        return D != LINEAR || safe[which];
    }
    // Entries (i, label) of all lanes at a step.
    INLINE Lanes<R> column(const Block<R>& block, int64_t step, int64_t i, Mask<R> label) const {
        return gather_lanes<R>(raw(number(block.replica, step)) + i * given.states, label);
    }
    using Table = Shared<R>;
};

template <class R> struct OwnTables {
    static constexpr bool SHARED = false;
    const Arguments& given;
    explicit OwnTables(const Arguments& given) : given(given) {}
    template <int D> bool at(const Block<R>& block, int64_t step, Lanes<R>* room, Own<R>& out, Lanes<R>& top) const {
        block.read_tables(step, room);
        out.entries = room;
        top = Lanes<R>{};
        return D != LINEAR || exponentiate<R>(room, given.states * given.states, room, top);
    }
    INLINE Lanes<R> column(const Block<R>& block, int64_t step, int64_t i, Mask<R> label) const {
        Lanes<R> found;
        for (int l = 0; l < WIDTH<R>; ++l) found[l] = block.table(step, l)[i * given.states + label[l]];
        return found;
    }
    using Table = Own<R>;
};
