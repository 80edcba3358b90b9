// Probabilities of edges in spanning trees: exact where elimination is affordable, averages over sampled trees beyond.
#include <new>

#include "blocks.hpp"
#include "resistance.hpp"

namespace {

// Mirrors `_Arguments` in _spanning.py.
struct Arguments {
    int64_t nodes, edges;
    const int64_t *source, *target;
    double budget;           // operations for the exact solution of a block
    double steps;            // of random walks, after which no further tree of a block is begun
    int64_t least, most;     // trees that are sampled
    uint64_t seed;
    double* probability;     // [edges]
    int64_t sampled;         // edges in blocks that were sampled
};

struct Random {
    uint64_t state;
    uint32_t below(uint32_t count) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        return uint32_t((uint64_t(uint32_t(state >> 32)) * count) >> 32);
    }
};

using Edges = std::vector<std::pair<int32_t, int32_t>>;

class Sampler {
  public:
    Sampler(int32_t nodes, const Edges& edges) : edges_(edges), at_(nodes + 1, 0), arc_(2 * edges.size()), count_(edges.size(), 0) {
        for (const auto& [a, b] : edges) ++at_[a + 1], ++at_[b + 1];
        for (int32_t v = 0; v < nodes; ++v) at_[v + 1] += at_[v];
        std::vector<int64_t> next(at_.begin(), at_.end() - 1);
        for (size_t e = 0; e < edges.size(); ++e) {
            const auto [a, b] = edges[e];
            arc_[next[a]++] = {b, int32_t(e)}, arc_[next[b]++] = {a, int32_t(e)};
        }
    }

    // Averages over uniform spanning trees. Edges in none of them are covered by further trees, so that every
    // probability is positive; an average over trees always lies in the spanning tree polytope.
    void average(const Arguments& given, Random& random, std::vector<double>& probability) {
        int64_t trees = 0;
        double steps = 0;
        while (trees < given.most && (trees < given.least || steps < given.steps)) steps += walk(random), ++trees;
        while (cover()) ++trees;
        probability.clear();
        for (int32_t count : count_) probability.push_back(double(count) / double(trees));
    }

  private:
    const Edges& edges_;
    std::vector<int64_t> at_;
    std::vector<std::pair<int32_t, int32_t>> arc_;  // of a node: other end, edge
    exact::Nodes count_;

    // A uniform spanning tree by random walks whose loops are erased (Wilson 1996).
    double walk(Random& random) {
        const int32_t nodes = int32_t(at_.size()) - 1;
        std::vector<char> inside(nodes, 0);
        std::vector<int64_t> exit(nodes);
        int32_t root = 0;
        for (int32_t v = 0; v < nodes; ++v)
            if (at_[v + 1] - at_[v] > at_[root + 1] - at_[root]) root = v;
        inside[root] = 1;
        double steps = 0;
        for (int32_t start = 0; start < nodes; ++start) {
            for (int32_t v = start; !inside[v]; v = arc_[exit[v]].first, ++steps)
                exit[v] = at_[v] + random.below(uint32_t(at_[v + 1] - at_[v]));
            for (int32_t v = start; !inside[v]; v = arc_[exit[v]].first) inside[v] = 1, ++count_[arc_[exit[v]].second];
        }
        return steps;
    }

    // A tree through as many edges as possible that are in none so far. Returns false if there are none.
    bool cover() {
        exact::Nodes parent(at_.size() - 1), found;
        for (size_t v = 0; v < parent.size(); ++v) parent[v] = int32_t(v);
        const auto top = [&](int32_t v) {
            while (parent[v] != v) v = parent[v] = parent[parent[v]];
            return v;
        };
        for (const bool fresh : {true, false})
            for (size_t e = 0; e < edges_.size(); ++e) {
                if ((count_[e] == 0) != fresh) continue;
                const int32_t a = top(edges_[e].first), b = top(edges_[e].second);
                if (a != b) parent[a] = b, found.push_back(int32_t(e));
                if (!fresh && found.size() + 1 == parent.size()) break;
            }
        bool any = false;
        for (int32_t e : found) any = any || count_[e] == 0;
        if (any)
            for (int32_t e : found) ++count_[e];
        return any;
    }
};

void solve(Arguments& given) {
    Edges edges(given.edges);
    for (int64_t e = 0; e < given.edges; ++e) edges[e] = {int32_t(given.source[e]), int32_t(given.target[e])};
    int32_t blocks = 0;
    const exact::Nodes block = exact::find_blocks(int32_t(given.nodes), edges, blocks);
    std::vector<int64_t> at(blocks + 1, 0);
    for (int32_t b : block) ++at[b + 1];
    for (int32_t b = 0; b < blocks; ++b) at[b + 1] += at[b];
    exact::Nodes member(edges.size());
    std::vector<int64_t> next(at.begin(), at.end() - 1);
    for (size_t e = 0; e < edges.size(); ++e) member[next[block[e]]++] = int32_t(e);
    exact::Nodes local(given.nodes, -1), nodes;
    Random random{given.seed * 2 + 1};
    std::vector<double> found;
    given.sampled = 0;
    for (int32_t b = 0; b < blocks; ++b) {
        if (at[b + 1] - at[b] == 1) {  // a bridge is in every tree
            given.probability[member[at[b]]] = 1;
            continue;
        }
        Edges own;
        nodes.clear();
        const auto name = [&](int32_t v) {
            if (local[v] < 0) local[v] = int32_t(nodes.size()), nodes.push_back(v);
            return local[v];
        };
        for (int64_t i = at[b]; i < at[b + 1]; ++i) {
            const int32_t first = name(edges[member[i]].first), second = name(edges[member[i]].second);
            own.push_back({first, second});
        }
        const exact::Graph graph = exact::make_graph(int32_t(nodes.size()), own);
        if (!exact::find_resistances(graph, given.budget, given.seed, own, found)) {
            Sampler(graph.size(), own).average(given, random, found);
            given.sampled += int64_t(own.size());
        }
        for (size_t i = 0; i < own.size(); ++i) given.probability[member[at[b] + i]] = std::min(found[i], 1.0);
        for (int32_t v : nodes) local[v] = -1;
    }
}

}  // namespace

extern "C" int accord_spanning(Arguments* given) {
    try {
        solve(*given);
        return 0;
    } catch (const std::bad_alloc&) {
        return 1;
    }
}
