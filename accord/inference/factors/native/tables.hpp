// Tables as the kernel uses them: exponentials relative to the largest entry ("sum"), or logs ("max").
#pragma once
#include "state.hpp"

// Where no entry is forbidden and entries span no more than this, no sum of products can be too small: the likeliest
// states of the other variables count fully.
template <class R> constexpr R SURE_SPAN = sizeof(R) == 4 ? R(60) : R(600);

// Copies one table: to[e * step] = exp((from[e] - largest) / weight), or from[e] / weight. Returns the largest minus the
// smallest finite entry, divided by the weight, or 0 where sums are never too small.
template <class R, bool MAX> R prepare(const R* from, int64_t entries, R weight, R* to, int64_t step) {
    constexpr int W = WIDTH<R>;
    R best = -INF<R>, worst = INF<R>, least = INF<R>;
    for (int64_t e = 0; e < entries; ++e) {
        best = std::max(best, from[e]), least = std::min(least, from[e]);
        worst = std::min(worst, from[e] == -INF<R> ? INF<R> : from[e]);
    }
    if (best == -INF<R>) {  // nothing is possible
        for (int64_t e = 0; e < entries; ++e) to[e * step] = NOTHING<R, MAX>;
        return 0;
    }
    for (int64_t e = 0; e < entries; e += W) {
        const int count = int(std::min<int64_t>(W, entries - e));
        Lanes<R> values = load_first(from + e, count);
        values = MAX ? values / weight : exp<R>((values - best) / weight);
        if (step == 1 && count == W) store(to + e, values);
        else
            for (int l = 0; l < count; ++l) to[(e + l) * step] = values[l];
    }
    return (best - least) / weight <= SURE_SPAN<R> ? R(0) : std::max((best - worst) / weight, R(1));
}

// The table of a factor that begins at `from`, as it is stored; `room` holds it if its axes are exchanged.
template <class R> const R* turned_table(const State<R>& state, int64_t f, int64_t from, std::vector<R>& room) {
    const R* table = state.tables() + from;
    if (!state.graph.turned[f]) return table;
    const int64_t rows = state.graph.axis_states(f, 1), cols = state.graph.axis_states(f, 0);
    room.resize(rows * cols);
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t x = 0; x < cols; ++x) room[x * rows + r] = table[r * cols + x];
    return room.data();
}

// Tables of factors that are read by rows. Factors that share a table share its copy.
template <class R> struct Tables {
    Buffer<R> numbers;
    std::vector<int64_t> place;  // [tabled]: -1 for factors whose tables are stored elsewhere
    std::vector<R> span;         // [tabled]
    struct Copy {
        int64_t from, to, entries;
        int32_t factor;
    };
    std::vector<Copy> copies;
    std::vector<int32_t> copy_of;  // [tabled]

    // Decide where tables go; `wanted` names the factors.
    void plan(const Graph& graph, const std::vector<int32_t>& wanted) {
        const Arguments& a = graph.a;
        place.assign(a.tabled, -1), span.assign(a.tabled, 0), copy_of.assign(a.tabled, -1);
        std::vector<int32_t> order(wanted);
        // Weights differ between factors, so with weights each has its own copy.
        if (!a.appearance)
            std::stable_sort(order.begin(), order.end(),
                             [&](int32_t f, int32_t g) { return a.table_at[f] < a.table_at[g]; });
        int64_t length = 0;
        for (size_t k = 0; k < order.size(); ++k) {
            const int32_t f = order[k];
            const int64_t entries = graph.entries(f);
            const bool shared = k && !a.appearance && copies.back().from == a.table_at[f];
            if (!shared) {
                copies.push_back({a.table_at[f], length, entries, f});
                length += entries;
            }
            copy_of[f] = int32_t(copies.size()) - 1;
            place[f] = copies.back().to;
        }
        numbers.reserve(length + WIDTH<R>);
        // Rows are read in whole vectors, so numbers after the last one have to be finite.
        std::fill_n(numbers.get() + length, WIDTH<R>, R(0));
    }
    void fill(const State<R>& state, int64_t begin, int64_t end) {
        std::vector<R> turned;
        for (int64_t k = begin; k < end; ++k) {
            const Copy& c = copies[k];
            const R* from = turned_table(state, c.factor, c.from, turned);
            R* to = numbers.get() + c.to;
            const R weight = state.appearance(c.factor);
            span[c.factor] = state.a.best ? prepare<R, true>(from, c.entries, weight, to, 1)
                                          : prepare<R, false>(from, c.entries, weight, to, 1);
        }
    }
    const R* table(int64_t f) const { return numbers.get() + place[f]; }
    R span_of(int64_t f) const { return span[copies[copy_of[f]].factor]; }
};
