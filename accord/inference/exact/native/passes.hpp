// Messages on the tree of cliques of one replica: inwards to the roots, and outwards to beliefs, labels or samples.
#pragma once
#include <memory>

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
        tables_.reset(new double[table_at_.back()]);  // not filled: for long chains that would take a pass of its own
        messages_.reset(new double[message_at_.back()]);
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
            double *table = tables_.get() + table_at_[p], *sent = messages_.get() + message_at_[p];
            const int64_t k = m_.size[p], around = message_at_[p + 1] - message_at_[p];
            const int64_t v = m_.node[p];
            fetch(p + AHEAD);
            for (int64_t j = 0; j < k; ++j) table[j] = unary(v)[m_.state[m_.at[v] + j]];
            // Axis by axis: pieces that end at an axis are added before the table is repeated along the next one.
            list_pieces(p);
            size_t next = 0;
            int64_t have = k;
            for (int32_t axis = 0;; ++axis) {
                for (; next < pieces_.size() && pieces_[next].last == axis; ++next) add_piece(p, pieces_[next], table);
                if (axis == m_.tree.width(p)) break;
                const int64_t states = m_.size[m_.tree.begin(p)[axis]];
                for (int64_t i = 1; i < states; ++i) std::copy(table, table + have, table + i * have);
                have *= states;
            }
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
            double *table = tables_.get() + table_at_[p], *arrived = messages_.get() + message_at_[p];
            const int64_t k = m_.size[p], around = message_at_[p + 1] - message_at_[p], v = m_.node[p];
            if (factors) fetch(p - AHEAD, factors);
            if (m_.tree.width(p) == 0) arrived[0] = -(arrived[0] + peaks_[p]);
            for (int64_t i = 0; i < around; ++i)
                for (int64_t j = 0; j < k; ++j) table[i * k + j] += arrived[i];
            // Rounding must not add up along a chain.
            const double total = maximise ? largest(table, around * k) : log_sum(table, around * k);
            for (int64_t i = 0; i < around * k; ++i) table[i] -= total;
            // Axis by axis from the last: what ends there is read off before the axis is summed out.
            marginals.begin(table, around * k, maximise);
            list_pieces(p);
            size_t left = pieces_.size();
            for (int32_t axis = int32_t(m_.tree.width(p));; --axis) {
                for (; left && pieces_[left - 1].last == axis; --left)
                    if (pieces_[left - 1].child) tell_child(p, pieces_[left - 1], marginals);
                    else if (factors) write_factor(p, pieces_[left - 1], marginals, factors);
                if (axis == 0) break;
                marginals.drop(m_.size[m_.tree.begin(p)[axis - 1]]);
            }
            Walk own;
            own.push(k, 1);
            scratch_.resize(k);
            marginals.reduce(own, scratch_.data(), k);
            for (int64_t j = 0; j < k; ++j) nodes[given.at[v] + m_.state[m_.at[v] + j]] = scratch_[j];
        }
    }

  private:
    // A factor or the message of a child, as a part of a clique's table.
    struct Piece {
        int32_t last;  // the last axis of the clique along which it changes
        int32_t number;
        bool child;
        bool operator<(const Piece& other) const { return last < other.last; }
    };
    const Model& m_;
    const int32_t free_;
    std::vector<Piece> pieces_;
    int64_t replica_ = 0;
    std::vector<int64_t> table_at_, message_at_;
    std::unique_ptr<double[]> tables_, messages_;
    std::vector<double> peaks_, scratch_, compact_;
    Nodes chosen_;

    // Nodes and factors lie anywhere in the field's arrays: those of a clique are brought into cache before its turn.
    static constexpr int32_t AHEAD = 8;
    void fetch(int32_t p, const double* beliefs = nullptr) const {
        if (p < 0 || p >= free_) return;
        if (!beliefs) __builtin_prefetch(unary(m_.node[p]));
        const int64_t first = m_.factor_at[p], last = std::min(m_.factor_at[p + 1], first + 4);
        for (int64_t i = first; i < last; ++i) {
            const double* values = beliefs ? beliefs + m_.given.belief_at[m_.factor[i]] : table(m_.factor[i]);
            for (int line = 0; line < 4; ++line) __builtin_prefetch(values + 8 * line);
        }
    }

    const double* table(int32_t f) const {
        const int64_t replica = m_.given.table_replicas > 1 ? replica_ : 0;
        return m_.given.tables + replica * m_.given.table_size + m_.given.table_at[f];
    }
    const double* unary(int64_t v) const { return m_.given.unary + replica_ * m_.given.unary_size + m_.given.at[v]; }
    int64_t state(int64_t v, int64_t choice) const { return m_.state[m_.at[v] + choice]; }

    // Entries of clique p's table for the labels that were chosen around it.
    const double* conditional(int32_t p, const int32_t* chosen, int64_t stride, int64_t sample) const {
        int64_t index = 0, step = 1;
        for (const int32_t* q = m_.tree.begin(p); q != m_.tree.end(p); ++q)
            index += step * chosen[*q * stride + sample], step *= m_.size[*q];
        return tables_.get() + table_at_[p] + index * m_.size[p];
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
        const double* values = table(f);
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

    // Factors and children of clique p, by their last axis.
    void list_pieces(int32_t p) {
        pieces_.clear();
        const auto axis_of = [&](int32_t q) {
            return q == p ? 0 : int32_t(std::lower_bound(m_.tree.begin(p), m_.tree.end(p), q) - m_.tree.begin(p)) + 1;
        };
        // Children first: on trees, this is sorted already.
        for (int64_t i = m_.tree.child_at[p]; i < m_.tree.child_at[p + 1]; ++i) {
            const int32_t c = m_.tree.child[i];
            pieces_.push_back({axis_of(m_.tree.end(c)[-1]), c, true});
        }
        for (int64_t i = m_.factor_at[p]; i < m_.factor_at[p + 1]; ++i) {
            const int32_t f = m_.factor[i];
            int32_t last = p;
            for (int64_t a = m_.given.scope_at[f]; a < m_.given.scope_at[f + 1]; ++a)
                last = std::max(last, m_.place[m_.given.scope[a]]);
            pieces_.push_back({axis_of(last), f, false});
        }
        if (!std::is_sorted(pieces_.begin(), pieces_.end())) std::stable_sort(pieces_.begin(), pieces_.end());
    }

    void add_piece(int32_t p, const Piece& piece, double* table) {
        const double* values = piece.child ? messages_.get() + message_at_[piece.number] : compact(piece.number);
        add(table, walk(p, piece), values);
    }

    void tell_child(int32_t p, const Piece& piece, Marginals& marginals) {
        const int32_t c = piece.number;
        const int64_t entries = message_at_[c + 1] - message_at_[c];
        double* message = messages_.get() + message_at_[c];
        scratch_.resize(entries);
        marginals.reduce(walk(p, piece), scratch_.data(), entries);
        // Where the message was -inf, so is every entry of the child's table that it came from.
        for (int64_t s = 0; s < entries; ++s)
            message[s] = message[s] == -INFINITE ? -INFINITE : scratch_[s] - (message[s] + peaks_[c]);
    }

    void write_factor(int32_t p, const Piece& piece, Marginals& marginals, double* factors) {
        const int32_t f = piece.number;
        int64_t entries = 1;
        for (int64_t a = m_.given.scope_at[f]; a < m_.given.scope_at[f + 1]; ++a) entries *= m_.count(m_.given.scope[a]);
        double* out = factors + m_.given.belief_at[f];
        if (!m_.whole[f]) scratch_.resize(entries), out = scratch_.data();
        marginals.reduce(walk(p, piece), out, entries);
        if (!m_.whole[f]) write(f, factors, out);
    }

    // Where the entries of a piece (of a factor, those of possible states) lie along the axes of clique p.
    Walk walk(int32_t p, const Piece& piece) const {
        int64_t step[MAX_AXES];
        int32_t at[MAX_AXES];
        int64_t axes = 0, size = 1;
        if (piece.child) {
            for (const int32_t* q = m_.tree.begin(piece.number); q != m_.tree.end(piece.number); ++q)
                at[axes] = *q, step[axes++] = size, size *= m_.size[*q];
        } else {
            const int64_t* scope = m_.given.scope;
            for (int64_t a = m_.given.scope_at[piece.number + 1]; a-- > m_.given.scope_at[piece.number];)
                at[axes] = m_.place[scope[a]], step[axes++] = size, size *= m_.count(scope[a]);
        }
        Walk walk;
        for (int32_t axis = 0; axis <= piece.last; ++axis) {
            const int32_t q = axis ? m_.tree.begin(p)[axis - 1] : p;
            int64_t found = 0;
            for (int64_t a = 0; a < axes; ++a)
                if (at[a] == q) found = step[a];
            walk.push(m_.size[q], found);
        }
        return walk;
    }
};

}  // namespace exact
