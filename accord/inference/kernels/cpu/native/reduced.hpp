// Three to eight states, one graph: tables are scaled so that their last row and column are 1, and stored without them.
//
// Every table is exp(a_i + b_j) times such a reduced table. With L the last state, a_i = p_iL - p_LL, b_j = p_Lj -
// p_LL, and the reduced table is p_ij - p_iL - p_Lj + p_LL. The factors that depend on one end only (biases) are added
// to the node potentials once, and messages are stored without them, so a sweep reads (states - 1)^2 numbers of a table
// instead of states^2. Biases are needed when messages are loaded and written, and in a sweep by the few blocks that
// may hold its largest change. There they are read from the input, so that they take no memory. This is safe if both
// the table and the reduced table span no more than NARROW: totals are the same as with whole tables, and sums stay
// below e^(2 NARROW).
#pragma once
#include "sweep.hpp"

constexpr int MAX_REDUCED = 8;  // states; with more, the last row and column are a small part of a table

// Tables of a block's edges are scattered in the input: prefetch all of them before the first is read.
template <class R> INLINE void prefetch_tables(const R* potentials, int states, const int32_t* edges) {
    const int64_t bytes = states * states * int64_t(sizeof(R));
    for (int l = 0; l < WIDTH<R>; ++l) {
        const char* table = (const char*)potentials + (edges[l] < 0 ? 0 : edges[l]) * bytes;
        for (int64_t line = 0; line < bytes; line += 64) __builtin_prefetch(table + line);
        __builtin_prefetch(table + bytes - 1);
    }
}

// b and a of a block: the biases of messages along and against its edges [2][states - 1][lanes]. Empty lanes get those
// of an arbitrary edge, which are not used.
template <class R> __attribute__((noinline)) void find_biases(const Sweep<R>& s, int64_t block, R* biases) {
    constexpr int W = WIDTH<R>;
    const int K = s.states, last = K - 1;
    const int32_t* edges = s.edges + block * W;
    R *along = biases, *against = biases + last * W;
    for (int l = 0; l < W; ++l) {
        const R* table = s.potentials + (edges[l] < 0 ? 0 : edges[l]) * int64_t(K * K);
        const R corner = table[K * K - 1];
        for (int k = 0; k < last; ++k) {
            along[k * W + l] = table[last * K + k] - corner;
            against[k * W + l] = table[k * K + last] - corner;
        }
    }
    if (!s.weights) return;
    for (int k = 0; k < 2 * last; ++k) store(biases + k * W, load(biases + k * W) / load(s.weights + block * W));
}

// Sums (or maxima) over the states of both ends, like `table_pass` for a whole table.
template <class R, int K, bool MAX>
INLINE void reduced_pass(const R* table, const Lanes<R>* near, const Lanes<R>* far, Lanes<R>* forward,
                         Lanes<R>* backward) {
    constexpr int W = WIDTH<R>, L = K - 1;
    forward[L] = near[L], backward[L] = far[L];
#pragma GCC unroll 8
    for (int k = 0; k < L; ++k) {
        forward[L] = MAX ? larger<R>(forward[L], near[k]) : forward[L] + near[k];
        backward[L] = MAX ? larger<R>(backward[L], far[k]) : backward[L] + far[k];
        forward[k] = near[L];
    }
#pragma GCC unroll 8
    for (int i = 0; i < L; ++i) {
        Lanes<R> back = far[L];
#pragma GCC unroll 8
        for (int j = 0; j < L; ++j) {
            const Lanes<R> value = load(table + (i * L + j) * W);
            if constexpr (MAX) {
                forward[j] = larger<R>(forward[j], value + near[i]);
                back = larger<R>(back, value + far[j]);
            } else {
                forward[j] += value * near[i];
                back += value * far[j];
            }
        }
        backward[i] = back;
    }
}
