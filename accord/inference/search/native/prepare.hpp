// What Python passes, its connected components, and the model of each without impossible states.
#pragma once
#include <deque>

#include "model.hpp"

namespace search {

// Mirrored in _native.py. States of node v are numbered at[v] to at[v + 1].
struct Arguments {
    int64_t nodes, edges;
    const int64_t *at, *source, *target, *table_at;
    const double *unary, *tables;  // -inf: forbidden
    double budget;   // seconds
    double used;     // seconds of the budget that passed before; apart, because what is tried depends on the budget
    double work;     // instead of turns until the budget ends: one turn of that much work for each node; 0: turns
    int64_t ways;    // which ways are open, as bits: see Way
    uint64_t seed;
    const volatile int32_t* stop;  // not 0: end as soon as possible
    int64_t* labels;     // [nodes]: state, counted from the node's first; -1 where no labelling was found
    int64_t* component;  // [nodes]
    double *score, *bound;      // [components]; room for one for each node
    int32_t *method, *proof;    // [components]: see Method
    int32_t* infeasible;        // [components]: proved
    int64_t components;
};

// Nodes of every connected component, one after the other.
struct Components {
    std::vector<int32_t> nodes, first;
    std::vector<int32_t> edges, first_edge;

    explicit Components(const Arguments& a) {
        std::vector<int32_t> parent(a.nodes);
        for (int64_t v = 0; v < a.nodes; ++v) parent[v] = int32_t(v);
        const auto root = [&](int32_t v) {
            while (parent[v] != v) v = parent[v] = parent[parent[v]];
            return v;
        };
        for (int64_t e = 0; e < a.edges; ++e) {
            const int32_t s = root(int32_t(a.source[e])), t = root(int32_t(a.target[e]));
            if (s != t) parent[std::max(s, t)] = std::min(s, t);
        }
        int32_t count = 0;
        for (int64_t v = 0; v < a.nodes; ++v) {
            const int32_t r = root(int32_t(v));
            a.component[v] = r == v ? count++ : a.component[r];
        }
        const auto group = [&](int64_t size, const int64_t* of, auto which, std::vector<int32_t>& items,
                               std::vector<int32_t>& begin) {
            (void)of;
            begin.assign(count + 1, 0), items.resize(size);
            for (int64_t i = 0; i < size; ++i) ++begin[which(i) + 1];
            for (int32_t c = 0; c < count; ++c) begin[c + 1] += begin[c];
            std::vector<int32_t> next(begin.begin(), begin.end());
            for (int64_t i = 0; i < size; ++i) items[next[which(i)]++] = int32_t(i);
        };
        group(a.nodes, nullptr, [&](int64_t v) { return a.component[v]; }, nodes, first);
        group(a.edges, nullptr, [&](int64_t e) { return a.component[a.source[e]]; }, edges, first_edge);
    }
    int32_t size() const { return int32_t(first.size()) - 1; }
};

// One component, and which states of the whole its nodes kept.
struct Part {
    std::vector<int32_t> nodes;
    std::vector<int32_t> states;  // [model.size()]: state in the numbers of Python
    Model model;
};

// Removes states that no neighbour's state may stand beside (arc consistency). False: some node has none left.
inline bool narrow(const Arguments& a, const int32_t* edges, int32_t count, std::vector<char>& alive) {
    std::vector<int32_t> barred;  // edges with forbidden pairs
    for (int32_t i = 0; i < count; ++i) {
        const double* table = a.tables + a.table_at[edges[i]];
        const int64_t size = a.table_at[edges[i] + 1] - a.table_at[edges[i]];
        for (int64_t j = 0; j < size; ++j)
            if (table[j] < -1.7e308) {
                barred.push_back(edges[i]);
                break;
            }
    }
    std::vector<std::vector<int32_t>> around;
    std::vector<int64_t> name;  // nodes that have such edges
    for (int32_t e : barred) name.push_back(a.source[e]), name.push_back(a.target[e]);
    std::sort(name.begin(), name.end());
    name.erase(std::unique(name.begin(), name.end()), name.end());
    const auto place = [&](int64_t v) { return std::lower_bound(name.begin(), name.end(), v) - name.begin(); };
    around.resize(name.size());
    for (size_t i = 0; i < barred.size(); ++i) {
        around[place(a.source[barred[i]])].push_back(int32_t(i));
        around[place(a.target[barred[i]])].push_back(int32_t(i));
    }
    std::deque<int32_t> waiting;
    std::vector<char> queued(barred.size(), 1);
    for (size_t i = 0; i < barred.size(); ++i) waiting.push_back(int32_t(i));
    while (!waiting.empty()) {
        const int32_t i = waiting.front(), e = barred[i];
        waiting.pop_front(), queued[i] = 0;
        const int64_t s = a.at[a.source[e]], t = a.at[a.target[e]];
        const int64_t ks = a.at[a.source[e] + 1] - s, kt = a.at[a.target[e] + 1] - t;
        const double* table = a.tables + a.table_at[e];
        for (int side = 0; side < 2; ++side) {
            const int64_t own = side ? kt : ks, far = side ? ks : kt, begin = side ? t : s, other = side ? s : t;
            bool changed = false, any = false;
            for (int64_t x = 0; x < own; ++x) {
                if (!alive[begin + x]) continue;
                bool supported = false;
                for (int64_t y = 0; y < far && !supported; ++y)
                    supported = alive[other + y] && table[side ? y * kt + x : x * kt + y] >= -1.7e308;
                if (supported)
                    any = true;
                else
                    alive[begin + x] = 0, changed = true;
            }
            if (!any) return false;
            if (changed)
                for (int32_t j : around[place(side ? a.target[e] : a.source[e])])
                    if (!queued[j]) queued[j] = 1, waiting.push_back(j);
        }
    }
    return true;
}

// The model of a component; false: it has no allowed labelling. `local` [all nodes] is scratch.
inline bool prepare(const Arguments& a, const Components& parts, int32_t c, std::vector<int32_t>& local,
                    std::vector<char>& alive, Part& part) {
    const int32_t *nodes = parts.nodes.data() + parts.first[c], *edges = parts.edges.data() + parts.first_edge[c];
    const int32_t num_nodes = parts.first[c + 1] - parts.first[c];
    const int32_t num_edges = parts.first_edge[c + 1] - parts.first_edge[c];
    part.nodes.assign(nodes, nodes + num_nodes);
    for (int32_t i = 0; i < num_nodes; ++i) {
        bool any = false;
        for (int64_t s = a.at[nodes[i]]; s < a.at[nodes[i] + 1]; ++s) any |= (alive[s] = a.unary[s] >= -1.7e308);
        if (!any) return false;
    }
    if (!narrow(a, edges, num_edges, alive)) return false;
    Model& m = part.model;
    m.nodes = num_nodes, m.edges = num_edges;
    m.at.assign(1, 0);
    for (int32_t i = 0; i < num_nodes; ++i) {
        local[nodes[i]] = i;
        for (int64_t s = a.at[nodes[i]]; s < a.at[nodes[i] + 1]; ++s)
            if (alive[s]) part.states.push_back(int32_t(s - a.at[nodes[i]])), m.unary.push_back(a.unary[s]);
        m.at.push_back(int64_t(m.unary.size()));
        m.count.push_back(int32_t(m.at[i + 1] - m.at[i]));
    }
    int64_t size = 0;
    for (int32_t i = 0; i < num_edges; ++i) {
        m.source.push_back(local[a.source[edges[i]]]), m.target.push_back(local[a.target[edges[i]]]);
        m.table_at.push_back(size), size += int64_t(m.count[m.source[i]]) * m.count[m.target[i]];
    }
    m.tables.resize(size);
    double* out = m.tables.data();
    for (int32_t i = 0; i < num_edges; ++i) {
        const int32_t s = m.source[i], t = m.target[i];
        const int64_t wide = a.at[a.target[edges[i]] + 1] - a.at[a.target[edges[i]]];
        const double* table = a.tables + a.table_at[edges[i]];
        for (int32_t x = 0; x < m.count[s]; ++x) {
            const double* row = table + int64_t(part.states[m.at[s] + x]) * wide;
            const int32_t* pick = part.states.data() + m.at[t];
            for (int32_t y = 0; y < m.count[t]; ++y) *out++ = row[pick[y]];
        }
    }
    m.link();
    m.settle();
    return true;
}

}  // namespace search
