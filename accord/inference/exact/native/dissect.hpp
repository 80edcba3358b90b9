// Orders from breadth-first levels: along the levels, and by nested dissection.
#pragma once
#include "graph.hpp"

namespace exact {

// Breadth-first search inside a part of the graph.
class Levels {
  public:
    explicit Levels(const Graph& graph) : graph_(graph), part_(graph.size(), 0), level_(graph.size(), -1) {}

    Nodes& part() { return part_; }  // which part each node belongs to
    const Nodes& reached() const { return reached_; }
    int32_t level(int32_t v) const { return level_[v]; }
    int32_t depth() const { return reached_.empty() ? 0 : level_[reached_.back()]; }

    // From a node at the end of the part that contains `start`: far from everything else.
    void search_from_end(int32_t start) {
        search(start);
        for (int turn = 0; turn < 4; ++turn) {
            const int32_t before = depth(), end = reached_.back();
            search(end);
            if (depth() <= before) break;
        }
    }

    void search(int32_t start) {
        for (int32_t v : reached_) level_[v] = -1;
        reached_.assign(1, start);
        level_[start] = 0;
        for (size_t next = 0; next < reached_.size(); ++next) {
            const int32_t v = reached_[next];
            const size_t first = reached_.size();
            for (const int32_t* u = graph_.begin(v); u != graph_.end(v); ++u)
                if (part_[*u] == part_[start] && level_[*u] < 0) level_[*u] = level_[v] + 1, reached_.push_back(*u);
            std::sort(reached_.begin() + first, reached_.end(),
                      [&](int32_t a, int32_t b) { return graph_.degree(a) < graph_.degree(b); });
        }
    }

  private:
    const Graph& graph_;
    Nodes part_, level_, reached_;
};

// Level by level, from the last (Cuthill and McKee 1969, reversed): on strips, cliques are as large as they are wide.
inline Nodes order_by_levels(const Graph& graph) {
    Levels levels(graph);
    Nodes order;
    for (int32_t v = 0; v < graph.size(); ++v) {
        if (levels.part()[v]) continue;
        levels.search_from_end(v);
        order.insert(order.end(), levels.reached().rbegin(), levels.reached().rend());
        for (int32_t u : levels.reached()) levels.part()[u] = 1;
    }
    return order;
}

// Both sides of a separator before the separator itself, and so on inside the sides (George 1973). The separator is
// the smallest level that leaves a quarter of the nodes on each side.
inline Nodes order_by_dissection(const Graph& graph) {
    Levels levels(graph);
    Nodes order(graph.size());
    for (int32_t v = 0; v < graph.size(); ++v) order[v] = v;
    std::vector<std::pair<int32_t, int32_t>> parts{{0, graph.size()}};
    int32_t names = 0;
    Nodes count, sides[3];
    while (!parts.empty()) {
        const auto [first, last] = parts.back();
        parts.pop_back();
        if (last - first <= 3) continue;
        const int32_t name = ++names;
        for (int32_t i = first; i < last; ++i) levels.part()[order[i]] = name;
        levels.search_from_end(order[first]);
        const int32_t depth = levels.depth(), reached = int32_t(levels.reached().size());
        for (auto& side : sides) side.clear();
        if (reached < last - first) {
            for (int32_t v : levels.reached()) levels.part()[v] = 0;
            sides[0] = levels.reached();
            for (int32_t i = first; i < last; ++i)
                if (levels.part()[order[i]] == name) sides[1].push_back(order[i]);
        } else if (depth < 2) {
            continue;  // nothing separates it
        } else {
            count.assign(depth + 1, 0);
            for (int32_t v : levels.reached()) ++count[levels.level(v)];
            int32_t cut = -1, below = count[0], middle = -1;
            for (int32_t l = 1; l < depth; below += count[l++]) {
                if (middle < 0 && 2 * (below + count[l]) >= reached) middle = l;
                const bool even = 4 * below >= reached && 4 * (below + count[l]) <= 3 * reached;
                if (even && (cut < 0 || count[l] < count[cut])) cut = l;
            }
            if (cut < 0) cut = middle < 0 ? depth - 1 : middle;
            for (int32_t v : levels.reached()) {
                int side = levels.level(v) < cut ? 0 : levels.level(v) > cut ? 1 : 0;
                if (levels.level(v) == cut)
                    for (const int32_t* u = graph.begin(v); u != graph.end(v); ++u)
                        if (levels.part()[*u] == name && levels.level(*u) > cut) side = 2;
                sides[side].push_back(v);
            }
        }
        int32_t at = first;
        for (const auto& side : sides) at = int32_t(std::copy(side.begin(), side.end(), order.begin() + at) - order.begin());
        const int32_t one = first + int32_t(sides[0].size()), two = one + int32_t(sides[1].size());
        parts.push_back({first, one});
        parts.push_back({one, two});
    }
    return order;
}

}  // namespace exact
