// One connected field in double precision, without padding: every node has its own number of states.
//
// Factors of two nodes are edges; those of more nodes are kept apart, because edges have shorter loops.
//
// Forbidden combinations hold a large finite penalty, so that no arithmetic meets infinities. The penalty exceeds the
// largest possible difference between two allowed labellings. So a labelling is allowed if and only if its score is at
// least `floor`, and an upper bound below `floor` proves that no labelling is allowed.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "clock.hpp"

namespace search {

using Labels = std::vector<int32_t>;

constexpr double FORBIDDEN = -1.7e308;  // what is lower stands for -inf

// One end of an edge, seen from the node it belongs to.
struct Arc {
    int32_t other, edge;
    int64_t table;                // where the table begins
    int32_t own, far;             // strides of the own and the other state
    bool forward;                 // the node is the edge's source
};

// A factor of three nodes or more.
struct Factor {
    int64_t table;                // where its table begins among `tables`
    int64_t size;                 // entries of the table
    int32_t first, order;         // members[first] to members[first + order]
};

// One node of a factor; they are sorted, and the state of the last one changes fastest.
struct Member {
    int32_t node, count;
    int64_t stride;
};

struct Model {
    static constexpr double FINE = 0.05;
    int32_t nodes = 0, edges = 0;
    std::vector<int32_t> count;          // states of a node
    std::vector<int64_t> at;             // [nodes + 1]: where the states of a node begin
    std::vector<double> unary, tables;   // tables[table_at[e] + source state * count[target] + target state]
    std::vector<int32_t> source, target;
    std::vector<int64_t> table_at;
    std::vector<double> low;             // [edges + factors]: lowest allowed value of each table
    std::vector<int32_t> first;          // [nodes + 1]: where the arcs of a node begin
    std::vector<Arc> arcs;
    std::vector<Factor> factors;
    std::vector<Member> members;
    std::vector<int32_t> slot_at, slots; // slots[slot_at[v] to slot_at[v + 1]]: where v stands among `members`
    std::vector<int32_t> factor_of;      // [members]
    std::vector<char> between;           // nodes that were added to express rules as tables; empty: none
    std::vector<int32_t> near_at, near;  // the other nodes of the edges and factors of a node, each once
    double ceiling = 0;                  // sum of the highest values of all nodes and tables
    double floor = -1e300;               // least score of an allowed labelling
    double penalty = 0;                  // of a forbidden combination; 0: there are none
    double wall = 1;                     // more than any change of score between allowed labellings
    double range = 0;                    // more than two allowed labellings can differ, up to rounding
    double scale = 0;                    // typical change of score when a node changes its state
    double fine = 0;                     // the same of a tenth of the tables, where it is far less than of most; else 0
    int32_t most = 1;                    // largest number of states
    int64_t largest = 1;                 // entries of the largest table of a factor

    int64_t size() const { return at[nodes]; }
    const Arc* begin(int32_t v) const { return arcs.data() + first[v]; }
    const Arc* end(int32_t v) const { return arcs.data() + first[v + 1]; }
    int32_t degree(int32_t v) const { return first[v + 1] - first[v] + slot_at[v + 1] - slot_at[v]; }
    // Where v stands in its factors.
    const int32_t* slots_begin(int32_t v) const { return slots.data() + slot_at[v]; }
    const int32_t* slots_end(int32_t v) const { return slots.data() + slot_at[v + 1]; }
    const int32_t* near_begin(int32_t v) const { return near.data() + near_at[v]; }
    const int32_t* near_end(int32_t v) const { return near.data() + near_at[v + 1]; }

    double pair(int32_t e, const Labels& x) const {
        return tables[table_at[e] + int64_t(x[source[e]]) * count[target[e]] + x[target[e]]];
    }
    // Where the entry of a factor's table under labels x is.
    int64_t entry(const Factor& f, const Labels& x) const {
        int64_t place = f.table;
        for (int32_t i = f.first; i < f.first + f.order; ++i) place += members[i].stride * x[members[i].node];
        return place;
    }

    double score(const Labels& x) const {
        double total = 0;
        for (int32_t v = 0; v < nodes; ++v) total += unary[at[v] + x[v]];
        for (int32_t e = 0; e < edges; ++e) total += pair(e, x);
        for (const Factor& f : factors) total += tables[entry(f, x)];
        return total;
    }

    // Arcs, places in factors and neighbours of all nodes.
    void link() {
        first.assign(nodes + 1, 0);
        for (int32_t e = 0; e < edges; ++e) ++first[source[e] + 1], ++first[target[e] + 1];
        for (int32_t v = 0; v < nodes; ++v) first[v + 1] += first[v];
        arcs.resize(2 * size_t(edges));
        std::vector<int32_t> next(first.begin(), first.end() - 1);
        for (int32_t e = 0; e < edges; ++e) {
            const int32_t s = source[e], t = target[e];
            arcs[next[s]++] = {t, e, table_at[e], count[t], 1, true};
            arcs[next[t]++] = {s, e, table_at[e], 1, count[t], false};
        }
        most = nodes ? *std::max_element(count.begin(), count.end()) : 1;
        slot_at.assign(nodes + 1, 0);
        for (const Member& m : members) ++slot_at[m.node + 1];
        for (int32_t v = 0; v < nodes; ++v) slot_at[v + 1] += slot_at[v];
        slots.resize(members.size()), factor_of.resize(members.size());
        next.assign(slot_at.begin(), slot_at.end() - 1);
        for (size_t i = 0; i < members.size(); ++i) slots[next[members[i].node]++] = int32_t(i);
        for (size_t f = 0; f < factors.size(); ++f) {
            largest = std::max(largest, factors[f].size);
            for (int32_t i = 0; i < factors[f].order; ++i) factor_of[factors[f].first + i] = int32_t(f);
        }
        near_at.assign(1, 0), near.clear();
        std::vector<int32_t> seen(nodes, -1);
        for (int32_t v = 0; v < nodes; ++v) {
            const auto meet = [&](int32_t u) {
                if (u != v && seen[u] != v) seen[u] = v, near.push_back(u);
            };
            for (const Arc* a = begin(v); a != end(v); ++a) meet(a->other);
            for (const int32_t* s = slots_begin(v); s != slots_end(v); ++s) {
                const Factor& f = factors[factor_of[*s]];
                for (int32_t i = f.first; i < f.first + f.order; ++i) meet(members[i].node);
            }
            near_at.push_back(int32_t(near.size()));
        }
    }

    // Edges come first, then factors, in `low` and here.
    int32_t num_tables() const { return edges + int32_t(factors.size()); }
    double* table(int32_t t) { return tables.data() + (t < edges ? table_at[t] : factors[t - edges].table); }
    const double* table(int32_t t) const { return tables.data() + (t < edges ? table_at[t] : factors[t - edges].table); }
    int64_t entries(int32_t t) const {
        return t < edges ? int64_t(count[source[t]]) * count[target[t]] : factors[t - edges].size;
    }
    bool barred(int32_t t, double value) const { return penalty > 0 && value < low[t] - 0.5 * penalty; }

    // Replace -inf in tables by the lowest allowed value less the penalty, and find `floor` and `scale`.
    void settle() {
        double least = 0, last = 0;
        std::vector<double> ranges;  // of tables that are not constant
        std::vector<double> squares(nodes, 0.0);
        bool some = false;
        const auto look = [&](const double* values, int64_t size) {
            double low = 1e300, high = -1e300;
            for (int64_t i = 0; i < size; ++i) {
                if (values[i] < FORBIDDEN) {
                    some = true;
                    continue;
                }
                low = std::min(low, values[i]), high = std::max(high, values[i]);
            }
            if (high < low) low = high = 0;  // nothing is allowed
            least += low, ceiling += high, range += high - low, last = low;
            if (high > low) ranges.push_back(high - low);
            return high - low;
        };
        for (int32_t v = 0; v < nodes; ++v) {
            const double each = look(unary.data() + at[v], count[v]);
            squares[v] += each * each;
        }
        for (int32_t t = 0; t < num_tables(); ++t) {
            const double each = look(table(t), entries(t));
            if (t < edges) {
                squares[source[t]] += each * each, squares[target[t]] += each * each;
            } else {
                const Factor& f = factors[t - edges];
                for (int32_t i = f.first; i < f.first + f.order; ++i) squares[members[i].node] += each * each;
            }
            low.push_back(last);
        }
        const auto own = nodes - std::count(between.begin(), between.end(), 1);
        for (int32_t v = 0; v < nodes; ++v)
            if (between.empty() || !between[v]) scale += std::sqrt(squares[v]) / double(own);
        if (!ranges.empty()) {
            const auto place = ranges.begin() + int64_t(ranges.size() / 10);
            std::nth_element(ranges.begin(), place, ranges.end());
            const double mean = std::accumulate(ranges.begin(), ranges.end(), 0.0) / double(ranges.size());
            if (*place < FINE * mean) fine = *place;
        }
        wall = range + std::max(1.0, 1e-6 * (range + std::fabs(least)));
        if (!some) return;
        penalty = wall;
        floor = least - 1e-9 * (range + std::fabs(least) + 1);
        wall += penalty;
        if (scale == 0) scale = 1;
        for (int32_t t = 0; t < num_tables(); ++t) {
            double* values = table(t);
            for (int64_t i = entries(t); i-- > 0;)
                if (values[i] < FORBIDDEN) values[i] = low[t] - penalty;
        }
    }

    bool allowed(double score) const { return penalty == 0 || score >= floor; }
};

}  // namespace search
