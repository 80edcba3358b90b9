// A field as arrays, and what of it has to be decided: states that are possible, and nodes that have several of them.
#pragma once
#include <cmath>

#include "order.hpp"

namespace exact {

// Mirrors `_Arguments` in _native.py.
struct Arguments {
    int64_t replicas, table_replicas, nodes, factors, graphs;
    const int64_t *at, *scope_at, *scope, *table_at, *graph;
    const double *unary, *tables;
    int64_t unary_size, table_size;  // of one replica
    double max_table, max_tables;    // entries of one table, and of all, in one replica
    int64_t seed;
    // What to make: beliefs, the best labels, samples.
    int64_t maximise;  // max instead of sum
    const int64_t* belief_at;
    double *totals, *unary_beliefs, *factor_beliefs;  // [R, graphs], [R, unary_size], [R, belief_size]
    int64_t belief_size;
    int64_t* labels;  // [R, nodes]
    int64_t samples;
    const double* uniform;  // [R, nodes, samples]
    int64_t* sampled;       // [R, nodes, samples]
    // Where it is too large: the nodes of the smallest clique beyond max_table, or all entries together.
    int64_t* clique;  // [nodes]
    int64_t clique_size;
    double entries;
};

// Possible states of node v are state[at[v]] to state[at[v + 1]]. Nodes with several are free, and are named by their
// position in the order of elimination.
struct Model {
    const Arguments& given;
    std::vector<int64_t> at;
    Nodes state;
    Nodes node;                // [free]: by position
    Nodes place;               // [nodes]: position, or -1 for nodes with one possible state
    std::vector<int64_t> size; // [free]: how many states are possible
    std::vector<char> whole;   // [factors]: all states of its variables are possible
    std::vector<int64_t> factor_at;
    Nodes factor;              // those whose first free variable is at p: factor[factor_at[p]] to factor[factor_at[p + 1]]
    Nodes settled;             // factors without free variables
    Tree tree;

    explicit Model(const Arguments& arguments) : given(arguments) {}

    int64_t count(int64_t v) const { return at[v + 1] - at[v]; }
    int64_t states(int64_t v) const { return given.at[v + 1] - given.at[v]; }

    void find_states() {
        at.assign(1, 0);
        for (int64_t v = 0; v < given.nodes; ++v) {
            for (int64_t s = given.at[v]; s < given.at[v + 1]; ++s) {
                bool possible = false;
                for (int64_t r = 0; r < given.replicas && !possible; ++r)
                    possible = given.unary[r * given.unary_size + s] > -INFINITE;
                if (possible) state.push_back(int32_t(s - given.at[v]));
            }
            if (int64_t(state.size()) == at.back()) state.push_back(0);  // infeasible, which the passes find
            at.push_back(int64_t(state.size()));
        }
        whole.assign(given.factors, 1);
        for (int64_t f = 0; f < given.factors; ++f)
            for (int64_t i = given.scope_at[f]; i < given.scope_at[f + 1]; ++i)
                if (count(given.scope[i]) < states(given.scope[i])) whole[f] = 0;
    }

    // Chooses the order of elimination. Returns false where a table would be too large.
    bool arrange(Arguments& result) {
        Nodes free, number(given.nodes, -1);
        std::vector<double> bits;
        for (int64_t v = 0; v < given.nodes; ++v)
            if (count(v) > 1) number[v] = int32_t(free.size()), free.push_back(int32_t(v)), bits.push_back(std::log2(double(count(v))));
        std::vector<std::pair<int32_t, int32_t>> links;
        for (int64_t f = 0; f < given.factors; ++f)
            for (int64_t i = given.scope_at[f]; i < given.scope_at[f + 1]; ++i)
                for (int64_t j = given.scope_at[f]; j < i; ++j)
                    if (number[given.scope[i]] >= 0 && number[given.scope[j]] >= 0)
                        links.push_back({number[given.scope[i]], number[given.scope[j]]});
        const Graph graph = make_graph(int32_t(free.size()), links);
        std::vector<std::pair<int32_t, int32_t>>().swap(links);
        Options options;
        options.limit = given.max_table * (1 + 1e-9);  // cliques are measured in rounded logs
        options.weight = 20.0 * double(std::max<int64_t>(given.replicas, 1));
        options.seed = uint64_t(given.seed);
        Planned planned = Planner(graph, bits, options).plan();
        result.clique_size = 0;
        if (!planned.too_big.empty()) {
            for (int32_t v : planned.too_big) result.clique[result.clique_size++] = free[v];
            return false;
        }
        result.entries = 0;
        make_tree(graph, planned.order, tree, [](int32_t, const int32_t*, const int32_t*) { return true; });
        planned.order = subtrees_together(tree, planned.order);
        make_tree(graph, planned.order, tree, [&](int32_t p, const int32_t* first, const int32_t* last) {
            double entries = double(count(free[planned.order[p]]));
            for (const int32_t* q = first; q != last; ++q) entries *= double(count(free[planned.order[*q]]));
            if (last - first > 1) result.entries += entries;  // pairs are no larger than the field's own tables
            if (last - first + 1 > result.clique_size) result.clique_size = last - first + 1;
            return true;
        });
        if (result.entries > given.max_tables) return false;
        place.assign(given.nodes, -1);
        for (int32_t v : planned.order) {
            place[free[v]] = int32_t(node.size());
            node.push_back(free[v]);
            size.push_back(count(free[v]));
        }
        assign_factors();
        return true;
    }

  private:
    void assign_factors() {
        const int64_t free = int64_t(node.size());
        Nodes first(given.factors, -1);
        factor_at.assign(free + 1, 0);
        for (int64_t f = 0; f < given.factors; ++f) {
            for (int64_t i = given.scope_at[f]; i < given.scope_at[f + 1]; ++i) {
                const int32_t p = place[given.scope[i]];
                if (p >= 0 && (first[f] < 0 || p < first[f])) first[f] = p;
            }
            if (first[f] < 0) settled.push_back(int32_t(f));
            else ++factor_at[first[f] + 1];
        }
        for (int64_t p = 0; p < free; ++p) factor_at[p + 1] += factor_at[p];
        factor.resize(factor_at[free]);
        std::vector<int64_t> next(factor_at.begin(), factor_at.end() - 1);
        for (int64_t f = 0; f < given.factors; ++f)
            if (first[f] >= 0) factor[next[first[f]]++] = int32_t(f);
    }
};

}  // namespace exact
