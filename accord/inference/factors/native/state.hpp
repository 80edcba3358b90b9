// The numbers of one replica: messages, totals, and what is computed from them for one factor.
#pragma once
#include <cmath>
#include <cstring>

#include "model.hpp"

// Numbers of a row, rounded up to whole vectors.
template <class R> constexpr int64_t padded(int64_t count) { return (count + WIDTH<R> - 1) / WIDTH<R> * WIDTH<R>; }
// What a sum is made of, and its neutral element: products of numbers, or sums of logs of which the largest is taken.
template <class R, bool MAX> constexpr R NOTHING = MAX ? -INF<R> : R(0);
template <class R, bool MAX> INLINE Lanes<R> join(Lanes<R> a, Lanes<R> b) { return MAX ? a + b : a * b; }
template <class R, bool MAX> INLINE Lanes<R> gather_term(Lanes<R> sum, Lanes<R> a, Lanes<R> b) {
    return MAX ? larger<R>(sum, a + b) : sum + a * b;
}
// Sum or largest of all lanes, by halves: lanes one after the other would wait for each other.
template <class R, bool MAX, int N, int... L> INLINE R fold(Vec<R, N> a, std::integer_sequence<int, L...>) {
    if constexpr (N == 2) return MAX ? std::max(a[0], a[1]) : a[0] + a[1];
    else {
        const Vec<R, N / 2> low = __builtin_shufflevector(a, a, L...), high = __builtin_shufflevector(a, a, (N / 2 + L)...);
        return fold<R, MAX, N / 2>(MAX ? (low > high ? low : high) : low + high,
                                   std::make_integer_sequence<int, N / 4>{});
    }
}
template <class R, bool MAX> INLINE R fold(Lanes<R> a) {
    return fold<R, MAX, WIDTH<R>>(a, std::make_integer_sequence<int, WIDTH<R> / 2>{});
}
// Products at least this large have lost nothing to underflow that matters, and a product of numbers whose logs add up
// to more than -SAFE_SPAN does not underflow.
template <class R> constexpr R SAFE_SUM = sizeof(R) == 4 ? R(1e-28) : R(1e-280);
template <class R> constexpr R SAFE_SPAN = sizeof(R) == 4 ? R(80) : R(690);

// Calls f(x, inside) for each vector of a row: `inside` is the mask of its states, or nothing if all lanes are.
struct Everywhere {};
template <class R> INLINE Lanes<R> keep(Lanes<R> values, Everywhere, R) { return values; }
template <class R> INLINE Lanes<R> keep(Lanes<R> values, Mask<R> inside, R other) {
    return inside ? values : splat(other);
}
template <class R, class F> INLINE void each_vector(int count, const F& f) {
    constexpr int W = WIDTH<R>;
    int x = 0;
    for (; x + W <= count; x += W) f(x, Everywhere{});
    if (x < count) f(x, lanes_of<R>((1u << (count - x)) - 1));
}

// sum - own, in double precision.
template <class R> INLINE Lanes<R> subtract(const double* sum, const R* own) {
    if constexpr (sizeof(R) == 8) return load(sum) - load(own);
    else {
        using Half = Vec<R, WIDTH<R> / 2>;
        using Double = Vec<double, WIDTH<R> / 2>;
        const Double low = load_as<Double>(sum) - __builtin_convertvector(load_as<Half>(own), Double);
        const Double high = load_as<Double>(sum + WIDTH<R> / 2) - __builtin_convertvector(load_as<Half>(own + WIDTH<R> / 2), Double);
        return concatenate(__builtin_convertvector(low, Half), __builtin_convertvector(high, Half),
                           std::make_integer_sequence<int, WIDTH<R>>{});
    }
}

constexpr int64_t AHEAD = 2;  // variables
constexpr int64_t NEAR_NUMBERS = 8192;  // of messages
// Ask for numbers that will be read soon.
template <class T> INLINE void fetch(const T* from, int64_t count) {
    constexpr int64_t LINE = 64 / sizeof(T);
    for (int64_t k = 0; k < count; k += LINE) __builtin_prefetch(from + k);
}

template <class R> struct State {
    const Graph& graph;
    const Arguments& a;
    int64_t replica = 0;
    // Whether messages may be -inf. Where only potentials are, totals of -inf need no counting: what is taken out of
    // them is finite.
    bool barred = false;
    bool is_large = false;         // messages do not stay in the nearest cache
    std::vector<int64_t> place;    // [slots]: where a message begins in `messages`
    std::vector<uint8_t> stride;   // [slots]: 1, or the distance of its numbers where messages lie side by side
    std::vector<uint8_t> in_rows;  // [nodes]: whether the stride of all messages to a variable is 1
    Buffer<R> messages;
    Buffer<double> totals;         // [at[nodes]]: finite parts, relative to the best state of each variable
    Buffer<int32_t> infinities;    // [at[nodes]]: how many terms of a total are -inf; used only if `barred`

    explicit State(const Graph& graph) : graph(graph), a(graph.a), place(graph.slots), stride(graph.slots, 1) {}

    // Once all messages have a place.
    void reserve(int64_t numbers) {
        in_rows.assign(a.nodes, 1);
        is_large = numbers > NEAR_NUMBERS;
        for (int64_t s = 0; s < graph.slots; ++s) in_rows[graph.variable(s)] &= stride[s] == 1;
        const int64_t states = a.at[a.nodes] + WIDTH<R>;
        std::fill_n(messages.reserve(numbers + WIDTH<R>), numbers + WIDTH<R>, R(0));
        std::fill_n(totals.reserve(states), states, 0.0);
        if (barred) std::fill_n(infinities.reserve(states), states, 0);
    }
    R* message(int64_t slot) const { return messages.get() + place[slot]; }
    const R* unary() const { return (const R*)a.unary + replica * a.at[a.nodes]; }
    const R* tables() const { return (const R*)a.tables + (a.table_replicas > 1 ? replica : 0) * a.entries; }
    R appearance(int64_t f) const {
        if (!a.appearance) return 1;
        return ((const R*)a.appearance)[(a.appearance_replicas > 1 ? replica : 0) * a.factors + f];
    }
    const R* final_scores(int64_t f) const {
        const RuleGroup& rule = graph.rule(f);
        const int64_t number = f - graph.group_at[graph.group_of[f - a.tabled]];
        const int64_t row = (rule.final_replicas > 1 ? replica : 0) * rule.final_factors;
        return (const R*)rule.final + (row + (rule.final_factors > 1 ? number : 0)) * rule.states;
    }

    // Messages to begin with, normalised.
    void begin(int64_t s) const {
        const int K = graph.states(s), step = stride[s];
        R* m = message(s);
        const R* given = a.start ? (const R*)a.start + replica * graph.message_at[graph.slots] + graph.message_at[s] : 0;
        double best = -INF<double>, sum = 0;
        for (int x = 0; x < K; ++x) best = std::max(best, given ? double(given[x]) : 0.0);
        for (int x = 0; x < K; ++x) sum += std::exp((given ? given[x] : 0.0) - best);
        const double level = a.best ? best : best + std::log(sum);
        for (int x = 0; x < K; ++x) m[x * step] = R((given ? given[x] : 0.0) - level);
    }
    void write(int64_t s) const {
        R* to = (R*)a.messages + replica * graph.message_at[graph.slots] + graph.message_at[s];
        const R* m = message(s);
        for (int x = 0, K = graph.states(s), step = stride[s]; x < K; ++x) to[x] = m[x * step];
    }
    void write_total(int64_t v) const {
        R* to = (R*)a.totals + replica * a.at[a.nodes];
        for (int64_t k = a.at[v]; k < a.at[v + 1]; ++k)
            to[k] = barred && infinities.get()[k] ? -INF<R> : R(totals.get()[k]);
    }

    // The belief of a variable: its potential and all messages to it, relative to the best state.
    void collect(int64_t v) const {
        const int64_t begin = a.at[v];
        const int K = graph.variable_states(v);
        const R* potential = unary() + begin;
        double* sum = totals.get() + begin;
        if (!barred && in_rows[v]) return add_rows(v, K, potential, sum);
        int32_t* count = barred ? infinities.get() + begin : nullptr;
        for (int x = 0; x < K; ++x) {
            const bool off = potential[x] == -INF<R>;
            sum[x] = off && barred ? 0.0 : double(potential[x]);
            if (barred) count[x] = off;
        }
        for (int64_t k = graph.into_at[v]; k < graph.into_at[v + 1]; ++k) {
            const int64_t s = graph.into[k];
            const R* m = message(s);
            const int64_t step = stride[s];
            const double weight = a.appearance ? double(appearance(graph.factor_of[s])) : 1.0;
            if (!barred) {
                for (int x = 0; x < K; ++x) sum[x] += weight * m[x * step];
            } else {
                for (int x = 0; x < K; ++x) {
                    const bool off = m[x * step] == -INF<R>;
                    sum[x] += off ? 0.0 : weight * m[x * step];
                    count[x] += off;
                }
            }
        }
        double level = -INF<double>;
        for (int x = 0; x < K; ++x)
            if (!barred || !count[x]) level = std::max(level, sum[x]);
        if (level == -INF<double>) return;
        for (int x = 0; x < K; ++x) sum[x] -= level;
    }

    // The same where no message is -inf and the numbers of each message follow each other: sums stay in registers.
    void add_rows(int64_t v, int K, const R* potential, double* sum) const {
        constexpr int D = WIDTH<double>, TOGETHER = 4;
        using Doubles = Lanes<double>;
        // Messages are scattered over memory, so those of a variable further on are fetched already.
        if (is_large && v + AHEAD < a.nodes)
            for (int64_t k = graph.into_at[v + AHEAD]; k < graph.into_at[v + AHEAD + 1]; ++k)
                fetch(message(graph.into[k]), graph.variable_states(v + AHEAD));
        Doubles best = splat(-INF<double>);
        Doubles total[TOGETHER];
        const auto add = [&](int x, int vectors) {
            for (int j = 0; j < vectors; ++j) total[j] = doubles(potential + x + j * D, K - x - j * D);
            for (int64_t k = graph.into_at[v]; k < graph.into_at[v + 1]; ++k) {
                const int64_t s = graph.into[k];
                const R* m = message(s) + x;
                const double weight = a.appearance ? double(appearance(graph.factor_of[s])) : 1.0;
                for (int j = 0; j < vectors; ++j) total[j] += weight * doubles(m + j * D, D);
            }
            for (int j = 0; j < vectors; ++j) {
                const int inside = std::min(D, K - x - j * D);
                best = larger<double>(best, lanes_of<double>((1u << inside) - 1) ? total[j] : splat(-INF<double>));
            }
        };
        const auto write = [&](int x, int vectors, double level) {
            for (int j = 0; j < vectors; ++j) store_first<double>(sum + x + j * D, total[j] - level, K - x - j * D);
        };
        const auto settled = [](double level) { return level == -INF<double> ? 0.0 : level; };
        const int vectors = (K + D - 1) / D;
        if (vectors == 1) {
            add(0, 1);
            return write(0, 1, settled(fold<double, true>(best)));
        }
        if (vectors <= TOGETHER) {
            add(0, vectors);
            return write(0, vectors, settled(fold<double, true>(best)));
        }
        for (int x = 0; x < K; x += TOGETHER * D) {
            const int here = std::min(TOGETHER, (K - x + D - 1) / D);
            add(x, here);
            write(x, here, 0.0);
        }
        const double level = settled(fold<double, true>(best));
        for (int x = 0; x < K; ++x) sum[x] -= level;
    }
    template <int... L> static INLINE auto low_half(Lanes<R> a, std::integer_sequence<int, L...>) {
        return __builtin_shufflevector(a, a, L...);
    }
    // As many numbers as there are in a vector of doubles, of which the first `count` are read.
    static INLINE Lanes<double> doubles(const R* from, int count) {
        if constexpr (sizeof(R) == 8) return load_first(from, count);
        else {
            using Half = Vec<R, WIDTH<double>>;
            if (count >= WIDTH<double>) return __builtin_convertvector(load_as<Half>(from), Lanes<double>);
            const Lanes<R> values = load_first(from, count);
            return __builtin_convertvector(low_half(values, std::make_integer_sequence<int, WIDTH<double>>{}), Lanes<double>);
        }
    }

    // A variable's belief without the message of one factor.
    template <class T> void cavity(int64_t s, T* to) const {
        const int64_t begin = a.at[graph.variable(s)];
        const int K = graph.states(s);
        const int64_t step = stride[s];
        const double* sum = totals.get() + begin;
        const R* m = message(s);
        if (!barred && step == 1) {
            for (int x = 0; x < K; ++x) to[x] = T(sum[x] - m[x]);
            return;
        }
        for (int x = 0; x < K; ++x) {
            const R own = m[x * step];
            const bool off = own == -INF<R>;
            const bool out = barred && infinities.get()[begin + x] - off > 0;
            to[x] = out ? -INF<T> : T(sum[x] - (off ? R(0) : own));
        }
    }
};
