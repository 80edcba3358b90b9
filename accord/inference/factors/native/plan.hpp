// How factors are grouped for synchronous sweeps.
//
// Small tables of the same shape are computed side by side, one factor in each lane of a vector: their numbers alternate
// in memory. Other factors are computed one at a time.
#pragma once
#include "tables.hpp"

struct Block {
    int64_t first, table, message;  // where its factors begin in `order`, its table and its messages in memory
    int32_t count;
    bool single, shared;  // a factor on its own; factors that have the same table, which is stored once
};

template <class R> struct Plan {
    static constexpr int W = WIDTH<R>;
    static constexpr int64_t LARGE_TABLE = 1024;  // entries; larger ones of the same shape would not stay in cache
    static constexpr int MANY_STATES = 8;  // of the last variable; more fill a vector, and lie side by side as they are

    std::vector<int32_t> order;     // factors, block by block
    std::vector<Block> blocks;
    std::vector<int32_t> alone;     // tabled factors of single blocks
    std::vector<int64_t> cuts;      // [threads + 1]: blocks of each thread
    std::vector<int32_t> graph_of;  // [factors]
    Buffer<R> tables, spans;        // of blocks with several factors; a span for each lane

    Plan(const Graph& graph, State<R>& state, int threads) {
        const Arguments& a = graph.a;
        graph_of.resize(a.factors);
        for (int64_t f = 0; f < a.factors; ++f) graph_of[f] = int32_t(graph.graph(f));
        std::vector<int32_t> small, large;
        for (int64_t f = 0; f < a.factors; ++f)
            (is_small(graph, f) ? small : large).push_back(int32_t(f));
        const auto compare = [&](int32_t f, int32_t g) {  // < 0, 0 or > 0
            if (graph.order(f) != graph.order(g)) return graph.order(f) - graph.order(g);
            for (int i = 0; i < graph.order(f); ++i) {
                const int difference = graph.states(graph.first(f) + i) - graph.states(graph.first(g) + i);
                if (difference) return difference;
            }
            return 0;
        };
        std::stable_sort(small.begin(), small.end(), [&](int32_t f, int32_t g) { return compare(f, g) < 0; });
        for (size_t begin = 0, end; begin < small.size(); begin = end) {
            for (end = begin; end < small.size() && compare(small[begin], small[end]) == 0;) ++end;
            group(graph, small.begin() + begin, small.begin() + end);
        }
        for (int32_t f : large) add(&f, 1, true, false);
        int64_t table_numbers = 0, message_numbers = 0;
        std::vector<double> cost(1, 0.0);
        for (Block& b : blocks) {
            const int32_t f = order[b.first];
            const int lanes = b.single ? 1 : W;
            int64_t states = 0;
            b.message = message_numbers;
            for (int i = 0; i < graph.order(f); ++i) {
                for (int l = 0; l < b.count; ++l) {
                    const int64_t slot = graph.first(order[b.first + l]) + i;
                    state.place[slot] = message_numbers + states * lanes + l;
                    state.stride[slot] = uint8_t(lanes);
                }
                states += graph.states(graph.first(f) + i);
            }
            message_numbers += states * lanes;
            const int64_t entries = graph.is_rule(f) ? 20 * states * graph.rule(f).states : graph.entries(f);
            cost.push_back(cost.back() + lanes * (entries + 8.0 * states));
            b.table = table_numbers;
            if (b.single && !graph.is_rule(f)) alone.push_back(f);
            if (!b.single) table_numbers += entries * (b.shared ? 1 : W);
        }
        tables.reserve(table_numbers + W), spans.reserve(int64_t(blocks.size()) * W);
        numbers = message_numbers;
        for (int t = 0; t <= threads; ++t)
            cuts.push_back(std::lower_bound(cost.begin(), cost.end(), cost.back() * t / threads) - cost.begin());
        cuts[0] = 0, cuts[threads] = int64_t(blocks.size());
    }
    int64_t numbers = 0;  // of messages

    // Copy the tables of some blocks, for the state's replica.
    void fill(const State<R>& state, int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; ++k) {
            const Block& b = blocks[k];
            if (b.single) continue;
            R* to = tables.get() + b.table;
            R* span = spans.get() + k * W;
            const int64_t entries = state.graph.entries(order[b.first]);
            std::fill_n(span, W, R(0));
            for (int l = 0; l < (b.shared ? 1 : W); ++l) {
                if (l >= b.count) {  // an empty lane; its numbers only have to be finite
                    for (int64_t e = 0; e < entries; ++e) to[e * W + l] = state.a.best ? R(0) : R(1);
                    continue;
                }
                const int32_t f = order[b.first + l];
                const R* from = state.tables() + state.a.table_at[f];
                const int64_t step = b.shared ? 1 : W;
                span[l] = state.a.best ? prepare<R, true>(from, entries, state.appearance(f), to + l, step)
                                       : prepare<R, false>(from, entries, state.appearance(f), to + l, step);
            }
            if (b.shared) std::fill_n(span, W, span[0]);
        }
    }

  private:
    static bool is_small(const Graph& graph, int64_t f) {
        return !graph.is_rule(f) && graph.states(graph.first(f + 1) - 1) <= MANY_STATES && graph.entries(f) <= LARGE_TABLE;
    }
    void add(const int32_t* factors, int64_t count, bool single, bool shared) {
        blocks.push_back({int64_t(order.size()), 0, 0, int32_t(count), single, shared});
        order.insert(order.end(), factors, factors + count);
    }
    template <class Iterator> void group(const Graph& graph, Iterator begin, Iterator end) {
        const Arguments& a = graph.a;
        std::vector<int32_t> own(begin, end);
        if (!a.appearance) {  // with weights, tables that were the same differ
            std::stable_sort(own.begin(), own.end(), [&](int32_t f, int32_t g) { return a.table_at[f] < a.table_at[g]; });
            std::vector<int32_t> rest;
            for (size_t k = 0, next; k < own.size(); k = next) {
                for (next = k; next < own.size() && a.table_at[own[next]] == a.table_at[own[k]];) ++next;
                if (next - k < size_t(W / 2)) rest.insert(rest.end(), own.begin() + k, own.begin() + next);
                else
                    for (size_t j = k; j < next; j += W) add(&own[j], std::min<int64_t>(W, next - j), false, true);
            }
            own.swap(rest);
            std::sort(own.begin(), own.end());
        }
        const bool few = own.size() < size_t(W / 2);
        for (size_t k = 0; k < own.size(); k += few ? 1 : W)
            add(&own[k], few ? 1 : std::min<int64_t>(W, own.size() - k), few, false);
    }
};
