// Passes over one replica of a forest: from the leaves to the roots, and back.
#pragma once
#include <cmath>
#include <limits>

#include "peel.hpp"
#include "simd.hpp"

namespace trees {

constexpr double INFINITE = std::numeric_limits<double>::infinity();
constexpr int LANES = WIDTH<double>;
constexpr double GAIN = 1e-13;  // least relative gain of a root's state, as in decoding/_polishing.py

template <class R>
class Passes {
  public:
    Passes(const Arguments& given, const Forest& forest) : given_(given), forest_(forest) {}

    // The best labels, and their scores. False if a tree has no labelling without forbidden states or pairs.
    bool label(int64_t r) {
        const R* node = node_of(r);
        std::vector<R> folded(node, node + given_.begin(given_.nodes)), sent(given_.states);
        for (const Step& step : forest_.steps) {
            const R* leaf = &folded[given_.begin(step.leaf)];
            R* parent = &folded[given_.begin(step.parent)];
            const int64_t count = given_.count(step.parent);
            std::fill(sent.begin(), sent.begin() + count, -std::numeric_limits<R>::infinity());
            each(r, step, [&](int64_t i, int64_t j, int64_t, R value) { sent[j] = std::max(sent[j], leaf[i] + value); });
            for (int64_t j = 0; j < count; ++j) parent[j] += sent[j];
        }
        int64_t* labels = given_.labels + r * given_.nodes;
        const R* wishes = static_cast<const R*>(given_.wishes) + r * given_.begin(given_.nodes);
        for (int64_t v = 0; v < given_.nodes; ++v) {
            if (forest_.peeled[v]) continue;
            const R* score = &folded[given_.begin(v)];
            const int64_t best = first_best(score, v), wish = first_best(wishes + given_.begin(v), v);
            const double most = score[best];
            if (most == -INFINITE) return false;
            labels[v] = double(score[wish]) >= most - GAIN * std::abs(most) ? wish : best;
        }
        for (auto step = forest_.steps.rbegin(); step != forest_.steps.rend(); ++step) {
            const R *leaf = &folded[given_.begin(step->leaf)], *table = table_of(r, *step);
            const int64_t parent = labels[step->parent], count = given_.count(step->leaf);
            const int64_t stride = step->along ? given_.count(step->parent) : 1;
            table += step->along ? parent : parent * count;
            for (int64_t i = 0; i < count; ++i) sent[i] = leaf[i] + table[i * stride];
            labels[step->leaf] = first_best(sent.data(), step->leaf);
        }
        score(r);
        return true;
    }

    // log Z of each graph. False if it is -inf somewhere.
    bool collect(int64_t r, bool keep) {
        double* totals = given_.totals + r * given_.graphs;
        std::fill(totals, totals + given_.graphs, 0.0);
        const R* node = node_of(r);
        inside_.assign(node, node + given_.begin(given_.nodes));
        peak_.resize(given_.states), row_.resize(given_.states + LANES);
        sent_.resize((keep ? std::max<int64_t>(given_.edges, 1) : 1) * given_.states);
        double* sent = sent_.data();
        for (const Step& step : forest_.steps) {
            const double* leaf = &inside_[given_.begin(step.leaf)];
            double* parent = &inside_[given_.begin(step.parent)];
            const int64_t count = given_.count(step.parent);
            std::fill(peak_.begin(), peak_.begin() + count, -INFINITE), std::fill(sent, sent + count, 0.0);
            each(r, step, [&](int64_t i, int64_t j, int64_t, R value) { peak_[j] = std::max(peak_[j], leaf[i] + value); });
            double top = -INFINITE;
            for (int64_t j = 0; j < count; ++j) top = std::max(top, peak_[j]), peak_[j] = peak_[j] == -INFINITE ? 0.0 : peak_[j];
            if (top == -INFINITE) return totals[graph_of(step.leaf)] = top, false;
            exponentials(r, step, leaf, peak_.data(), [&](int64_t, int64_t j, int64_t, double value) { sent[j] += value; });
            for (int64_t j = 0; j < count; ++j) {
                sent[j] = sent[j] > 0 ? peak_[j] + std::log(sent[j]) : -INFINITE;
                parent[j] += sent[j] - top;  // only differences matter there
            }
            totals[graph_of(step.leaf)] += top;
            if (keep) sent += given_.states;
        }
        for (int64_t v = 0; v < given_.nodes; ++v) {
            if (forest_.peeled[v]) continue;
            double* root = &inside_[given_.begin(v)];
            const double total = log_sum(root, given_.count(v));
            if (total == -INFINITE) return totals[graph_of(v)] = total, false;
            totals[graph_of(v)] += total;
            for (int64_t s = 0; s < given_.count(v) && keep; ++s) root[s] = std::exp(root[s] - total);
        }
        return true;
    }

    // The gradient of sum(weight * log Z), after `collect`: weighted marginals.
    void distribute(int64_t r) {
        R* to_node = static_cast<R*>(given_.node_gradient) + r * given_.begin(given_.nodes);
        R* to_edge = static_cast<R*>(given_.edge_gradient) + r * given_.gradient_step;
        const double* weight = given_.weight + r * given_.graphs;
        std::vector<double> own(given_.states);
        for (int64_t s = int64_t(forest_.steps.size()); s-- > 0;) {
            const Step& step = forest_.steps[s];
            const double *sent = &sent_[s * given_.states], *parent = &inside_[given_.begin(step.parent)];
            const double w = weight[graph_of(step.leaf)];
            double* leaf = &inside_[given_.begin(step.leaf)];  // becomes its marginals, as those of its parent did
            R* to = to_edge + given_.table(step.edge);
            std::fill(own.begin(), own.end(), 0.0);
            exponentials(r, step, leaf, sent, [&](int64_t i, int64_t j, int64_t entry, double value) {
                const double joint = parent[j] > 0 ? parent[j] * value : 0.0;  // where `sent` is -inf, it is 0
                own[i] += joint, to[entry] += R(w * joint);
            });
            std::copy(own.begin(), own.begin() + given_.count(step.leaf), leaf);
        }
        for (int64_t v = 0; v < given_.nodes; ++v)
            for (int64_t s = given_.begin(v); s < given_.begin(v + 1); ++s)
                to_node[s] = R(weight[graph_of(v)] * inside_[s]);
    }

  private:
    const Arguments& given_;
    const Forest& forest_;
    std::vector<double> inside_, sent_, peak_, row_;

    const R* node_of(int64_t r) const { return static_cast<const R*>(given_.node) + r * given_.node_step; }
    const R* edge_of(int64_t r) const { return static_cast<const R*>(given_.edge) + r * given_.edge_step; }
    const R* table_of(int64_t r, const Step& step) const { return edge_of(r) + given_.table(step.edge); }
    int64_t graph_of(int64_t v) const { return given_.graph ? given_.graph[v] : 0; }

    // Calls run(state of the leaf, state of the parent, place in the table, value) for all entries of a table.
    template <class Run>
    void each(int64_t r, const Step& step, Run run) const {
        const R* table = table_of(r, step);
        const int64_t leaf = given_.count(step.leaf), parent = given_.count(step.parent);
        int64_t entry = 0;
        for (int64_t i = 0; i < leaf && step.along; ++i)
            for (int64_t j = 0; j < parent; ++j, ++entry) run(i, j, entry, table[entry]);
        for (int64_t j = 0; j < parent && !step.along; ++j)
            for (int64_t i = 0; i < leaf; ++i, ++entry) run(i, j, entry, table[entry]);
    }

    // The same with exp(leaf[i] + value - less[j]), which is at most 1.
    template <class Run>
    void exponentials(int64_t r, const Step& step, const double* leaf, const double* less, Run run) {
        const R* table = table_of(r, step);
        const bool along = step.along;
        const int64_t rows = given_.count(along ? step.leaf : step.parent);
        const int64_t columns = given_.count(along ? step.parent : step.leaf);
        const bool few = columns < 4;  // then a whole vector takes longer
        double* row = row_.data();
        for (int64_t a = 0, entry = 0; a < rows; ++a, entry += columns) {
            for (int64_t b = 0; b < columns && along; ++b) row[b] = leaf[a] + table[entry + b] - less[b];
            for (int64_t b = 0; b < columns && !along; ++b) row[b] = leaf[b] + table[entry + b] - less[a];
            for (int64_t b = 0; b < columns && few; ++b) row[b] = std::exp(row[b]);
            for (int64_t b = 0; b < columns && !few; b += LANES)
                store<Lanes<double>>(row + b, exp<double>(load<double>(row + b)));
            for (int64_t b = 0; b < columns && along; ++b) run(a, b, entry + b, row[b]);
            for (int64_t b = 0; b < columns && !along; ++b) run(b, a, entry + b, row[b]);
        }
    }

    int64_t first_best(const R* values, int64_t v) const {
        return std::max_element(values, values + given_.count(v)) - values;
    }

    static double log_sum(const double* values, int64_t count) {
        const double peak = *std::max_element(values, values + count);
        if (peak == -INFINITE) return peak;
        double sum = 0;
        for (int64_t s = 0; s < count; ++s) sum += std::exp(values[s] - peak);
        return peak + std::log(sum);
    }

    // Scores of the labels, summed in the order of `PairwiseField.score`.
    void score(int64_t r) {
        double* totals = given_.totals + r * given_.graphs;
        const int64_t *labels = given_.labels + r * given_.nodes, *source = given_.ends, *target = source + given_.edges;
        const R *node = node_of(r), *edge = edge_of(r);
        std::fill(totals, totals + given_.graphs, 0.0);
        for (int64_t v = 0; v < given_.nodes; ++v) totals[graph_of(v)] += double(node[given_.begin(v) + labels[v]]);
        for (int64_t e = 0; e < given_.edges; ++e) {
            const int64_t place = labels[source[e]] * given_.count(target[e]) + labels[target[e]];
            totals[graph_of(source[e])] += double(edge[given_.table(e) + place]);
        }
    }
};

}  // namespace trees
