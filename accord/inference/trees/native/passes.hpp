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
    Passes(const Arguments& given, const Forest& forest) : given_(given), forest_(forest), states_(given.states) {}

    // The best labels, and their scores. False if a tree has no labelling without forbidden states or pairs.
    bool label(int64_t r) {
        const R* node = node_of(r);
        std::vector<R> folded(node, node + given_.nodes * states_), sent(states_);
        for (const Step& step : forest_.steps) {
            const R *leaf = &folded[step.leaf * states_], *table = table_of(r, step);
            std::fill(sent.begin(), sent.end(), -std::numeric_limits<R>::infinity());
            each(step, [&](int64_t i, int64_t j, int64_t entry) { sent[j] = std::max(sent[j], leaf[i] + table[entry]); });
            for (int64_t j = 0; j < states_; ++j) folded[step.parent * states_ + j] += sent[j];
        }
        int64_t* labels = given_.labels + r * given_.nodes;
        const R* wishes = static_cast<const R*>(given_.wishes) + r * given_.nodes * states_;
        for (int64_t v = 0; v < given_.nodes; ++v) {
            if (forest_.peeled[v]) continue;
            const R* score = &folded[v * states_];
            const int64_t best = first_best(score), wish = first_best(wishes + v * states_);
            const double most = score[best];
            if (most == -INFINITE) return false;
            labels[v] = double(score[wish]) >= most - GAIN * std::abs(most) ? wish : best;
        }
        for (auto step = forest_.steps.rbegin(); step != forest_.steps.rend(); ++step) {
            const R *leaf = &folded[step->leaf * states_], *table = table_of(r, *step);
            const int64_t parent = labels[step->parent], stride = step->along ? states_ : 1;
            table += step->along ? parent : parent * states_;
            for (int64_t i = 0; i < states_; ++i) sent[i] = leaf[i] + table[i * stride];
            labels[step->leaf] = first_best(sent.data());
        }
        score(r);
        return true;
    }

    // log Z of each graph. False if it is -inf somewhere.
    bool collect(int64_t r, bool keep) {
        double* totals = given_.totals + r * given_.graphs;
        std::fill(totals, totals + given_.graphs, 0.0);
        const R* node = node_of(r);
        inside_.assign(node, node + given_.nodes * states_);
        peak_.resize(states_), row_.resize(states_ + LANES);
        sent_.resize((keep ? std::max<int64_t>(given_.edges, 1) : 1) * states_);
        double* sent = sent_.data();
        for (const Step& step : forest_.steps) {
            const double* leaf = &inside_[step.leaf * states_];
            const R* table = table_of(r, step);
            std::fill(peak_.begin(), peak_.end(), -INFINITE), std::fill(sent, sent + states_, 0.0);
            each(step, [&](int64_t i, int64_t j, int64_t entry) { peak_[j] = std::max(peak_[j], leaf[i] + table[entry]); });
            double top = -INFINITE;
            for (double& peak : peak_) top = std::max(top, peak), peak = peak == -INFINITE ? 0.0 : peak;
            if (top == -INFINITE) return totals[graph_of(step.leaf)] = top, false;
            exponentials(step, table, leaf, peak_.data(), [&](int64_t, int64_t j, int64_t, double value) { sent[j] += value; });
            for (int64_t j = 0; j < states_; ++j) {
                sent[j] = sent[j] > 0 ? peak_[j] + std::log(sent[j]) : -INFINITE;
                inside_[step.parent * states_ + j] += sent[j] - top;  // only differences matter there
            }
            totals[graph_of(step.leaf)] += top;
            if (keep) sent += states_;
        }
        for (int64_t v = 0; v < given_.nodes; ++v) {
            if (forest_.peeled[v]) continue;
            const double total = log_sum(&inside_[v * states_]);
            if (total == -INFINITE) return totals[graph_of(v)] = total, false;
            totals[graph_of(v)] += total;
            for (int64_t s = 0; s < states_ && keep; ++s)
                inside_[v * states_ + s] = std::exp(inside_[v * states_ + s] - total);
        }
        return true;
    }

    // The gradient of sum(weight * log Z), after `collect`: weighted marginals.
    void distribute(int64_t r) {
        R* to_node = static_cast<R*>(given_.node_gradient) + r * given_.nodes * states_;
        R* to_edge = static_cast<R*>(given_.edge_gradient) + r * given_.edges * states_ * states_;
        const double* weight = given_.weight + r * given_.graphs;
        std::vector<double> own(states_);
        for (int64_t s = int64_t(forest_.steps.size()); s-- > 0;) {
            const Step& step = forest_.steps[s];
            const double *sent = &sent_[s * states_], *parent = &inside_[step.parent * states_], w = weight[graph_of(step.leaf)];
            double* leaf = &inside_[step.leaf * states_];  // becomes its marginals, as those of its parent did
            const R* table = table_of(r, step);
            R* to = to_edge + step.edge * states_ * states_;
            std::fill(own.begin(), own.end(), 0.0);
            exponentials(step, table, leaf, sent, [&](int64_t i, int64_t j, int64_t entry, double value) {
                const double joint = parent[j] > 0 ? parent[j] * value : 0.0;  // where `sent` is -inf, it is 0
                own[i] += joint, to[entry] = R(w * joint);
            });
            std::copy(own.begin(), own.end(), leaf);
        }
        for (int64_t v = 0; v < given_.nodes; ++v)
            for (int64_t s = v * states_; s < (v + 1) * states_; ++s) to_node[s] = R(weight[graph_of(v)] * inside_[s]);
    }

  private:
    const Arguments& given_;
    const Forest& forest_;
    const int64_t states_;
    std::vector<double> inside_, sent_, peak_, row_;

    const R* node_of(int64_t r) const { return static_cast<const R*>(given_.node) + r * given_.node_step; }
    const R* table_of(int64_t r, const Step& step) const {
        return static_cast<const R*>(given_.edge) + r * given_.edge_step + step.edge * states_ * states_;
    }
    int64_t graph_of(int64_t v) const { return given_.graph ? given_.graph[v] : 0; }

    // Calls run(state of the leaf, state of the parent, place in the table) for all entries of a table.
    template <class Run>
    void each(const Step& step, Run run) const {
        int64_t entry = 0;
        for (int64_t a = 0; a < states_ && step.along; ++a)
            for (int64_t b = 0; b < states_; ++b) run(a, b, entry++);
        for (int64_t a = 0; a < states_ && !step.along; ++a)
            for (int64_t b = 0; b < states_; ++b) run(b, a, entry++);
    }

    // The same, with exp(leaf[i] + table - less[j]), which is at most 1.
    template <class Run>
    void exponentials(const Step& step, const R* table, const double* leaf, const double* less, Run run) {
        double* row = row_.data();
        const bool few = states_ < 4;  // then a whole vector takes longer
        const double *first = step.along ? leaf : less, *second = step.along ? less : leaf;
        for (int64_t a = 0, entry = 0; a < states_; ++a) {
            const double own = step.along ? first[a] : -first[a];
            for (int64_t b = 0; b < states_ && step.along; ++b) row[b] = own + table[entry + b] - second[b];
            for (int64_t b = 0; b < states_ && !step.along; ++b) row[b] = second[b] + table[entry + b] + own;
            for (int64_t b = 0; b < states_ && few; ++b) row[b] = std::exp(row[b]);
            for (int64_t b = 0; b < states_ && !few; b += LANES)
                store<Lanes<double>>(row + b, exp<double>(load<double>(row + b)));
            for (int64_t b = 0; b < states_ && step.along; ++b) run(a, b, entry + b, row[b]);
            for (int64_t b = 0; b < states_ && !step.along; ++b) run(b, a, entry + b, row[b]);
            entry += states_;
        }
    }

    int64_t first_best(const R* values) const { return std::max_element(values, values + states_) - values; }

    double log_sum(const double* values) const {
        const double peak = *std::max_element(values, values + states_);
        if (peak == -INFINITE) return peak;
        double sum = 0;
        for (int64_t s = 0; s < states_; ++s) sum += std::exp(values[s] - peak);
        return peak + std::log(sum);
    }

    // Scores of the labels, summed in the order of `PairwiseField.score`.
    void score(int64_t r) {
        double* totals = given_.totals + r * given_.graphs;
        const int64_t *labels = given_.labels + r * given_.nodes, *source = given_.ends, *target = source + given_.edges;
        const R *node = node_of(r), *edge = static_cast<const R*>(given_.edge) + r * given_.edge_step;
        std::fill(totals, totals + given_.graphs, 0.0);
        for (int64_t v = 0; v < given_.nodes; ++v) totals[graph_of(v)] += double(node[v * states_ + labels[v]]);
        for (int64_t e = 0; e < given_.edges; ++e)
            totals[graph_of(source[e])] += double(edge[(e * states_ + labels[source[e]]) * states_ + labels[target[e]]]);
    }
};

}  // namespace trees
