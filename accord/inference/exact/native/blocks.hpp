// Biconnected components: blocks of edges that share cycles. A spanning tree is one of each block, chosen apart.
#pragma once
#include "graph.hpp"

namespace exact {

// The block of each edge, numbered from 0 (Hopcroft and Tarjan 1973, without recursion).
inline Nodes find_blocks(int32_t nodes, const std::vector<std::pair<int32_t, int32_t>>& edges, int32_t& count) {
    std::vector<int64_t> at(nodes + 1, 0);
    for (const auto& [a, b] : edges) ++at[a + 1], ++at[b + 1];
    for (int32_t v = 0; v < nodes; ++v) at[v + 1] += at[v];
    Nodes arc(2 * edges.size());
    std::vector<int64_t> next(at.begin(), at.end() - 1);
    for (size_t e = 0; e < edges.size(); ++e) arc[next[edges[e].first]++] = int32_t(e), arc[next[edges[e].second]++] = int32_t(e);
    next.assign(at.begin(), at.end() - 1);
    Nodes seen(nodes, -1), low(nodes, 0), entry(nodes, -1), block(edges.size(), -1), path, open;
    std::vector<char> used(edges.size(), 0);
    int32_t time = 0;
    count = 0;
    for (int32_t start = 0; start < nodes; ++start) {
        if (seen[start] >= 0) continue;
        path.assign(1, start);
        seen[start] = low[start] = time++;
        while (!path.empty()) {
            const int32_t v = path.back();
            if (next[v] < at[v + 1]) {
                const int32_t e = arc[next[v]++];
                if (used[e]) continue;
                used[e] = 1;
                const int32_t u = edges[e].first == v ? edges[e].second : edges[e].first;
                open.push_back(e);
                if (seen[u] < 0) {
                    seen[u] = low[u] = time++;
                    entry[u] = e;
                    path.push_back(u);
                } else {
                    low[v] = std::min(low[v], seen[u]);
                }
                continue;
            }
            path.pop_back();
            if (path.empty()) break;
            const int32_t parent = path.back();
            low[parent] = std::min(low[parent], low[v]);
            if (low[v] < seen[parent]) continue;
            // Nothing below v leads above its parent: the edges since v was entered are a block.
            int32_t e;
            do e = open.back(), open.pop_back(), block[e] = count;
            while (e != entry[v]);
            ++count;
        }
    }
    return block;
}

}  // namespace exact
