// One message of a table, computed in logs and double precision: exact for any potentials, but slow.
//
// Used where products of numbers would underflow.
#pragma once
#include "state.hpp"

// Reserved before threads start: memory that runs out inside a thread would end the process.
struct LogScratch {
    std::vector<double> cavity, sum;
    std::vector<int> size, label;
    std::vector<int64_t> at;
    void reserve(int64_t order, int64_t states, int64_t largest) {
        cavity.resize(states), sum.resize(largest), size.resize(order), label.resize(order), at.resize(order);
    }
};

// The unnormalised message of slot `target` of factor f; returns false if no state is possible.
template <class R> bool message_in_logs(const State<R>& state, int64_t f, int target, LogScratch& s, double* message) {
    const Graph& graph = state.graph;
    const int64_t first = graph.first(f);
    const int order = graph.order(f);
    const R* table = state.tables() + state.a.table_at[f];
    const double weight = state.appearance(f);
    int64_t begin = 0;
    for (int i = 0; i < order; ++i) {
        s.at[i] = begin, s.size[i] = graph.states(first + i), begin += s.size[i];
        if (i == target) std::fill_n(s.cavity.begin() + s.at[i], s.size[i], 0.0);
        else state.cavity(first + i, s.cavity.data() + s.at[i]);
    }
    const int64_t entries = graph.entries(f);
    const auto each = [&](const auto& use) {
        std::fill_n(s.label.begin(), order, 0);
        for (int64_t e = 0; e < entries; ++e) {
            double score = table[e] / weight;
            for (int i = 0; i < order; ++i) score += s.cavity[s.at[i] + s.label[i]];
            use(s.label[target], score);
            for (int i = order; i-- > 0;) {
                if (++s.label[i] < s.size[i]) break;
                s.label[i] = 0;
            }
        }
    };
    const int count = s.size[target];
    std::fill_n(message, count, -INF<double>);
    each([&](int x, double score) { message[x] = std::max(message[x], score); });
    if (!state.a.best) {
        std::fill_n(s.sum.begin(), count, 0.0);
        each([&](int x, double score) {
            if (score > -INF<double>) s.sum[x] += std::exp(score - message[x]);
        });
        for (int x = 0; x < count; ++x)
            if (message[x] > -INF<double>) message[x] += std::log(s.sum[x]);
    }
    return *std::max_element(message, message + count) > -INF<double>;
}

// Normalise logs: they sum to one, or the best is 0.
template <class T> void normalise(T* logs, int count, bool best) {
    T level = -INF<T>;
    for (int x = 0; x < count; ++x) level = std::max(level, logs[x]);
    if (!best) {
        T sum = 0;
        for (int x = 0; x < count; ++x) sum += std::exp(logs[x] - level);
        level += std::log(sum);
    }
    for (int x = 0; x < count; ++x) logs[x] -= level;
}
