// Vectors as wide as the machine's registers, their exp and log, and transposition of rows and columns.
//
// Written with vector extensions that gcc and clang share, so that they work on any CPU. Lane l of every vector belongs
// to edge l of a block.
#pragma once
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#define INLINE inline __attribute__((always_inline))

template <class R, int N> struct VectorOf { typedef R type __attribute__((vector_size(N * sizeof(R)))); };
template <class R, int N> using Vec = typename VectorOf<R, N>::type;
#if defined(__AVX512F__)
constexpr int REGISTER_BYTES = 64;
#elif defined(__AVX__)
constexpr int REGISTER_BYTES = 32;
#else
constexpr int REGISTER_BYTES = 16;
#endif
template <class R> constexpr int WIDTH = REGISTER_BYTES / sizeof(R);
template <class R> using Lanes = Vec<R, WIDTH<R>>;
template <class R> struct IntegerOf;
template <> struct IntegerOf<float> { using type = int32_t; };
template <> struct IntegerOf<double> { using type = int64_t; };
template <class R> using Mask = Vec<typename IntegerOf<R>::type, WIDTH<R>>;  // -1 or 0 in each lane
template <class R> using Bits = Vec<std::make_unsigned_t<typename IntegerOf<R>::type>, WIDTH<R>>;  // wraps, unlike Mask
template <class R> constexpr R INF = std::numeric_limits<R>::infinity();

// ---- loads, stores, masks -----------------------------------------------------------------------------------------

template <class V, class R> INLINE V load_as(const R* from) {
    V value;
    __builtin_memcpy(&value, from, sizeof value);
    return value;
}
template <class R> INLINE Lanes<R> load(const R* from) { return load_as<Lanes<R>>(from); }
template <class V, class R> INLINE void store(R* to, V value) { __builtin_memcpy(to, &value, sizeof value); }
template <class R> INLINE Lanes<R> splat(R value) { return value - Lanes<R>{}; }

template <class R> INLINE Lanes<R> larger(Lanes<R> a, Lanes<R> b) {
#if defined(__AVX512F__)
    // The hardware has one instruction for what would be a comparison and a blend.
    if constexpr (sizeof(R) == 4) return (Lanes<R>)_mm512_max_ps((__m512)a, (__m512)b);
    else return (Lanes<R>)_mm512_max_pd((__m512d)a, (__m512d)b);
#else
    return a > b ? a : b;
#endif
}
template <class R> INLINE Lanes<R> smaller(Lanes<R> a, Lanes<R> b) {
#if defined(__AVX512F__)
    if constexpr (sizeof(R) == 4) return (Lanes<R>)_mm512_min_ps((__m512)a, (__m512)b);
    else return (Lanes<R>)_mm512_min_pd((__m512d)a, (__m512d)b);
#else
    return a < b ? a : b;
#endif
}
template <class R> INLINE Lanes<R> magnitude(Lanes<R> a) {
    constexpr auto sign = std::numeric_limits<typename IntegerOf<R>::type>::min();
    return (Lanes<R>)((Mask<R>)a & ~(sign - Mask<R>{}));
}
template <class R> INLINE bool any(Mask<R> mask) {
#if defined(__AVX512F__)
    return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) != 0;
#else
    typename IntegerOf<R>::type found = 0;
    for (int l = 0; l < WIDTH<R>; ++l) found |= mask[l];
    return found != 0;
#endif
}
template <class R> INLINE bool any_above(Lanes<R> a, Lanes<R> b) {
#if defined(__AVX512F__)
    if constexpr (sizeof(R) == 4) return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_GT_OQ) != 0;
    else return _mm512_cmp_pd_mask((__m512d)a, (__m512d)b, _CMP_GT_OQ) != 0;
#else
    return any<R>(a > b);
#endif
}
template <class R> INLINE R reduce_max(Lanes<R> a) {
    R best = a[0];
    for (int l = 1; l < WIDTH<R>; ++l) best = a[l] > best ? a[l] : best;
    return best;
}
// 1 / x, accurate to the last bit or two.
template <class R> INLINE Lanes<R> reciprocal(Lanes<R> x) {
#if defined(__AVX512F__)
    if constexpr (sizeof(R) == 4) {
        const Lanes<R> guess = (Lanes<R>)_mm512_rcp14_ps((__m512)x);  // 14 bits; a Newton step doubles them
        return guess * (R(2) - x * guess);
    }
#endif
    return R(1) / x;
}
// Mask of the lanes whose bit is set.
template <class R, int... L> INLINE Mask<R> lanes_of(uint32_t bits, std::integer_sequence<int, L...>) {
    using I = typename IntegerOf<R>::type;
    const Mask<R> bit = {(I(1) << L)...};
    return ((I(bits) - Mask<R>{}) & bit) != 0;
}
template <class R> INLINE Mask<R> lanes_of(uint32_t bits) {
    return lanes_of<R>(bits, std::make_integer_sequence<int, WIDTH<R>>{});
}
template <class R> constexpr uint32_t ALL_LANES = (1u << WIDTH<R>) - 1;

// ---- exp and log --------------------------------------------------------------------------------------------------

// exp(x) for x <= 0, but never less than about the smallest normal number: next to larger terms of a sum, that is as
// good as 0. x = n log 2 + r with |r| <= log(2)/2.
INLINE Lanes<float> exp_positive(Lanes<float> x) {
    const float shift = 12582912.0f;  // adding 1.5 * 2^23 rounds to a whole number
    const Lanes<float> y = larger<float>(x, splat(-87.0f));
    const Lanes<float> shifted = y * 1.44269504f + shift, n = shifted - shift;
    const Lanes<float> r = y - n * 0.693147181f;  // log 2 is rounded: relative error 4e-6 for the smallest results
    Lanes<float> p = 0.00139476056f * r + 0.00836987309f;  // least squares at Chebyshev nodes: 4e-9
    p = p * r + 0.0416662467f;
    p = p * r + 0.166665099f;
    p = p * r + 0.500000009f;
    p = p * (r * r) + r + 1.0f;
    return (Lanes<float>)((Bits<float>)p + ((Bits<float>)shifted << 23));
}
INLINE Lanes<double> exp_positive(Lanes<double> x) {
    const double shift = 6755399441055744.0;  // 1.5 * 2^52
    const Lanes<double> y = larger<double>(x, splat(-708.0));
    const Lanes<double> shifted = y * 1.4426950408889634 + shift, n = shifted - shift;
    const Lanes<double> r = (y - n * 0.6931471803691238) - n * 1.9082149292705877e-10;
    Lanes<double> p = r * (1.0 / 6227020800) + 1.0 / 479001600;  // Taylor
    for (double c : {1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120,
                     1.0 / 24, 1.0 / 6, 0.5, 1.0, 1.0})
        p = p * r + c;
    return (Lanes<double>)((Bits<double>)p + ((Bits<double>)shifted << 52));
}
// The same, but exactly 0 for -inf and where the result would not be a normal number.
template <class R> INLINE Lanes<R> exp(Lanes<R> x) {
    return x < (sizeof(R) == 4 ? R(-87) : R(-708)) ? Lanes<R>{} : exp_positive(x);
}

// log(x) for normal x > 0; 0 gives a number below -87 (float) or -708 (double): see `log_or_barred`.
// x = 2^e m with m from sqrt(1/2) to sqrt(2).
INLINE Lanes<float> log(Lanes<float> x) {
#if defined(__AVX512F__)
    // The hardware extracts exponent and m, from 3/4 to 3/2: three instructions fewer.
    const Lanes<float> e = (Lanes<float>)_mm512_getexp_ps((__m512)(x * 1.33333333f));
    const Lanes<float> f =
        (Lanes<float>)_mm512_getmant_ps((__m512)x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_src) - 1.0f;
    Lanes<float> p = -0.0647137468f * f + 0.140196488f;  // least squares at Chebyshev nodes: 4e-8
    p = p * f - 0.173857665f;
    p = p * f + 0.201217229f;
    p = p * f - 0.249765188f;
    p = p * f + 0.333295722f;
    p = p * f - 0.500002344f;
#else
    const Mask<float> exponent = (Mask<float>)((Bits<float>)x - 0x3f3504f3u) >> 23;
    const Lanes<float> f = (Lanes<float>)((Bits<float>)x - ((Bits<float>)exponent << 23)) - 1.0f;
    const Lanes<float> e = __builtin_convertvector(exponent, Lanes<float>);
    Lanes<float> p = -0.0973146489f * f + 0.16239445f;
    p = p * f - 0.173890932f;
    p = p * f + 0.199029533f;
    p = p * f - 0.249567739f;
    p = p * f + 0.333347268f;
    p = p * f - 0.500007056f;
#endif
    return e * 0.693147181f + (p * (f * f) + f);
}
INLINE Lanes<double> log(Lanes<double> x) {
    Mask<double> exponent = (Mask<double>)((Bits<double>)x - uint64_t(0x3fe6a09e667f3bcd)) >> 52;
    Lanes<double> f = (Lanes<double>)((Bits<double>)x - ((Bits<double>)exponent << 52)) - 1.0;
    Lanes<double> e = __builtin_convertvector(exponent, Lanes<double>);
    Lanes<double> s = f / (2.0 + f), square = s * s;  // log m = 2 artanh(s)
    Lanes<double> p = square * (1.0 / 21) + 1.0 / 19;
    for (double c : {1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3}) p = p * square + c;
    return e * 0.6931471805599453 + (2.0 * s * square * p + 2.0 * s);
}
template <class R> INLINE Lanes<R> log_or_barred(Lanes<R> x) { return x > R(0) ? log(x) : splat(-INF<R>); }

// ---- rows to columns ----------------------------------------------------------------------------------------------

// Swap bit H of the register number with bit H of the lane number, for one pair of registers.
template <class R, int H, int... L>
INLINE void swap_bit(Lanes<R>& a, Lanes<R>& b, std::integer_sequence<int, L...>) {
    constexpr int W = WIDTH<R>;
    Lanes<R> low = __builtin_shufflevector(a, b, ((L & H) ? W + L - H : L)...);
    b = __builtin_shufflevector(a, b, ((L & H) ? W + L : L + H)...);
    a = low;
}
// Transpose the N x N matrices that are side by side in N registers. Its own inverse.
template <class R, int N, int H = 1> INLINE void transpose(Lanes<R>* rows) {
    if constexpr (H < N) {
#pragma GCC unroll 16
        for (int i = 0; i < N; ++i)
            if (!(i & H)) swap_bit<R, H>(rows[i], rows[i + H], std::make_integer_sequence<int, WIDTH<R>>{});
        transpose<R, N, 2 * H>(rows);
    }
}

// The first `count` numbers; nothing after them is read.
template <class R> INLINE Lanes<R> load_first(const R* from, int count) {
    if (count >= WIDTH<R>) return load(from);
#if defined(__AVX512F__)
    if constexpr (sizeof(R) == 4) return (Lanes<R>)_mm512_maskz_loadu_ps((1u << count) - 1, from);
    else return (Lanes<R>)_mm512_maskz_loadu_pd((1u << count) - 1, from);
#else
    Lanes<R> value{};
    for (int k = 0; k < count; ++k) value[k] = from[k];
    return value;
#endif
}
// Write the first `count` numbers only.
template <class R> INLINE void store_first(R* to, Lanes<R> value, int count) {
    if (count >= WIDTH<R>) return store(to, value);
#if defined(__AVX512F__)
    if constexpr (sizeof(R) == 4) _mm512_mask_storeu_ps(to, (1u << count) - 1, (__m512)value);
    else _mm512_mask_storeu_pd(to, (1u << count) - 1, (__m512d)value);
#else
    for (int k = 0; k < count; ++k) to[k] = value[k];
#endif
}
// columns[k][l] = rows[l][first + k], if first + k < count.
template <class R> INLINE void read_columns(const R* const* rows, int first, int count, Lanes<R>* columns) {
    for (int l = 0; l < WIDTH<R>; ++l) columns[l] = load_first(rows[l] + first, count - first);
    transpose<R, WIDTH<R>>(columns);
}

// Where rows of a matrix begin, in units of 8 bytes, so that an address takes one instruction.
template <class R> using Places = Vec<uint32_t, WIDTH<R>>;
template <class R> INLINE const R* row_at(const R* matrix, uint32_t place) {
    return (const R*)((const char*)matrix + uint64_t(place) * 8);
}
template <class R> INLINE R* row_at(R* matrix, uint32_t place) { return (R*)((char*)matrix + uint64_t(place) * 8); }

template <class V, int... L> INLINE auto concatenate(V a, V b, std::integer_sequence<int, L...>) {
    return __builtin_shufflevector(a, b, L...);
}
// The rows first, first + N, ... of a matrix, N numbers each, side by side in COUNT * N lanes.
template <class R, int N, int COUNT> INLINE auto side_by_side(const R* matrix, const uint32_t* places) {
    if constexpr (COUNT == 1) return load_as<Vec<R, N>>(row_at(matrix, places[0]));
#if defined(__AVX512F__)
    // Loads that leave the other lanes unchanged need no shuffles.
    else if constexpr (COUNT == 4 && N * sizeof(R) == 16) {
        const auto row = [&](int c) { return _mm_loadu_ps((const float*)row_at(matrix, places[c * N])); };
        __m512 rows = _mm512_castps128_ps512(row(0));
        rows = _mm512_mask_broadcast_f32x4(rows, 0x00f0, row(1));
        rows = _mm512_mask_broadcast_f32x4(rows, 0x0f00, row(2));
        return (Lanes<R>)_mm512_mask_broadcast_f32x4(rows, 0xf000, row(3));
    } else if constexpr (COUNT == 2 && N * sizeof(R) == 32) {
        const auto row = [&](int c) { return _mm256_loadu_pd((const double*)row_at(matrix, places[c * N])); };
        return (Lanes<R>)_mm512_insertf64x4(_mm512_castpd256_pd512(row(0)), row(1), 1);
    }
#endif
    else
        return concatenate(side_by_side<R, N, COUNT / 2>(matrix, places),
                           side_by_side<R, N, COUNT / 2>(matrix, places + N * (COUNT / 2)),
                           std::make_integer_sequence<int, COUNT * N>{});
}
// columns[k][l] = row l [k] for k < N, where N is a power of two and at most the number of lanes.
template <class R, int N> INLINE void gather(const R* matrix, const uint32_t* places, Lanes<R>* columns) {
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i) columns[i] = side_by_side<R, N, WIDTH<R> / N>(matrix, places + i);
    transpose<R, N>(columns);
}
// Rows of N numbers, from columns, in the order that `add_rows` expects. Overwrites the columns.
template <class R, int N> INLINE void store_rows(R* to, Lanes<R>* columns) {
    transpose<R, N>(columns);
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i) store(to + i * WIDTH<R>, columns[i]);
}
// Add such rows to rows of a matrix, or multiply; a row of the matrix may be named more than once.
template <class R, int N, bool MULTIPLY> INLINE void add_rows(R* matrix, const uint32_t* places, const R* from) {
    constexpr int W = WIDTH<R>;
#pragma GCC unroll 16
    for (int l = 0; l < W; ++l) {
        R* to = row_at(matrix, places[l]);
        const Vec<R, N> row = load_as<Vec<R, N>>(from + l % N * W + l / N * N);
        store(to, MULTIPLY ? load_as<Vec<R, N>>(to) * row : load_as<Vec<R, N>>(to) + row);
    }
}
// Split one vector into rows of N numbers.
template <class R, int N, int S, int... L> INLINE Vec<R, N> slice(Lanes<R> from, std::integer_sequence<int, L...>) {
    return __builtin_shufflevector(from, from, (S * N + L)...);
}
template <class R, int N, int... S>
INLINE void store_slices(R* to, int64_t stride, Lanes<R> from, std::integer_sequence<int, S...>) {
    (store(to + S * stride, slice<R, N, S>(from, std::make_integer_sequence<int, N>{})), ...);
}
