// The two passes over a block of chains.
#pragma once
#include "tables.hpp"

template <class R> struct Room {  // of one thread
    Buffer<Lanes<R>> node, left, right, table, few;
    std::vector<double> sums;  // [tables, states, states] of the gradient
    void reserve(const Arguments& given, bool backward, bool own) {
        const int64_t count = given.length * given.states;
        node.reserve(count), few.reserve(2 * given.states);
        if (backward) left.reserve(count), right.reserve(count);
        if (own) table.reserve(given.states * given.states);
    }
};

// In LINEAR, potentials of one position become exp(potential - peak); elsewhere they stay logs. Returns the peak.
template <class R, int D> INLINE Lanes<R> prepare(Lanes<R>* node, int64_t states) {
    if constexpr (D != LINEAR) return Lanes<R>{};
    const Lanes<R> peak = larger<R>(largest<R>(node, states), splat(LOWEST<R>));
    for (int64_t k = 0; k < states; ++k) node[k] = exp_kept<R>(node[k] - peak);
    return peak;
}
// The smallest that is not 0.
template <class R> INLINE Lanes<R> least_of(const Lanes<R>* values, int64_t count) {
    Lanes<R> low = splat(INF<R>);
    for (int64_t k = 0; k < count; ++k) low = smaller<R>(low, values[k] > R(0) ? values[k] : splat(INF<R>));
    return low;
}
// to = a * b. False if a possible product in a live lane is too small for LINEAR.
template <class R, int D>
INLINE bool multiply(const Lanes<R>* a, const Lanes<R>* b, Lanes<R>* to, int64_t states, Mask<R> live) {
    Lanes<R> top = splat(NOTHING<R, D>), low = splat(INF<R>);
    for (int64_t k = 0; k < states; ++k) {
        const Lanes<R> product = times<R, D>(a[k], b[k]);
        if constexpr (D == LINEAR) {
            top = larger<R>(top, product);
            low = smaller<R>(low, ((a[k] > R(0)) & (b[k] > R(0))) ? product : splat(INF<R>));
        }
        to[k] = product;
    }
    if constexpr (D != LINEAR) return true;
    const Lanes<R> least = larger<R>(top, splat(SMALLEST_TOP<R>)) * SMALLEST<R>;
    return !any_above<R>(live ? least : Lanes<R>{}, low);
}

// Messages [longest, states] behind each position, its own potential included, scaled so that the largest is 1.
// False if numbers span too much for LINEAR. `total` is log Z, or the best score.
template <class R, int D, class Tables>
bool forward(const Block<R>& block, const Tables& tables, Room<R>& room, Lanes<R>* messages, double* total) {
    constexpr int W = WIDTH<R>;
    const int64_t states = block.given.states;
    Lanes<R> *node = room.node.get(), *sent = room.few.get();
    block.read_node(node);
    for (int l = 0; l < W; ++l) total[l] = 0;
    for (int64_t t = 0; t < block.longest; ++t) {
        const Mask<R> live = block.lasts_beyond(t);
        Lanes<R>*here = node + t * states, *to = messages + t * states, top{};
        const Lanes<R> peak = prepare<R, D>(here, states);
        if (t == 0) {
            for (int64_t k = 0; k < states; ++k) to[k] = here[k];
            if (D == LINEAR && any_above<R>(splat(SMALLEST<R>), least_of<R>(here, states))) return false;
        } else {
            typename Tables::Table table;
            if (!tables.template at<D>(block, t - 1, room.table.get(), table, top)) return false;
            pass<R, D, false>(messages + (t - 1) * states, table, states, sent);
            if (!multiply<R, D>(sent, here, to, states, live)) return false;
        }
        const Lanes<R> scale = rescale<R, D>(to, states);
        for (int l = 0; l < W; ++l)
            if (live[l]) total[l] += double(scale[l]) + double(peak[l]) + double(top[l]);
        const Mask<R> ends = live & ~block.lasts_beyond(t + 1);
        if (D != BEST && any<R>(ends)) {
            for (int64_t k = 0; k < states; ++k) sent[k] = splat(ONE<R, D>);
            Lanes<R> sum = total_of<R, D>(to, sent, states);
            if constexpr (D == LINEAR) sum = log_or_barred<R>(sum);
            for (int l = 0; l < W; ++l)
                if (ends[l]) total[l] += double(sum[l]);
        }
    }
    return true;
}

// sums[i, j] += table[i, j] * sum over steps and lanes of left[step, i] * right[step + 1, j], M x N entries at a time.
template <class R, int M, int N>
INLINE void add_some(const Lanes<R>* left, const Lanes<R>* right, int64_t states, int64_t steps, const R* table,
                     double* sums) {
    Lanes<R> sum[M][N] = {};
    for (int64_t t = 0; t < steps; ++t, left += states, right += states)
#pragma GCC unroll 4
        for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
            for (int n = 0; n < N; ++n) sum[m][n] += left[m] * right[n];
    for (int m = 0; m < M; ++m)
        for (int n = 0; n < N; ++n)
            sums[m * states + n] += double(table[m * states + n]) * double(sum_of<R>(sum[m][n]));
}
template <class R, int M>
void add_rows_of(const Lanes<R>* left, const Lanes<R>* right, int64_t states, int64_t steps, const R* table,
                 double* sums) {
    int64_t j = 0;
    for (; j + 4 <= states; j += 4) add_some<R, M, 4>(left, right + j, states, steps, table + j, sums + j);
    for (; j + 2 <= states; j += 2) add_some<R, M, 2>(left, right + j, states, steps, table + j, sums + j);
    if (j < states) add_some<R, M, 1>(left, right + j, states, steps, table + j, sums + j);
}
template <class R>
void add_pairs(const Lanes<R>* left, const Lanes<R>* right, int64_t states, int64_t steps, const R* table,
               double* sums) {
    int64_t i = 0;
    const auto at = [&](int64_t row) { return row * states; };
    for (; i + 4 <= states; i += 4)
        add_rows_of<R, 4>(left + i, right, states, steps, table + at(i), sums + at(i));
    for (; i + 2 <= states; i += 2)
        add_rows_of<R, 2>(left + i, right, states, steps, table + at(i), sums + at(i));
    if (i < states) add_rows_of<R, 1>(left + i, right, states, steps, table + at(i), sums + at(i));
}
