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

template <class R> struct State {
    const Graph& graph;
    const Arguments& a;
    int64_t replica = 0;
    bool barred = false;           // whether any number of the field is -inf
    std::vector<int64_t> place;    // [slots]: where a message begins in `messages`
    std::vector<uint8_t> stride;   // [slots]: 1, or the distance of its numbers where messages lie side by side
    Buffer<R> messages;
    Buffer<double> totals;         // [at[nodes]]: finite parts, relative to the best state of each variable
    Buffer<int32_t> infinities;    // [at[nodes]]: how many terms of a total are -inf; used only if `barred`

    explicit State(const Graph& graph) : graph(graph), a(graph.a), place(graph.slots), stride(graph.slots, 1) {}

    void reserve(int64_t numbers) {
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
        int32_t* count = barred ? infinities.get() + begin : nullptr;
        for (int x = 0; x < K; ++x) {
            const bool off = potential[x] == -INF<R>;
            sum[x] = off ? 0.0 : double(potential[x]);
            if (barred) count[x] = off;
        }
        for (int64_t k = graph.into_at[v]; k < graph.into_at[v + 1]; ++k) {
            const int64_t s = graph.into[k];
            const R* m = message(s);
            const int64_t step = stride[s];
            const double weight = a.appearance ? double(appearance(graph.factor_of[s])) : 1.0;
            if (!barred && step == 1) {
                for (int x = 0; x < K; ++x) sum[x] += weight * m[x];
            } else if (!barred) {
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
