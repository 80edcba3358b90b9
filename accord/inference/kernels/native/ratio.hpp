// Two states: a message is one number, the log-ratio of state 1 to state 0, and so is a table.
//
// With h half of p00 + p11 - p01 - p10, and a and b what state 1 gains on average at the source and at the target, the
// log-ratio that the source sends is b + u, where c is the source's cavity with a taken in and
//
//   u = log (1 + e^(h+c)) / (e^h + e^c) = sign(h) sign(c) log (1 + A B) / (A + B),   A = e^-|h|, B = e^-|c|
//     = sign(h) sign(c) min(|h|, |c|) + log (1 + e^-|h+c|) / (1 + e^-|h-c|).
//
// Only u is stored, and a and b go into the node potentials once. The first form costs one exp and one log, with A
// stored in place of h; the second never underflows and is used where tables are wide. Infinite c (a forbidden state)
// gives +-h in both, as it should.
#pragma once
#include "sweep.hpp"

template <class R> INLINE Lanes<R> gather_numbers(const R* from, const int32_t* rows) {
#if defined(__AVX512F__)
    if constexpr (sizeof(R) == 4)
        return (Lanes<R>)_mm512_i32gather_ps(_mm512_loadu_si512(rows), from, 8);
    else
        return (Lanes<R>)_mm512_i32gather_pd(_mm256_slli_epi32(_mm256_loadu_si256((const __m256i*)rows), 1), from, 8);
#else
    Lanes<R> out{};
    for (int l = 0; l < WIDTH<R>; ++l) out[l] = from[int64_t(rows[l]) * 2];
    return out;
#endif
}
template <class R> INLINE void add_numbers(R* to, const int32_t* rows, Lanes<R> values) {
    alignas(64) R each[WIDTH<R>];
    store(each, values);
#pragma GCC unroll 16
    for (int l = 0; l < WIDTH<R>; ++l) to[int64_t(rows[l]) * 2] += each[l];
}

// softplus(a) - softplus(b), for any a and b.
template <class R> INLINE Lanes<R> softplus_difference(Lanes<R> a, Lanes<R> b) {
    const Lanes<R> zero{}, one = splat(R(1)), rest = one + exp_positive(-magnitude<R>(b));
    return larger<R>(a, zero) - larger<R>(b, zero) + log((one + exp_positive(-magnitude<R>(a))) / rest);
}

// Largest change of the two log-messages -softplus(ratio) and -softplus(-ratio) of an arc.
template <class R, bool MAX> INLINE Lanes<R> ratio_change(Lanes<R> before, Lanes<R> after) {
    if constexpr (MAX) {
        Lanes<R> zero{};
        return larger<R>(magnitude<R>(larger<R>(after, zero) - larger<R>(before, zero)),
                         magnitude<R>(larger<R>(-after, zero) - larger<R>(-before, zero)));
    }
    Lanes<R> one_way = magnitude<R>(softplus_difference<R>(after, before));
    return larger<R>(one_way, magnitude<R>(after - before) - one_way);
}

template <class R, bool MAX> void sweep_ratios(const Sweep<R>& s, int64_t first, int64_t last, int parity) {
    constexpr int W = WIDTH<R>;
    constexpr auto sign = std::numeric_limits<typename IntegerOf<R>::type>::min();
    const R* old_totals = s.totals + parity;
    R* new_totals = s.totals + (1 - parity);
    for (int64_t block = first; block < last; ++block) {
        const uint32_t live = s.live[block];
        if (!live) continue;
        prefetch_totals(s, block, last);
        const int32_t *source = s.source + block * W, *target = s.target + block * W;
        R* messages = s.messages + block * 2 * W;
        const Lanes<R> half = load(s.tables + block * W);
        const Lanes<R> before[2] = {load(messages), load(messages + W)};
        const Lanes<R> cavity[2] = {gather_numbers(old_totals, source) - before[1],
                                    gather_numbers(old_totals, target) - before[0]};
        Lanes<R> said[2];
        const Lanes<R> one = splat(R(1));
        if (MAX || s.in_logs[block]) {
            for (int side = 0; side < 2; ++side) {
                const Lanes<R> c = cavity[side];
                said[side] = smaller<R>(magnitude<R>(half), magnitude<R>(c));
                said[side] = (Lanes<R>)((Mask<R>)said[side] ^ (((Mask<R>)half ^ (Mask<R>)c) & sign));
                if constexpr (!MAX) {
                    const Lanes<R> apart = exp_positive(-magnitude<R>(half - c));
                    said[side] += log((one + exp_positive(-magnitude<R>(half + c))) / (one + apart));
                }
            }
        } else {
#pragma GCC unroll 2
            for (int side = 0; side < 2; ++side) {
                const Lanes<R> far = exp_positive(-magnitude<R>(cavity[side])), near = magnitude<R>(half);
                const Lanes<R> size = log((one + near * far) / (near + far));
                said[side] = (Lanes<R>)((Mask<R>)size ^ (((Mask<R>)half ^ (Mask<R>)cavity[side]) & sign));
            }
        }
        R* residual = s.residual + block * s.residual_step;
        Lanes<R> most = load(residual), most_of_ratio{};
#pragma GCC unroll 2
        for (int side = 0; side < 2; ++side) {
            if (s.damping != 0) said[side] = s.damping * before[side] + (1 - s.damping) * said[side];
            if (live != ALL_LANES<R>) said[side] = lanes_of<R>(live) ? said[side] : before[side];
            store(messages + side * W, said[side]);
            most_of_ratio = larger<R>(most_of_ratio, magnitude<R>(said[side] - before[side]));
        }
        // No log-message moves by more than its ratio, so most blocks cannot raise the largest change.
        if (any<R>(most_of_ratio > most)) {
            for (int side = 0; side < 2; ++side) {
                const Lanes<R> bias = load(s.biases + (block * 2 + side) * W);
                most = larger<R>(most, ratio_change<R, MAX>(before[side] + bias, said[side] + bias));
            }
            if (s.residual_step == 0) most = splat(reduce_max<R>(most));  // one graph: only the maximum counts
            store(residual, most);
        }
        if (s.weights)
            for (int side = 0; side < 2; ++side) said[side] *= load(s.weights + block * W);
        add_numbers(new_totals, target, said[0]);
        add_numbers(new_totals, source, said[1]);
    }
}
