// A forest as a list of its edges, each from a leaf to its parent, in the order in which leaves are peeled off.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace trees {

// Mirrors `_Arguments` in _native.py.
struct Arguments {
    int64_t replicas, nodes, edges, states, graphs;  // the most states of a node
    const int64_t* ends;                  // [2, edges]
    const int64_t* graph;                 // [nodes]; null: a single graph
    const int64_t *at, *table_at;         // [nodes + 1], [edges]: where states and tables begin; null: all alike
    const void *node, *edge;              // states of all nodes, and tables of all edges, of each replica
    int64_t node_step, edge_step;         // from one replica to the next; 0 where they share
    int64_t gradient_step;                // the same in `edge_gradient`
    double* totals;                       // [R, graphs]: log Z, or scores of labels
    const void* wishes;                   // [R, states of all nodes]: choose among the best states of a root
    int64_t* labels;                      // [R, nodes]
    const double* weight;                 // [R, graphs]: derivative by the totals
    void *node_gradient, *edge_gradient;  // as `node` and `edge`, but contiguous; the latter 0 at first

    int64_t begin(int64_t v) const { return at ? at[v] : v * states; }
    int64_t count(int64_t v) const { return at ? at[v + 1] - at[v] : states; }
    int64_t table(int64_t e) const { return table_at ? table_at[e] : e * states * states; }
};

struct Step {
    int64_t leaf, parent, edge;
    bool along;  // the edge is stored from leaf to parent
};

struct Forest {
    std::vector<Step> steps;
    std::vector<char> peeled;  // [nodes]: the others are roots
};

enum class Shape { forest, loops, out_of_range };

// In the order of accord/graphs/structure/_peeling.py, so that sums over neighbours are rounded alike.
inline Shape peel(const Arguments& given, Forest& forest) {
    const int64_t *source = given.ends, *target = given.ends + given.edges;
    // For a leaf, the sums of its neighbours and of its edges are the one neighbour and the one edge.
    struct Around {
        int64_t degree = 0, neighbours = 0, edges = 0;
    };
    std::vector<Around> around(given.nodes);
    for (int64_t v = 0; v < given.nodes && given.graph; ++v)
        if (given.graph[v] < 0 || given.graph[v] >= given.graphs) return Shape::out_of_range;
    for (int64_t e = 0; e < given.edges; ++e) {
        if (std::min(source[e], target[e]) < 0 || std::max(source[e], target[e]) >= given.nodes)
            return Shape::out_of_range;
        for (const auto& [near, far] : {std::pair(source[e], target[e]), std::pair(target[e], source[e])})
            ++around[near].degree, around[near].neighbours += far, around[near].edges += e;
    }
    forest.peeled.assign(given.nodes, 0);
    forest.steps.reserve(given.edges);
    std::vector<int64_t> frontier, next;
    for (int64_t v = 0; v < given.nodes; ++v)
        if (around[v].degree == 1) frontier.push_back(v);
    while (!frontier.empty()) {
        const size_t first = forest.steps.size();
        for (const int64_t v : frontier) {
            const int64_t parent = around[v].neighbours, edge = around[v].edges;
            // Of two leaves that are left with only each other, the one with the lower number is the root.
            if (around[parent].degree != 1 || v > parent) forest.steps.push_back({v, parent, edge, source[edge] == v});
        }
        next.clear();
        for (size_t s = first; s < forest.steps.size(); ++s) {
            const Step& step = forest.steps[s];
            Around& parent = around[step.parent];
            forest.peeled[step.leaf] = 1, around[step.leaf].degree = 0;
            --parent.degree, parent.neighbours -= step.leaf, parent.edges -= step.edge;
            next.push_back(step.parent);
        }
        std::sort(next.begin(), next.end());
        next.erase(std::unique(next.begin(), next.end()), next.end());
        frontier.clear();
        for (const int64_t v : next)
            if (around[v].degree == 1) frontier.push_back(v);
    }
    return int64_t(forest.steps.size()) == given.edges ? Shape::forest : Shape::loops;
}

}  // namespace trees
