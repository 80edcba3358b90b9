// How messages pass a table, for a block of chains: lane l of every vector belongs to chain l.
//
// Three domains: LINEAR (sums of products, scaled so that the largest is 1), LOGS (the same in logs, for numbers that
// a scaled product cannot hold) and BEST (maxima of sums of logs).
#pragma once
#include "simd.hpp"

enum Domain { LINEAR, LOGS, BEST };

// Smallest scaled number that LINEAR keeps, and the smallest entry of its tables. Products of two of them are normal
// numbers, so a product is 0 only where a state is forbidden.
template <class R> constexpr R SMALLEST = sizeof(R) == 4 ? R(0x1p-60) : R(0x1p-500);
// The largest of several products may be so small before they are rescaled. exp_positive gives at least 2^-126 (2^-1022),
// so a potential that it cuts off is noticed.
template <class R> constexpr R SMALLEST_TOP = sizeof(R) == 4 ? R(0x1p-40) : R(0x1p-300);
template <class R> constexpr R WIDEST = sizeof(R) == 4 ? R(41.5) : R(346);  // nats: -log(SMALLEST)
template <class R> constexpr R LOWEST = std::numeric_limits<R>::lowest();

// exp(x) for x <= 0, and exactly 0 for -inf only.
template <class R> INLINE Lanes<R> exp_kept(Lanes<R> x) { return x > -INF<R> ? exp_positive(x) : Lanes<R>{}; }
template <class R> INLINE Lanes<R> inverse(Lanes<R> x) { return x > R(0) ? R(1) / x : Lanes<R>{}; }
template <class R> INLINE R sum_of(Lanes<R> x) {
    R total = 0;
    for (int l = 0; l < WIDTH<R>; ++l) total += x[l];
    return total;
}
// from[at[l]] in lane l.
template <class R> INLINE Lanes<R> gather_lanes(const R* from, Mask<R> at) {
#if defined(__AVX512F__)
    if constexpr (sizeof(R) == 4) return (Lanes<R>)_mm512_i32gather_ps((__m512i)at, from, 4);
    else return (Lanes<R>)_mm512_i64gather_pd((__m512i)at, from, 8);
#else
    Lanes<R> found;
    for (int l = 0; l < WIDTH<R>; ++l) found[l] = from[at[l]];
    return found;
#endif
}
template <class R, int D> INLINE Lanes<R> times(Lanes<R> a, Lanes<R> b) { return D == LINEAR ? a * b : a + b; }
template <class R, int D> constexpr R ONE = D == LINEAR ? R(1) : R(0);
template <class R, int D> constexpr R NOTHING = D == LINEAR ? R(0) : -INF<R>;

// A table that all lanes share, and one for each lane.
template <class R> struct Shared {
    const R* entries;
    INLINE Lanes<R> operator()(int64_t at) const { return splat(entries[at]); }
};
template <class R> struct Own {
    const Lanes<R>* entries;
    INLINE Lanes<R> operator()(int64_t at) const { return entries[at]; }
};

// N states of the receiver at a time: to[at + n] = sum over i of from[i] * table[i, at + n], or table[at + n, i] if BACK.
template <class R, int D, bool BACK, int N, class Table>
INLINE void pass_some(const Lanes<R>* from, const Table& table, int64_t states, int64_t at, Lanes<R>* to) {
    const auto entry = [&](int64_t i, int n) { return table(BACK ? (at + n) * states + i : i * states + at + n); };
    Lanes<R> sum[N];
    for (int n = 0; n < N; ++n) sum[n] = splat(NOTHING<R, D>);
    for (int64_t i = 0; i < states; ++i) {
        const Lanes<R> one = from[i];
#pragma GCC unroll 8
        for (int n = 0; n < N; ++n) {
            if constexpr (D == LINEAR) sum[n] += one * entry(i, n);
            else sum[n] = larger<R>(sum[n], one + entry(i, n));
        }
    }
    if constexpr (D == LOGS) {
        Lanes<R> peak[N], total[N];
        for (int n = 0; n < N; ++n) peak[n] = larger<R>(sum[n], splat(LOWEST<R>)), total[n] = Lanes<R>{};
        for (int64_t i = 0; i < states; ++i) {
            const Lanes<R> one = from[i];
            for (int n = 0; n < N; ++n) total[n] += exp<R>(one + entry(i, n) - peak[n]);
        }
        for (int n = 0; n < N; ++n) sum[n] = log_or_barred<R>(total[n]) + peak[n];
    }
    for (int n = 0; n < N; ++n) to[at + n] = sum[n];
}
template <class R, int D, bool BACK, class Table>
void pass(const Lanes<R>* from, const Table& table, int64_t states, Lanes<R>* to) {
    int64_t at = 0;
    for (; at + 8 <= states; at += 8) pass_some<R, D, BACK, 8>(from, table, states, at, to);
    for (; at + 4 <= states; at += 4) pass_some<R, D, BACK, 4>(from, table, states, at, to);
    if (at + 3 == states) return pass_some<R, D, BACK, 3>(from, table, states, at, to);
    if (at + 2 == states) return pass_some<R, D, BACK, 2>(from, table, states, at, to);
    if (at + 1 == states) pass_some<R, D, BACK, 1>(from, table, states, at, to);
}

// Largest of some values, and their total in the domain.
template <class R> INLINE Lanes<R> largest(const Lanes<R>* values, int64_t count) {
    Lanes<R> top = values[0];
    for (int64_t k = 1; k < count; ++k) top = larger<R>(top, values[k]);
    return top;
}
// Total of products a[k] * b[k].
template <class R, int D> INLINE Lanes<R> total_of(const Lanes<R>* a, const Lanes<R>* b, int64_t count) {
    Lanes<R> sum = splat(NOTHING<R, D>);
    for (int64_t k = 0; k < count; ++k) {
        if constexpr (D == LINEAR) sum += a[k] * b[k];
        else sum = larger<R>(sum, a[k] + b[k]);
    }
    if constexpr (D == LOGS) {
        const Lanes<R> peak = larger<R>(sum, splat(LOWEST<R>));
        sum = Lanes<R>{};
        for (int64_t k = 0; k < count; ++k) sum += exp<R>(a[k] + b[k] - peak);
        sum = log_or_barred<R>(sum) + peak;
    }
    return sum;
}
// Divide values by the largest, in the domain. Returns the log of the largest.
template <class R, int D> INLINE Lanes<R> rescale(Lanes<R>* values, int64_t count) {
    const Lanes<R> top = largest<R>(values, count);
    if constexpr (D == LINEAR) {
        const Lanes<R> factor = inverse<R>(top);
        for (int64_t k = 0; k < count; ++k) values[k] *= factor;
        return log_or_barred<R>(top);
    } else {
        const Lanes<R> peak = larger<R>(top, splat(LOWEST<R>));
        for (int64_t k = 0; k < count; ++k) values[k] -= peak;
        return top;
    }
}
