// Two states: a message is one number, the log-ratio of state 1 to state 0, and a table is reduced to one number too.
//
// Let h be half of p00 + p11 - p01 - p10, and a and b the average gain of state 1 at the source and at the target. The
// log-ratio that the source sends is b + u, where c is the source's cavity plus a, and
//
//   u = log (1 + e^(h+c)) / (e^h + e^c) = sign(h) sign(c) min(|h|, |c|) + log (1 + e^-|h+c|) / (1 + e^-|h-c|).
//
// Only u is stored; a and b are added to the node potentials once. LINEAR is the first form, with e^u, e^h and e^total
// stored: it takes a log and two reciprocals for an arc, and an exp for a node. LOGS is the second form, which never
// overflows, for tables of wide span. An infinite c (a forbidden state) gives +-h, as it should. In LINEAR, totals
// beyond FAR_TOTAL count as infinite; if no |h| or |u| exceeds NARROW_HALF, the error e^(2 * 17 - 52) is below float
// rounding.
#pragma once
#include "sweep.hpp"

enum class Form { LINEAR, LOGS, MAX, PRODUCT };  // PRODUCT is for three and more states only: ratio.hpp
template <class R> constexpr R NARROW_HALF = sizeof(R) == 4 ? R(17) : R(160);
template <class R> constexpr R FAR_TOTAL = sizeof(R) == 4 ? R(52) : R(360);

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

// Largest relative change of the two log-messages of an arc, -softplus(ratio) and -softplus(-ratio).
template <class R, bool MAX> INLINE Lanes<R> ratio_change(Lanes<R> before, Lanes<R> after) {
    Lanes<R> zero{}, size = magnitude<R>(after);
    if constexpr (MAX) {
        return larger<R>(magnitude<R>(larger<R>(after, zero) - larger<R>(before, zero)),
                         magnitude<R>(larger<R>(-after, zero) - larger<R>(-before, zero))) / relative_to<R>(size);
    }
    size += log(splat(R(1)) + exp_positive(-size));
    Lanes<R> one_way = magnitude<R>(softplus_difference<R>(after, before));
    return larger<R>(one_way, magnitude<R>(after - before) - one_way) / relative_to<R>(size);
}

// New totals become old ones, and new ones start again from the potentials in `base`.
template <class R, Form FORM> void advance_binary(R* totals, const R* base, int64_t first, int64_t last, int) {
    for (int64_t row = first; row < last; row += WIDTH<R>) {
        const int count = int(last - row < WIDTH<R> ? last - row : WIDTH<R>);
        Lanes<R> sum{};
        for (int l = 0; l < count; ++l) sum[l] = totals[(row + l) * 2 + 1];
        if constexpr (FORM == Form::LINEAR)
            sum = exp_positive(smaller<R>(larger<R>(sum, splat(-FAR_TOTAL<R>)), splat(FAR_TOTAL<R>)));
        for (int l = 0; l < count; ++l) totals[(row + l) * 2] = sum[l], totals[(row + l) * 2 + 1] = base[row + l];
    }
}

template <class R, Form FORM> void sweep_binary(const Sweep<R>& s, int64_t first, int64_t last) {
    constexpr int W = WIDTH<R>;
    constexpr bool MAX = FORM == Form::MAX, LINEAR = FORM == Form::LINEAR;
    constexpr auto sign = std::numeric_limits<typename IntegerOf<R>::type>::min();
    const Lanes<R> one = splat(R(1));
    R* new_totals = s.totals + 1;
    Lanes<R> most{}, bar = LINEAR ? one : Lanes<R>{};  // largest change, and the step of a ratio that may exceed it
    const bool beside = s.residual_step != 0;  // small graphs: the change in each lane is needed
    // One of the two log-messages changes by at least half of their ratio's step.
    const R surely = LINEAR ? exp_or_infinite(4 * s.widest * s.enough) : 4 * s.widest * s.enough;
    if (!(s.enough > 0)) most = bar = splat(INF<R>);
    for (int64_t block = first; block < last; ++block) {
        const uint32_t live = s.live[block];
        if (!live) continue;
        prefetch_totals(s, block, last);
        const int32_t *source = s.source + block * W, *target = s.target + block * W;
        R* messages = s.messages + block * 2 * W;
        const Lanes<R> half = load(s.tables + block * W);
        const Lanes<R> before[2] = {load(messages), load(messages + W)};
        const Lanes<R> total[2] = {gather_numbers(s.totals, source), gather_numbers(s.totals, target)};
        Lanes<R> said[2], inverse[2];
#pragma GCC unroll 2
        for (int side = 0; side < 2; ++side) {
            if constexpr (LINEAR) {
                inverse[1 - side] = reciprocal<R>(before[1 - side]);
                const Lanes<R> cavity = total[side] * inverse[1 - side];
                said[side] = (one + half * cavity) * reciprocal<R>(half + cavity);
            } else {
                const Lanes<R> cavity = total[side] - before[1 - side];
                said[side] = smaller<R>(magnitude<R>(half), magnitude<R>(cavity));
                said[side] = (Lanes<R>)((Mask<R>)said[side] ^ (((Mask<R>)half ^ (Mask<R>)cavity) & sign));
                if constexpr (!MAX) {
                    const Lanes<R> apart = exp_positive(-magnitude<R>(half - cavity));
                    said[side] += log((one + exp_positive(-magnitude<R>(half + cavity))) / (one + apart));
                }
            }
        }
        Lanes<R> logs[2];
        Mask<R> exceeds{}, surely_enough{};
        if (beside) most = Lanes<R>{}, bar = LINEAR ? one : Lanes<R>{};
#pragma GCC unroll 2
        for (int side = 0; side < 2; ++side) {
            logs[side] = LINEAR ? log(said[side]) : said[side];
            if (s.damping != 0) {
                const Lanes<R> old = LINEAR ? log(before[side]) : before[side];
                logs[side] = s.damping * old + (1 - s.damping) * logs[side];
                said[side] = LINEAR ? exp_positive(logs[side]) : logs[side];
            }
            if (live != ALL_LANES<R>) {
                said[side] = lanes_of<R>(live) ? said[side] : before[side];
                logs[side] = LINEAR ? log(said[side]) : said[side];
            }
            store(messages + side * W, said[side]);
            if constexpr (LINEAR) {
                const Lanes<R> step = said[side] * inverse[side];
                exceeds |= (step > bar) | (step * bar < one);
                if (beside) surely_enough |= (step > surely) | (step * surely < one);
            } else {
                const Lanes<R> step = magnitude<R>(said[side] - before[side]);
                exceeds |= step > bar;
                if (beside) surely_enough |= step > surely;
            }
        }
        // No log-message changes by more than its ratio, so most blocks cannot raise the largest change. Beside others, a
        // change that surely exceeds `enough` need not be computed.
        if (beside) exceeds &= ~surely_enough & lanes_of<R>(live);
        if (!any<R>(exceeds)) {
            if (beside) most = surely_enough ? splat(INF<R>) : Lanes<R>{};
        } else {
            for (int side = 0; side < 2; ++side) {
                const Lanes<R> bias = load(s.biases + (block * 2 + side) * W);
                const Lanes<R> old = LINEAR ? log(before[side]) : before[side];
                most = larger<R>(most, ratio_change<R, MAX>(old + bias, logs[side] + bias));
            }
            if (!beside) most = splat(reduce_max<R>(most));  // one graph: only the maximum counts
            bar = LINEAR ? exp_positive(most) : most;
            if (!beside && most[0] > s.enough) most = bar = splat(INF<R>);
        }
        if (beside) store(s.residual + block * s.residual_step, most);
        if (s.weights)
            for (int side = 0; side < 2; ++side) logs[side] *= load(s.weights + block * W);
        add_numbers(new_totals, target, logs[0]);
        add_numbers(new_totals, source, logs[1]);
    }
    if (!beside) store(s.residual, most);
}
