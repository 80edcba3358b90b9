// The order of a sequential sweep: from the rim of each connected part to its centre and back.
//
// As in kernels/reference/_levels.py and _sequential.py, with factors of any number of variables. The level of a
// variable is its distance from the centre. A message waits for the sources nearest to the centre: if none of them is
// nearer than its target, it goes inwards, the farther the earlier; otherwise outwards, the nearer the earlier.
#pragma once
#include "model.hpp"

struct Steps {
    std::vector<int32_t> slots;         // all slots, by graph, then in the order of a sweep
    std::vector<int64_t> graph_at;      // [graphs + 1]: the steps of a graph
    std::vector<int64_t> step_at;       // [steps + 1]: slots that are sent at the same time
    std::vector<int64_t> sources_at;    // [steps + 1]
    std::vector<int32_t> sources;       // variables from which a step's messages come
    int64_t largest = 0;                // numbers of the messages of a step

    explicit Steps(const Graph& graph) {
        const Arguments& a = graph.a;
        const std::vector<int32_t> level = levels(graph);
        const int32_t deepest = level.empty() ? 0 : *std::max_element(level.begin(), level.end());
        std::vector<int32_t> turn(graph.slots);
        for (int64_t f = 0; f < a.factors; ++f)
            for (int64_t s = graph.first(f); s < graph.first(f + 1); ++s) {
                int32_t near = deepest + 1;
                for (int64_t t = graph.first(f); t < graph.first(f + 1); ++t)
                    if (t != s) near = std::min(near, level[a.scope[t]]);
                turn[s] = near > deepest ? -1 : near >= level[a.scope[s]] ? deepest - near : deepest + 1 + near;
            }
        slots.resize(graph.slots);
        for (int64_t s = 0; s < graph.slots; ++s) slots[s] = int32_t(s);
        const auto graph_of = [&](int32_t s) { return a.graph[a.scope[s]]; };
        std::stable_sort(slots.begin(), slots.end(), [&](int32_t s, int32_t t) {
            return graph_of(s) != graph_of(t) ? graph_of(s) < graph_of(t) : turn[s] < turn[t];
        });
        std::vector<int64_t> seen(a.nodes, -1);
        graph_at.assign(a.graphs + 1, 0);
        step_at.assign(1, 0), sources_at.assign(1, 0);
        for (int64_t k = 0, next; k < graph.slots; k = next) {
            const int32_t s = slots[k];
            const int64_t step = int64_t(step_at.size()) - 1;
            int64_t numbers = 0;
            for (next = k; next < graph.slots; ++next) {
                const int32_t t = slots[next];
                if (graph_of(t) != graph_of(s) || turn[t] != turn[s]) break;
                numbers += graph.states(t);
                const int32_t f = graph.factor_of[t];
                for (int64_t u = graph.first(f); u < graph.first(f + 1); ++u)
                    // All variables of a rule, of which all messages are computed at once.
                    if ((u != t || graph.is_rule(f)) && seen[a.scope[u]] != step)
                        seen[a.scope[u]] = step, sources.push_back(int32_t(a.scope[u]));
            }
            largest = std::max(largest, numbers);
            step_at.push_back(next), sources_at.push_back(int64_t(sources.size()));
            graph_at[graph_of(s) + 1] = step + 1;
        }
        for (int64_t g = 0; g < a.graphs; ++g) graph_at[g + 1] = std::max(graph_at[g + 1], graph_at[g]);
    }

  private:
    // Distance of every variable from the centre of its part: the variable closest to both ends of a long path.
    static std::vector<int32_t> levels(const Graph& graph) {
        const Arguments& a = graph.a;
        std::vector<int32_t> distance(a.nodes, -1), farthest(a.nodes, 0), part;
        std::vector<int32_t> visited(a.factors, -1);
        int32_t search = 0;
        const auto measure = [&](int32_t from) {  // distances from one variable, and the variables of its part
            for (int32_t v : part) distance[v] = -1;
            part.assign(1, from), distance[from] = 0, ++search;
            for (size_t k = 0; k < part.size(); ++k) {
                const int32_t v = part[k];
                for (int64_t j = graph.into_at[v]; j < graph.into_at[v + 1]; ++j) {
                    const int32_t f = graph.factor_of[graph.into[j]];
                    if (visited[f] == search) continue;
                    visited[f] = search;
                    for (int64_t s = graph.first(f); s < graph.first(f + 1); ++s) {
                        const int32_t u = int32_t(a.scope[s]);
                        if (distance[u] < 0) distance[u] = distance[v] + 1, part.push_back(u);
                    }
                }
            }
        };
        const auto first_best = [&](const auto& cost) {  // the lowest-numbered one among equals
            int32_t best = part[0];
            for (int32_t v : part)
                if (cost(v) < cost(best) || (cost(v) == cost(best) && v < best)) best = v;
            return best;
        };
        for (int32_t v = 0; v < a.nodes; ++v) {
            if (distance[v] >= 0) continue;
            part.clear();
            measure(v);
            const auto far = [&](int32_t u) { return -distance[u]; };
            measure(first_best(far));
            for (int32_t u : part) farthest[u] = distance[u];
            measure(first_best(far));
            for (int32_t u : part) farthest[u] = std::max(farthest[u], distance[u]);
            measure(first_best([&](int32_t u) { return farthest[u]; }));
        }
        return distance;
    }
};
