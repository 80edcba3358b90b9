// Messages on the tree of cliques of one replica: inwards to the roots, and outwards to beliefs, labels or samples.
#pragma once
#include "model.hpp"
#include "tables.hpp"

namespace exact {

class Passes {
  public:
    explicit Passes(const Model& model) : m_(model), free_(int32_t(model.node.size())) {
        table_at_.assign(1, 0), message_at_.assign(1, 0);
        for (int32_t p = 0; p < free_; ++p) {
            int64_t around = 1;
            for (const int32_t* q = m_.tree.begin(p); q != m_.tree.end(p); ++q) around *= m_.size[*q];
            message_at_.push_back(message_at_.back() + around);
            table_at_.push_back(table_at_.back() + around * m_.size[p]);
        }
        tables_.resize(table_at_.back());
        messages_.resize(message_at_.back());
        peaks_.resize(free_);
    }

    // Table of clique p: potentials of its node and of the factors assigned to it, and messages of its children. What
    // it sends to its parent is the table with the node reduced. Writes log Z or the best score of each graph.
    void collect(int64_t replica, bool maximise, double* totals) {
        replica_ = replica;
        const Arguments& given = m_.given;
        std::fill(totals, totals + given.graphs, 0.0);
        for (int64_t v = 0; v < given.nodes; ++v)
            if (m_.place[v] < 0) totals[given.graph[v]] += unary(v)[m_.state[m_.at[v]]];
        for (int32_t f : m_.settled) totals[given.graph[given.scope[given.scope_at[f]]]] += *compact(f);
        for (int32_t p = 0; p < free_; ++p) {
            double *table = tables_.data() + table_at_[p], *sent = messages_.data() + message_at_[p];
            const int64_t k = m_.size[p], around = message_at_[p + 1] - message_at_[p];
            const int64_t v = m_.node[p];
            for (int64_t j = 0; j < k; ++j) table[j] = unary(v)[m_.state[m_.at[v] + j]];
            for (int64_t i = 1; i < around; ++i) std::copy(table, table + k, table + i * k);
            for (int64_t i = m_.factor_at[p]; i < m_.factor_at[p + 1]; ++i) {
                const double* values = compact(m_.factor[i]);
                add(table, walk_factor(p, m_.factor[i]), values);
            }
            for (int64_t i = m_.tree.child_at[p]; i < m_.tree.child_at[p + 1]; ++i)
                add(table, walk_child(p, m_.tree.child[i]), messages_.data() + message_at_[m_.tree.child[i]]);
            double peak = -INFINITE;
            for (int64_t i = 0; i < around; ++i) {
                sent[i] = maximise ? largest(table + i * k, k) : log_sum(table + i * k, k);
                peak = std::max(peak, sent[i]);
            }
            totals[given.graph[v]] += peak;
            // Only differences matter to the parent; sums that grow along a chain would lose precision.
            peaks_[p] = peak == -INFINITE ? 0.0 : peak;
            for (int64_t i = 0; i < around; ++i) sent[i] -= peaks_[p];
        }
    }

    // After `collect`: the best state of each node given those around it, from the roots outwards.
    void decode(int64_t* labels) {
        chosen_.resize(free_);
        for (int32_t p = free_; p-- > 0;) {
            const double* row = conditional(p, chosen_.data(), 1, 0);
            chosen_[p] = int32_t(std::max_element(row, row + m_.size[p]) - row);
        }
        for (int64_t v = 0; v < m_.given.nodes; ++v) labels[v] = state(v, m_.place[v] < 0 ? 0 : chosen_[m_.place[v]]);
    }

    // After `collect` with sums: the state at which the running sum of probabilities exceeds a uniform number.
    void sample(const double* uniform, int64_t samples, int64_t* labels) {
        chosen_.resize(free_ * samples);
        std::vector<double> share;
        for (int32_t p = free_; p-- > 0;) {
            const int64_t k = m_.size[p];
            const double* numbers = uniform + m_.node[p] * samples;
            share.resize(k);
            for (int64_t s = 0; s < samples; ++s) {
                const double *row = conditional(p, chosen_.data(), samples, s), peak = largest(row, k);
                double total = 0;
                for (int64_t j = 0; j < k; ++j) total += share[j] = std::exp(row[j] - peak);
                double left = numbers[s] * total;
                int32_t pick = -1;  // never a state of probability 0, whatever rounding does
                for (int64_t j = 0; j < k && !(pick >= 0 && left < 0); ++j)
                    if (share[j] > 0) pick = int32_t(j), left -= share[j];
                chosen_[p * samples + s] = pick;
            }
        }
        for (int64_t v = 0; v < m_.given.nodes; ++v)
            for (int64_t s = 0; s < samples; ++s)
                labels[v * samples + s] = state(v, m_.place[v] < 0 ? 0 : chosen_[m_.place[v] * samples + s]);
    }

    // After `collect`: beliefs of all cliques, from the roots outwards, and of each node and factor.
    // The message to the parent is divided out again (Lauritzen and Spiegelhalter 1988).
    void distribute(bool maximise, double* nodes, double* factors) {
        const Arguments& given = m_.given;
        std::fill(nodes, nodes + given.unary_size, -INFINITE);
        for (int64_t v = 0; v < given.nodes; ++v)
            if (m_.place[v] < 0) nodes[given.at[v] + m_.state[m_.at[v]]] = 0;
        for (int32_t f : m_.settled) write(f, factors, nullptr);
        Marginals marginals;
        for (int32_t p = free_; p-- > 0;) {
            double *table = tables_.data() + table_at_[p], *arrived = messages_.data() + message_at_[p];
            const int64_t k = m_.size[p], around = message_at_[p + 1] - message_at_[p], v = m_.node[p];
            if (m_.tree.width(p) == 0) arrived[0] = -(arrived[0] + peaks_[p]);
            for (int64_t i = 0; i < around; ++i)
                for (int64_t j = 0; j < k; ++j) table[i * k + j] += arrived[i];
            // Rounding must not add up along a chain.
            const double total = maximise ? largest(table, around * k) : log_sum(table, around * k);
            for (int64_t i = 0; i < around * k; ++i) table[i] -= total;
            marginals.begin(table, around * k, maximise);
            Walk own;
            own.push(k, 1), own.push(around, 0);
            scratch_.resize(k);
            marginals.reduce(own, scratch_.data(), k);
            for (int64_t j = 0; j < k; ++j) nodes[given.at[v] + m_.state[m_.at[v] + j]] = scratch_[j];
            if (factors)
                for (int64_t i = m_.factor_at[p]; i < m_.factor_at[p + 1]; ++i) {
                    const int32_t f = m_.factor[i];
                    int64_t entries = 1;
                    for (int64_t a = given.scope_at[f]; a < given.scope_at[f + 1]; ++a) entries *= m_.count(given.scope[a]);
                    double* out = factors + given.belief_at[f];
                    if (!m_.whole[f]) scratch_.resize(entries), out = scratch_.data();
                    marginals.reduce(walk_factor(p, f), out, entries);
                    if (!m_.whole[f]) write(f, factors, out);
                }
            for (int64_t i = m_.tree.child_at[p]; i < m_.tree.child_at[p + 1]; ++i) {
                const int32_t c = m_.tree.child[i];
                const int64_t entries = message_at_[c + 1] - message_at_[c];
                double* message = messages_.data() + message_at_[c];
                scratch_.resize(entries);
                marginals.reduce(walk_child(p, c), scratch_.data(), entries);
                // Where the message was -inf, so is every entry of the child's table that it came from.
                for (int64_t s = 0; s < entries; ++s)
                    message[s] = message[s] == -INFINITE ? -INFINITE : scratch_[s] - (message[s] + peaks_[c]);
            }
        }
    }

  private:
    const Model& m_;
    const int32_t free_;
    int64_t replica_ = 0;
    std::vector<int64_t> table_at_, message_at_;
    std::vector<double> tables_, messages_, peaks_, scratch_, compact_;
    Nodes chosen_;

    const double* unary(int64_t v) const { return m_.given.unary + replica_ * m_.given.unary_size + m_.given.at[v]; }
    int64_t state(int64_t v, int64_t choice) const { return m_.state[m_.at[v] + choice]; }

    // Entries of clique p's table for the labels that were chosen around it.
    const double* conditional(int32_t p, const int32_t* chosen, int64_t stride, int64_t sample) const {
        int64_t index = 0, step = 1;
        for (const int32_t* q = m_.tree.begin(p); q != m_.tree.end(p); ++q)
            index += step * chosen[*q * stride + sample], step *= m_.size[*q];
        return tables_.data() + table_at_[p] + index * m_.size[p];
    }

    // Calls entry(place in the full table, place in the table of possible states) for all of a factor's entries.
    template <class Entry>
    void entries(int32_t f, Entry entry) const {
        const Arguments& given = m_.given;
        const int64_t first = given.scope_at[f], axes = given.scope_at[f + 1] - first;
        int64_t step[MAX_AXES], at[MAX_AXES] = {}, place = 0;
        for (int64_t a = axes, size = 1; a-- > 0; size *= m_.states(given.scope[first + a])) step[a] = size;
        for (int64_t a = 0; a < axes; ++a) place += step[a] * state(given.scope[first + a], 0);
        for (int64_t number = 0;; ++number) {
            entry(place, number);
            int64_t a = axes;
            while (a-- > 0) {
                const int64_t v = given.scope[first + a];
                place -= step[a] * state(v, at[a]);
                at[a] = at[a] + 1 < m_.count(v) ? at[a] + 1 : 0;
                place += step[a] * state(v, at[a]);
                if (at[a]) break;
            }
            if (a < 0) return;
        }
    }

    // A factor's table for possible states only.
    const double* compact(int32_t f) {
        const Arguments& given = m_.given;
        const double* values = given.tables + (given.table_replicas > 1 ? replica_ * given.table_size : 0) + given.table_at[f];
        if (m_.whole[f]) return values;
        compact_.clear();
        entries(f, [&](int64_t place, int64_t) { compact_.push_back(values[place]); });
        return compact_.data();
    }

    // Beliefs of a factor some of whose states are impossible; null: all its variables have a single state.
    void write(int32_t f, double* factors, const double* beliefs) const {
        if (!factors) return;
        double* out = factors + m_.given.belief_at[f];
        int64_t size = 1;
        for (int64_t a = m_.given.scope_at[f]; a < m_.given.scope_at[f + 1]; ++a) size *= m_.states(m_.given.scope[a]);
        std::fill(out, out + size, -INFINITE);
        entries(f, [&](int64_t place, int64_t number) { out[place] = beliefs ? beliefs[number] : 0.0; });
    }

    // Where a factor's entries of possible states lie along the axes of clique p.
    Walk walk_factor(int32_t p, int32_t f) const {
        const Arguments& given = m_.given;
        const int64_t first = given.scope_at[f], axes = given.scope_at[f + 1] - first;
        int64_t step[MAX_AXES], size = 1;
        for (int64_t a = axes; a-- > 0; size *= m_.count(given.scope[first + a])) step[a] = size;
        Walk walk;
        const auto along = [&](int32_t q) {
            int64_t found = 0;
            for (int64_t a = 0; a < axes; ++a)
                if (m_.place[given.scope[first + a]] == q) found = step[a];
            walk.push(m_.size[q], found);
        };
        along(p);
        for (const int32_t* q = m_.tree.begin(p); q != m_.tree.end(p); ++q) along(*q);
        return walk;
    }

    // Where the message of child c lies along the axes of clique p.
    Walk walk_child(int32_t p, int32_t c) const {
        Walk walk;
        const int32_t* member = m_.tree.begin(c);
        int64_t step = 1;
        const auto along = [&](int32_t q) {
            const bool there = member != m_.tree.end(c) && *member == q;
            walk.push(m_.size[q], there ? step : 0);
            if (there) step *= m_.size[q], ++member;
        };
        along(p);
        for (const int32_t* q = m_.tree.begin(p); q != m_.tree.end(p); ++q) along(*q);
        return walk;
    }
};

}  // namespace exact
