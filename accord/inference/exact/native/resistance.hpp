// Effective resistances of all edges of a connected graph of unit resistors, by elimination of its Laplacian.
#pragma once
#include "order.hpp"

namespace exact {

// Returns false where elimination would take more than `budget` operations.
//
// L D L' is the Laplacian without the node that comes last in the order. Entries of its inverse are found where L is
// not 0, which includes all edges, from the last column to the first (Takahashi, Fagan and Chen 1973).
inline bool find_resistances(const Graph& graph, double budget, uint64_t seed,
                             const std::vector<std::pair<int32_t, int32_t>>& edges, std::vector<double>& resistance) {
    Options options;
    options.price = Price::square;
    options.budget = budget;
    options.weight = 2;
    options.seed = seed;
    const std::vector<double> ones(graph.size(), 1.0);
    const Planned planned = Planner(graph, ones, options).plan();
    if (!planned.too_big.empty()) return false;
    Tree tree;
    double work = 0;
    const bool whole = make_tree(graph, planned.order, tree, [&](int32_t, const int32_t* first, const int32_t* last) {
        work += double(last - first) * double(last - first);
        return work <= budget;
    });
    if (!whole) return false;
    const int32_t size = graph.size() - 1;  // the last node is grounded
    Nodes place(graph.size());
    for (int32_t p = 0; p <= size; ++p) place[planned.order[p]] = p;
    // Separators are ascending, so that the grounded node is at their end.
    const auto end_of = [&](int32_t p) { return tree.at[p + 1] - (tree.at[p + 1] > tree.at[p] && tree.separator[tree.at[p + 1] - 1] == size); };

    std::vector<double> lower(tree.separator.size(), 0.0), pivot(size), dense(size + 1, 0.0);
    Nodes head(size + 1, -1), next(size + 1, -1);  // columns whose next entry lies in a row
    std::vector<int64_t> row(size + 1);
    for (int32_t q = 0; q < size; ++q) {
        const int32_t v = planned.order[q];
        double diagonal = double(graph.degree(v));
        for (const int32_t* u = graph.begin(v); u != graph.end(v); ++u)
            if (place[*u] > q) dense[place[*u]] -= 1;
        for (int32_t p = head[q], following; p >= 0; p = following) {
            following = next[p];
            const int64_t last = end_of(p);
            int64_t i = row[p];
            const double factor = lower[i] * pivot[p];
            diagonal -= lower[i] * factor;
            for (++i; i < last; ++i) dense[tree.separator[i]] -= lower[i] * factor;
            if (++row[p] < last) next[p] = head[tree.separator[row[p]]], head[tree.separator[row[p]]] = p;
        }
        pivot[q] = diagonal;
        for (int64_t i = tree.at[q]; i < tree.at[q + 1]; ++i) lower[i] = dense[tree.separator[i]] / diagonal, dense[tree.separator[i]] = 0;
        row[q] = tree.at[q];
        if (row[q] < end_of(q)) next[q] = head[tree.separator[row[q]]], head[tree.separator[row[q]]] = q;
    }

    std::vector<double> inverse(tree.separator.size(), 0.0), diagonal(size + 1, 0.0), sum;
    for (int32_t p = size; p-- > 0;) {
        const int64_t first = tree.at[p], last = end_of(p);
        sum.assign(last - first, 0.0);
        for (int64_t i = first; i < last; ++i) {
            const int32_t q = tree.separator[i];
            sum[i - first] += lower[i] * diagonal[q];
            int64_t j = tree.at[q];
            for (int64_t k = i + 1; k < last; ++k) {
                while (tree.separator[j] != tree.separator[k]) ++j;
                sum[k - first] += lower[i] * inverse[j];
                sum[i - first] += lower[k] * inverse[j];
            }
        }
        double own = 1 / pivot[p];
        for (int64_t i = first; i < last; ++i) inverse[i] = -sum[i - first], own -= lower[i] * inverse[i];
        diagonal[p] = own;
    }
    resistance.clear();
    for (const auto& [a, b] : edges) {
        const int32_t p = std::min(place[a], place[b]), q = std::max(place[a], place[b]);
        const auto found = std::lower_bound(tree.begin(p), tree.end(p), q) - tree.begin(p);
        resistance.push_back(q == size ? diagonal[p] : diagonal[p] + diagonal[q] - 2 * inverse[tree.at[p] + found]);
    }
    return true;
}

}  // namespace exact
