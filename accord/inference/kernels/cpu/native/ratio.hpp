// Three and more states: a message is stored relative to its last state, so it has one number fewer.
//
// In sum-product, messages are ratios, not logs. A cavity is then exp(total - max), which is the same for all arcs of a
// node and is computed once in a sweep, times a reciprocal. An arc takes states - 1 reciprocals and logs, and no exp.
// This is safe if tables span less than NARROW: with a table of span S a message spans at most S, so a total that
// underflows contributes less than e^(2 S - 87) of the sum it belongs to. In max-product, messages are differences of
// logs.
//
// With up to MAX_REDUCED states, logs and exps can be avoided altogether: if the beliefs of a node in two states can
// never differ by more than a factor e^FAR, a total is the product of ratios. A message differs between two states by
// at most the span of its table, so the spans around a node and its potentials give a bound.
//
//   messages [2][states - 1][lanes]
//   totals   [rows][2][padded]          old: exp(total - max) ("max": total) of the sweep before; new: sum of logs;
//                                       or both as products, relative to the last state
#pragma once
#include <algorithm>
#include <cmath>

#include "reduced.hpp"

// Numbers of states that are not known when compiled: up to ON_STACK, and more.
constexpr int SOME_STATES = 0, MANY_STATES = -1;
template <class R> constexpr R FAR = sizeof(R) == 4 ? R(50) : R(380);  // 8 e^(FAR + NARROW) is finite
template <class R> constexpr R UNUSED = sizeof(R) == 4 ? R(-1e30) : R(-1e300);  // total of a padding state

// ---- between sweeps -----------------------------------------------------------------------------------------------

template <class R, int H, int... L> INLINE Lanes<R> swap_lanes(Lanes<R> a, std::integer_sequence<int, L...>) {
    return __builtin_shufflevector(a, a, (L ^ H)...);
}
// Every lane becomes the largest of its group of N lanes.
template <class R, int N> INLINE Lanes<R> largest_of(Lanes<R> a) {
    if constexpr (N == 1) return a;
    else {
        const Lanes<R> b = largest_of<R, N / 2>(a);
        return larger<R>(b, swap_lanes<R, N / 2>(b, std::make_integer_sequence<int, WIDTH<R>>{}));
    }
}
// New totals become old ones, and new ones start again from the potentials in `base`. P: numbers in a row if known when
// compiled, or 0.
template <class R, int P, bool MAX>
void advance(R* totals, const R* base, int64_t first, int64_t last, int padded) {
    constexpr int W = WIDTH<R>;
    int64_t row = first;
    if constexpr (P > 0 && P < W) {
        constexpr int EACH = W / P;
        constexpr auto slices = std::make_integer_sequence<int, EACH>{};
        uint32_t places[W];
        for (int l = 0; l < W; ++l) places[l] = uint32_t(l / P * (2 * P * sizeof(R) / 8));  // of consecutive rows
        for (; row + EACH <= last; row += EACH) {
            R* to = totals + row * 2 * P;
            Lanes<R> sum = side_by_side<R, P, EACH>(to + P, places);
            if constexpr (!MAX) sum = exp_positive(sum - largest_of<R, P>(sum));
            store_slices<R, P>(to, 2 * P, sum, slices);
            store_slices<R, P>(to + P, 2 * P, load(base + row * P), slices);
        }
    }
    for (; row < last; ++row) {
        R *to = totals + row * 2 * padded, *sum = to + padded;
        R level = 0;
        if constexpr (!MAX) level = *std::max_element(sum, sum + padded);
        int k = 0;
        for (; k + W <= padded; k += W) {
            store(to + k, MAX ? load(sum + k) : exp_positive(load(sum + k) - level));
            store(sum + k, load(base + row * padded + k));
        }
        for (; k < padded; ++k) {
            to[k] = MAX ? sum[k] : exp_positive(splat<R>(sum[k] - level))[0];
            sum[k] = base[row * padded + k];
        }
    }
}

// Messages of a block, in rows of N numbers, that are still to be added to the new totals. They are added while the
// next block is computed, so that scattered memory accesses overlap with arithmetic.
template <class R, int N, bool PRODUCT> struct Pending {
    alignas(64) R rows[2][N * WIDTH<R>];
    alignas(64) uint32_t places[2][WIDTH<R>];
    bool filled = false;

    INLINE void put(int side, const uint32_t* where, Lanes<R>* columns) {
        store_rows<R, N>(rows[side], columns);
        store(places[side], load_as<Places<R>>(where));
        filled = true;
    }
    INLINE void add_to(R* totals) {
        if (!filled) return;
#pragma GCC unroll 2
        for (int side = 0; side < 2; ++side) add_rows<R, N, PRODUCT>(totals, places[side], rows[side]);
        filled = false;
    }
};

// ---- the sweep ----------------------------------------------------------------------------------------------------

// Damping mixes logs. Ratios need not be normalised afterwards.
template <class R, bool MAX> INLINE void damp(R damping, int rest, const R* before, Lanes<R>* said) {
    for (int k = 0; k < rest; ++k) {
        const Lanes<R> old = load(before + k * WIDTH<R>);
        if constexpr (MAX) said[k] = damping * old + (1 - damping) * said[k];
        else said[k] = exp_positive(damping * log(old) + (1 - damping) * log(said[k]));
    }
}

// Least magnitude of the smallest log-message: no state of a message can have less than all others.
template <class R, bool MAX> R least_size(int states) { return MAX ? R(1) : std::max(R(1), R(std::log(double(states)))); }

// Largest relative change of the log-messages of an arc, times `least_size`, as a factor ("max": as a difference).
// `before` and `after` are its ratios; `high` and `low` are the largest and smallest factor by which one of them, or the
// last state's 1, changed. If `biases` are given, the ratios are stored without them.
template <class R, bool MAX>
INLINE Lanes<R> largest_change(int rest, const R* before, const Lanes<R>* after, Lanes<R> high, Lanes<R> low,
                               const R* biases, R least) {
    constexpr int W = WIDTH<R>;
    Lanes<R> old_level = splat(R(!MAX)), new_level = old_level, lowest = old_level;
    for (int k = 0; k < rest; ++k) {
        Lanes<R> pair[2] = {load(before + k * W), after[k]};
        if (biases) {
            const Lanes<R> bias = load(biases + k * W);
            for (Lanes<R>& one : pair) one = MAX ? one + bias : one * exp_positive(bias);
        }
        old_level = MAX ? larger<R>(old_level, pair[0]) : old_level + pair[0];
        new_level = MAX ? larger<R>(new_level, pair[1]) : new_level + pair[1];
        lowest = smaller<R>(lowest, pair[1]);
    }
    if constexpr (MAX) {
        const Lanes<R> moved = larger<R>(high - (new_level - old_level), (new_level - old_level) - low);
        return moved / relative_to<R>(new_level - lowest);
    }
    const Lanes<R> scale = old_level * reciprocal<R>(new_level);
    const Lanes<R> moved = log(larger<R>(high * scale, reciprocal<R>(low * scale)));
    return exp_positive(moved * least / relative_to<R>(log(new_level * reciprocal<R>(lowest))));
}

template <class R, int K, bool MAX, bool REDUCED, bool PRODUCT>
void sweep_ratios(const Sweep<R>& given, int64_t first, int64_t last) {
    constexpr int W = WIDTH<R>, P = K > 0 ? pad(K) : 0, Q = K > 0 ? pad(K - 1) : 0;
    constexpr int ROOM = K > 0 ? P : K == SOME_STATES ? ON_STACK : 0;
    const Sweep<R> s = given;  // a copy that no store can alias, so that it stays in registers
    const int states = K > 0 ? K : s.states, rest = states - 1, padded = K > 0 ? P : s.padded;
    const int written = K > 0 ? Q : (rest + W - 1) / W * W;
    R* new_totals = s.totals + padded;
    const Lanes<R> none = splat(R(!MAX));  // no change
    const bool beside = s.residual_step != 0;  // small graphs: the change in each lane is needed
    const R least = least_size<R, MAX>(states);
    const R enough = MAX ? s.enough : exp_or_infinite(least * s.enough);
    const R surely = MAX ? 4 * s.widest * s.enough : exp_or_infinite(4 * s.widest * s.enough);
    Lanes<R> most = s.enough > 0 ? none : splat(INF<R>);
    constexpr bool SMALL = Q > 0 && Q < W;
    Pending<R, SMALL ? Q : 1, PRODUCT> pending;
    for (int64_t block = first; block < last; ++block) {
        const uint32_t live = s.live[block];
        if (!live) continue;
        prefetch_totals(s, block, last);
        R* messages = s.messages + block * 2 * rest * W;
        alignas(64) uint32_t places[2][W];
        find_rows<R, P>(s.target + block * W, s.stride, places[0]);
        find_rows<R, P>(s.source + block * W, s.stride, places[1]);

        // Cavity: remove the other end's own message, or its evidence would return to it. cavity[0] is the source's.
        Row<R, ROOM> cavity[2] = {{s, 0}, {s, 1}}, said[2] = {{s, 2}, {s, 3}}, inverse[2] = {{s, 4}, {s, 5}};
#pragma GCC unroll 2
        for (int side = 0; side < 2; ++side) {
            const R* heard = messages + (1 - side) * rest * W;
            gather_totals<R, P>(s.totals, padded, places[1 - side], cavity[side]);
#pragma GCC unroll 8
            for (int k = 0; k < rest; ++k) {
                if constexpr (MAX) cavity[side][k] -= load(heard + k * W);
                else {
                    inverse[1 - side][k] = reciprocal<R>(load(heard + k * W));
                    cavity[side][k] *= inverse[1 - side][k];
                }
            }
        }
        pending.add_to(new_totals);
        const R* table = s.tables + block * (REDUCED ? rest * rest : states * states) * W;
        if constexpr (REDUCED)
            reduced_pass<R, K, MAX>(table, cavity[0], cavity[1], said[0], said[1]);
        else
            table_pass<R, K, MAX>(states, table, cavity[0], cavity[1], said[0], said[1]);
#pragma GCC unroll 2
        for (int side = 0; side < 2; ++side) {
            const Lanes<R> level = MAX ? said[side][rest] : reciprocal<R>(said[side][rest]);
#pragma GCC unroll 8
            for (int k = 0; k < rest; ++k) said[side][k] = MAX ? said[side][k] - level : said[side][k] * level;
        }
        if (s.damping != 0)
            for (int side = 0; side < 2; ++side) damp<R, MAX>(s.damping, rest, messages + side * rest * W, said[side]);
        if (live != ALL_LANES<R>) {
            const Mask<R> change = lanes_of<R>(live);
            for (int side = 0; side < 2; ++side)
                for (int k = 0; k < rest; ++k)
                    said[side][k] = change ? said[side][k] : load(messages + (side * rest + k) * W);
        }

        if (beside ? s.enough > 0 : most[0] < INF<R>) {
            Lanes<R> high[2] = {none, none}, low[2] = {none, none}, above[2];
            if (beside) most = none;
#pragma GCC unroll 2
            for (int side = 0; side < 2; ++side) {
#pragma GCC unroll 8
                for (int k = 0; k < rest; ++k) {
                    const Lanes<R> step = MAX ? said[side][k] - load(messages + (side * rest + k) * W)
                                              : said[side][k] * inverse[side][k];
                    high[side] = larger<R>(high[side], step), low[side] = smaller<R>(low[side], step);
                }
                above[side] = MAX ? high[side] - low[side] - most : high[side] - low[side] * most;
            }
            // No log-message changes by more than high / low ("max": high - low), and none is smaller than `least`: most
            // blocks cannot raise the maximum.
            const Lanes<R> raised = larger<R>(above[0], above[1]);
            bool look = any_above<R>(raised, Lanes<R>{});
            if (beside) {
                // The largest change is at least half of that: if a quarter already exceeds `enough`, whatever it is
                // relative to, it need not be computed.
                const auto beyond = [&](int side) {
                    return MAX ? high[side] - low[side] - surely : high[side] - low[side] * surely;
                };
                const Mask<R> surely_enough = larger<R>(beyond(0), beyond(1)) > R(0);
                look = look && any<R>((raised > R(0)) & ~surely_enough & lanes_of<R>(live));
                if (!look) store(s.residual + block * W, surely_enough ? splat(INF<R>) : Lanes<R>{});
            }
            if (look) {
                alignas(64) R biases[REDUCED ? 2 * (K - 1) * W : 1];
                if constexpr (REDUCED) {
                    prefetch_tables(given.potentials, K, given.edges + block * W);
                    find_biases(given, block, biases);
                }
                for (int side = 0; side < 2; ++side) {
                    const int64_t at = side * rest * W;
                    const R *before = messages + at, *bias = REDUCED ? biases + at : nullptr;
                    most = larger<R>(
                        most, largest_change<R, MAX>(rest, before, said[side], high[side], low[side], bias, least));
                }
                if (beside) {
                    store(s.residual + block * W, MAX ? most : log(most) / least);
                } else {  // one graph: only the maximum is needed, and only until it exceeds `enough`
                    const R found = reduce_max<R>(most);
                    most = splat(found > enough ? INF<R> : found);
                }
            }
        }

#pragma GCC unroll 2
        for (int side = 0; side < 2; ++side)
#pragma GCC unroll 8
            for (int k = 0; k < rest; ++k) {
                store(messages + (side * rest + k) * W, said[side][k]);
                if constexpr (!MAX && !PRODUCT) said[side][k] = log(said[side][k]);
            }
        if (s.weights) {
            const Lanes<R> weight = load(s.weights + block * W);
            for (int side = 0; side < 2; ++side)
                for (int k = 0; k < rest; ++k) said[side][k] *= weight;
        }
#pragma GCC unroll 2
        for (int side = 0; side < 2; ++side) {
            for (int k = rest; k < written; ++k) said[side][k] = splat(R(PRODUCT));
            if constexpr (SMALL) pending.put(side, places[side], said[side]);
            else add_totals<R, PRODUCT>(new_totals, written, places[side], said[side]);
        }
    }
    pending.add_to(new_totals);
    if (!beside) store(s.residual, MAX ? most : log(most) / least);
}
