// An undirected graph, and the tree of cliques that eliminating its nodes in a given order makes.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace exact {

using Nodes = std::vector<int32_t>;
constexpr double INFINITE = std::numeric_limits<double>::infinity();

// Neighbours of node v are other[at[v]] to other[at[v + 1]], ascending, each once.
struct Graph {
    std::vector<int64_t> at;
    Nodes other;

    int32_t size() const { return int32_t(at.size()) - 1; }
    int64_t degree(int32_t v) const { return at[v + 1] - at[v]; }
    const int32_t* begin(int32_t v) const { return other.data() + at[v]; }
    const int32_t* end(int32_t v) const { return other.data() + at[v + 1]; }
};

inline Graph make_graph(int32_t nodes, const std::vector<std::pair<int32_t, int32_t>>& links) {
    std::vector<int64_t> start(nodes + 1, 0);
    for (const auto& [a, b] : links) ++start[a + 1], ++start[b + 1];
    for (int32_t v = 0; v < nodes; ++v) start[v + 1] += start[v];
    Nodes row(2 * links.size());
    std::vector<int64_t> next(start.begin(), start.end() - 1);
    for (const auto& [a, b] : links) row[next[a]++] = b, row[next[b]++] = a;
    Graph graph;
    graph.at.assign(nodes + 1, 0);
    int64_t kept = 0;
    for (int32_t v = 0; v < nodes; ++v) {
        std::sort(row.begin() + start[v], row.begin() + start[v + 1]);
        const auto last = std::unique(row.begin() + start[v], row.begin() + start[v + 1]);
        kept = std::copy(row.begin() + start[v], last, row.begin() + kept) - row.begin();
        graph.at[v + 1] = kept;
    }
    row.resize(kept);
    graph.other = std::move(row);
    return graph;
}

// Nodes are named by their position in the order of elimination. The separator of p are the nodes around it when it is
// eliminated, ascending. The parent of p is the first of them; its clique contains the whole separator.
struct Tree {
    std::vector<int64_t> at;        // [size + 1]
    Nodes separator;                // of p: separator[at[p]] to separator[at[p + 1]]
    std::vector<int64_t> child_at;  // [size + 1]
    Nodes child;                    // of p: child[child_at[p]] to child[child_at[p + 1]]

    int32_t size() const { return int32_t(at.size()) - 1; }
    int64_t width(int32_t p) const { return at[p + 1] - at[p]; }
    const int32_t* begin(int32_t p) const { return separator.data() + at[p]; }
    const int32_t* end(int32_t p) const { return separator.data() + at[p + 1]; }
};

// The tree of an order. `accept(p, first, last)` sees each separator, and ends the construction by returning false.
template <class Accept>
bool make_tree(const Graph& graph, const Nodes& order, Tree& tree, Accept accept) {
    const int32_t size = int32_t(order.size());
    Nodes place(graph.size()), seen(size, -1), first(size, -1), next(size, -1);
    for (int32_t p = 0; p < size; ++p) place[order[p]] = p;
    tree.at.assign(1, 0);
    tree.separator.clear();
    for (int32_t p = 0; p < size; ++p) {
        const size_t begin = tree.separator.size();
        const auto take = [&](int32_t q) {
            if (q > p && seen[q] != p) seen[q] = p, tree.separator.push_back(q);
        };
        for (const int32_t* u = graph.begin(order[p]); u != graph.end(order[p]); ++u) take(place[*u]);
        for (int32_t c = first[p]; c >= 0; c = next[c])
            for (int64_t i = tree.at[c]; i < tree.at[c + 1]; ++i) take(tree.separator[i]);
        std::sort(tree.separator.begin() + begin, tree.separator.end());
        tree.at.push_back(int64_t(tree.separator.size()));
        if (!accept(p, tree.begin(p), tree.end(p))) return false;
        if (tree.separator.size() > begin) {
            const int32_t parent = tree.separator[begin];
            next[p] = first[parent], first[parent] = p;
        }
    }
    tree.child_at.assign(1, 0);
    tree.child.clear();
    for (int32_t p = 0; p < size; ++p) {
        for (int32_t c = first[p]; c >= 0; c = next[c]) tree.child.push_back(c);
        tree.child_at.push_back(int64_t(tree.child.size()));
    }
    return true;
}

// The same order up to independent nodes, with every subtree in one piece: passes then stay in cache.
inline Nodes subtrees_together(const Tree& tree, const Nodes& order) {
    Nodes together(order.size()), waiting;
    size_t place = order.size();
    for (int32_t p = 0; p < tree.size(); ++p)
        if (tree.width(p) == 0) waiting.push_back(p);
    while (!waiting.empty()) {  // from the end: a node, then the subtrees of its children
        const int32_t p = waiting.back();
        waiting.pop_back();
        together[--place] = order[p];
        waiting.insert(waiting.end(), tree.child.begin() + tree.child_at[p], tree.child.begin() + tree.child_at[p + 1]);
    }
    return together;
}

}  // namespace exact
