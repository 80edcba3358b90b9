// How factors are grouped for synchronous sweeps.
//
// Tables of the same shape are computed side by side, one factor in each lane of a vector: their numbers alternate in
// memory. Messages of few states alternate too (LANES); longer ones do not, so that variables can read them in whole
// vectors (WIDE). Tables of rare shapes are padded to that of a larger one and share its vectors (MIXED) where that takes
// less time than to read them by rows, several factors in a bundle (ROWS). Rules are computed one at a time.
#pragma once
#include "tables.hpp"

enum class Way : uint8_t { LANES, WIDE, MIXED, ROWS, RULE };
inline bool is_side_by_side(Way way) { return way <= Way::MIXED; }
struct Block {
    // Where its factors begin in `order`, its table and its messages in memory. The first factor has the block's shape.
    int64_t first, table, message;
    int32_t count;
    Way way;
    bool shared;  // its factors have the same table, which is stored once
};

template <class R> struct Plan {
    static constexpr int W = WIDTH<R>;
    static constexpr int64_t MANY_ROWS = 256;  // of a table; products of cavities for more would not stay in cache
    static constexpr int MANY_STATES = 8;      // of a message; more fill a vector
    static constexpr int64_t WINDOW = 1024;    // of factors of rare shapes, among which a block is chosen
    static constexpr int64_t BUNDLE_NUMBERS = 2048;   // of messages: they stay in cache from step to step
    static constexpr int64_t BUNDLE_ENTRIES = 65536;  // of tables: enough bundles for all threads

    std::vector<int32_t> order;     // factors, block by block
    std::vector<Block> blocks;
    std::vector<int32_t> by_rows;   // factors whose tables are read by rows
    std::vector<int64_t> cuts;      // [threads + 1]: blocks of each thread
    std::vector<int32_t> graph_of;  // [factors]
    Buffer<R> tables, spans;        // of blocks with several factors; a span for each lane

    Plan(const Graph& graph, State<R>& state, int threads) {
        const Arguments& a = graph.a;
        graph_of.resize(a.factors);
        for (int64_t f = 0; f < a.factors; ++f) graph_of[f] = int32_t(graph.graph(f));
        std::vector<int32_t> alike;
        for (int64_t f = 0; f < a.tabled; ++f)
            (graph.entries(f) <= MANY_ROWS * graph.axis_states(f, graph.order(f) - 1) ? alike : by_rows).push_back(int32_t(f));
        const auto compare = [&](int32_t f, int32_t g) {  // < 0, 0 or > 0
            if (graph.order(f) != graph.order(g)) return graph.order(f) - graph.order(g);
            for (int i = 0; i < graph.order(f); ++i) {
                const int difference = graph.axis_states(f, i) - graph.axis_states(g, i);
                if (difference) return difference;
            }
            return 0;
        };
        std::stable_sort(alike.begin(), alike.end(), [&](int32_t f, int32_t g) { return compare(f, g) < 0; });
        for (size_t begin = 0, end; begin < alike.size(); begin = end) {
            for (end = begin; end < alike.size() && compare(alike[begin], alike[end]) == 0;) ++end;
            group(graph, alike.begin() + begin, alike.begin() + end);
        }
        mix(graph);
        std::sort(by_rows.begin(), by_rows.end());
        bundle(graph);
        for (int32_t f = int32_t(a.tabled); f < a.factors; ++f) add(&f, 1, Way::RULE, false);
        int64_t table_numbers = 0, message_numbers = 0;
        std::vector<double> cost(1, 0.0);
        for (Block& b : blocks) {
            const bool alternate = b.way == Way::LANES;
            b.message = message_numbers, b.table = table_numbers;
            double work = 0;
            for (int l = 0; l < b.count; ++l) {
                const int32_t f = order[b.first + l];
                int64_t states = 0;
                for (int axis = 0; axis < graph.order(f); ++axis) {
                    const int64_t s = graph.axis_slot(f, axis);
                    state.place[s] = alternate ? b.message + states * W + l : message_numbers;
                    state.stride[s] = uint8_t(alternate ? W : 1);
                    if (!alternate) message_numbers += padded<R>(graph.states(s));
                    states += graph.states(s);
                }
                const int64_t entries = graph.is_rule(f) ? 20 * states * graph.rule(f).states : graph.entries(f);
                work += double(entries) + 8.0 * double(states);
                if (!is_side_by_side(b.way) || l + 1 < b.count) continue;
                const int64_t whole = graph.entries(order[b.first]);
                table_numbers += whole * (b.shared ? 1 : W);
                if (alternate) message_numbers += states * W;
                work = W * (double(whole) + 8.0 * double(states));  // empty lanes are computed too
            }
            cost.push_back(cost.back() + work);
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
        std::vector<R> turned, room;
        for (int64_t k = begin; k < end; ++k) {
            const Block& b = blocks[k];
            if (!is_side_by_side(b.way)) continue;
            R* to = tables.get() + b.table;
            R* span = spans.get() + k * W;
            const int64_t entries = state.graph.entries(order[b.first]);
            std::fill_n(span, W, R(0));
            if (b.way == Way::MIXED) std::fill_n(to, entries * W, state.a.best ? -INF<R> : R(0));
            for (int l = 0; l < (b.shared ? 1 : W); ++l) {
                if (l >= b.count) {  // an empty lane; its numbers only have to be finite
                    for (int64_t e = 0; e < entries; ++e) to[e * W + l] = state.a.best ? R(0) : R(1);
                    continue;
                }
                const int32_t f = order[b.first + l];
                const R* from = turned_table(state, f, state.a.table_at[f], turned);
                const int64_t step = b.shared ? 1 : W;
                if (b.way == Way::MIXED) {
                    span[l] = pad(state, f, order[b.first], from, to + l, room);
                    continue;
                }
                span[l] = state.a.best ? prepare<R, true>(from, entries, state.appearance(f), to + l, step)
                                       : prepare<R, false>(from, entries, state.appearance(f), to + l, step);
            }
            if (b.shared) std::fill_n(span, W, span[0]);
        }
    }

  private:
    std::vector<int32_t> rare;  // factors that share vectors with other shapes, or are read by rows

    // As `prepare`, for the table of factor f in a lane of a block that has the shape of factor `whole`.
    static R pad(const State<R>& state, int32_t f, int32_t whole, const R* from, R* to, std::vector<R>& room) {
        const Graph& graph = state.graph;
        const int64_t entries = graph.entries(f);
        room.resize(entries);
        const R span = state.a.best ? prepare<R, true>(from, entries, state.appearance(f), room.data(), 1)
                                    : prepare<R, false>(from, entries, state.appearance(f), room.data(), 1);
        for (int64_t e = 0; e < entries; ++e) {
            int64_t place = 0, rest = e, step = 1;
            for (int axis = graph.order(f); axis-- > 0;) {
                place += rest % graph.axis_states(f, axis) * step;
                rest /= graph.axis_states(f, axis), step *= graph.axis_states(whole, axis);
            }
            to[place * W] = room[e];
        }
        return span;
    }
    // Estimated cycles of all messages of a factor, in a vector of its own shape and by rows.
    static double in_lanes(const Graph& graph, int32_t f) {
        int64_t states = 0;
        for (int64_t s = graph.first(f); s < graph.first(f + 1); ++s) states += graph.states(s);
        return 1.5 * double(graph.entries(f)) + (sizeof(R) == 4 ? 40.0 : 60.0) * double(states) + 200.0;
    }
    static double in_rows(const Graph& graph, int32_t f) {
        int64_t vectors = 0;
        for (int64_t s = graph.first(f); s < graph.first(f + 1); ++s) vectors += padded<R>(graph.states(s)) / W;
        const int64_t last = graph.axis_states(f, graph.order(f) - 1), lines = graph.entries(f) / last;
        return double(lines) * (1.2 * double(padded<R>(last) / W) + 2.4) + 48.0 * double(vectors) + 60.0;
    }
    static bool fits(const Graph& graph, int32_t f, int32_t whole) {
        if (graph.order(f) != graph.order(whole)) return false;
        for (int i = 0; i < graph.order(f); ++i)
            if (graph.axis_states(f, i) > graph.axis_states(whole, i)) return false;
        return true;
    }
    // Fill vectors with factors of rare shapes, the largest first, each with those that fit into its shape.
    void mix(const Graph& graph) {
        std::vector<std::pair<int64_t, int32_t>> left;  // minus the entries, factor
        for (int32_t f : rare) left.emplace_back(-graph.entries(f), f);
        std::sort(left.begin(), left.end());
        std::vector<int32_t> chosen;
        std::vector<size_t> taken;
        while (!left.empty()) {
            const int32_t whole = left[0].second;
            chosen.clear(), taken.clear();
            double rows = 0;
            bool uniform = true;
            for (size_t k = 0; k < left.size() && k < size_t(WINDOW) && chosen.size() < size_t(W); ++k) {
                const int32_t f = left[k].second;
                if (4 * left[k].first > left[0].first || !fits(graph, f, whole)) continue;
                chosen.push_back(f), taken.push_back(k), rows += in_rows(graph, f);
                uniform &= fits(graph, whole, f);
            }
            if (rows <= in_lanes(graph, whole)) chosen.resize(1), taken.resize(1), by_rows.push_back(whole);
            else if (uniform) add(chosen.data(), int64_t(chosen.size()), way_of(graph, whole), false);
            else add(chosen.data(), int64_t(chosen.size()), Way::MIXED, false);
            size_t to = 0, next = 0;
            for (size_t k = 0; k < left.size(); ++k) {
                if (next < taken.size() && taken[next] == k) ++next;
                else left[to++] = left[k];
            }
            left.resize(to);
        }
    }
    static Way way_of(const Graph& graph, int32_t f) {
        return graph.axis_states(f, graph.order(f) - 1) <= MANY_STATES ? Way::LANES : Way::WIDE;
    }
    void add(const int32_t* factors, int64_t count, Way way, bool shared) {
        blocks.push_back({int64_t(order.size()), 0, 0, int32_t(count), way, shared});
        order.insert(order.end(), factors, factors + count);
    }
    template <class Iterator> void group(const Graph& graph, Iterator begin, Iterator end) {
        const Arguments& a = graph.a;
        std::vector<int32_t> own(begin, end);
        const Way way = way_of(graph, own[0]);
        if (!a.appearance) {  // with weights, tables that were the same differ
            std::stable_sort(own.begin(), own.end(), [&](int32_t f, int32_t g) { return a.table_at[f] < a.table_at[g]; });
            std::vector<int32_t> rest;
            for (size_t k = 0, next; k < own.size(); k = next) {
                for (next = k; next < own.size() && a.table_at[own[next]] == a.table_at[own[k]];) ++next;
                if (next - k < size_t(W / 2)) rest.insert(rest.end(), own.begin() + k, own.begin() + next);
                else
                    for (size_t j = k; j < next; j += W) add(&own[j], std::min<int64_t>(W, next - j), way, true);
            }
            own.swap(rest);
            std::sort(own.begin(), own.end());
        }
        for (size_t k = 0; k < own.size(); k += W) {
            const int64_t count = std::min<int64_t>(W, own.size() - k);
            if (count == W || (k && way == Way::LANES)) add(&own[k], count, way, false);
            else rare.insert(rare.end(), own.begin() + k, own.end());
        }
    }
    void bundle(const Graph& graph) {
        for (size_t begin = 0, end; begin < by_rows.size(); begin = end) {
            int64_t numbers = 0, entries = 0;
            for (end = begin; end < by_rows.size() && (end == begin || (numbers < BUNDLE_NUMBERS && entries < BUNDLE_ENTRIES));
                 ++end) {
                const int32_t f = by_rows[end];
                for (int64_t s = graph.first(f); s < graph.first(f + 1); ++s) numbers += padded<R>(graph.states(s));
                entries += graph.entries(f);
            }
            add(&by_rows[begin], int64_t(end - begin), Way::ROWS, false);
        }
    }
};
