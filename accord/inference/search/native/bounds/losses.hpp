// What labellings lose against a bound, as a sum of parts that are all 0 or more: a constant that no labelling avoids,
// the loss of each node's state, and what is left of each table.
//
// Losses are moved between the parts without changing their sum, and states are removed. Both can be undone, for a search
// in depth. The ends of tables are numbered: first the arcs, as ends of edges, then the slots of factors.
#pragma once
#include "trws.hpp"

namespace search {

class Losses {
  public:
    // Begins with the messages of a dual, whose bound becomes the first.
    Losses(const Model& m, Dual& dual)
        : small(1e-9 * (m.scale + 1e-300)), m_(m), node_(m.size()), states_(m.size()), place_(m.size()), left_(m.count) {
        for (int32_t v = 0; v < m.nodes; ++v)
            for (int32_t i = 0; i < m.count[v]; ++i) states_[m.at[v] + i] = place_[m.at[v] + i] = i;
        int64_t size = 0;
        std::vector<int32_t> along(m.edges), against(m.edges);
        for (int32_t v = 0; v < m.nodes; ++v)
            for (int32_t a = m.first[v]; a < m.first[v + 1]; ++a) {
                (m.arcs[a].forward ? along : against)[m.arcs[a].edge] = a;
                add_end(v, size), size += int64_t(m.count[v]) * m.count[m.arcs[a].other];
            }
        reverse_.resize(m.arcs.size());
        for (int32_t e = 0; e < m.edges; ++e) reverse_[along[e]] = against[e], reverse_[against[e]] = along[e];
        for (size_t s = 0; s < m.members.size(); ++s) {
            const Factor& f = m.factors[m.factor_of[s]];
            add_end(m.members[s].node, size);
            if (int32_t(s) + 1 == f.first + f.order) size += f.size;
        }
        table_.resize(size);
        take_over(dual);
        std::fill(moved_.begin(), moved_.end(), 0.0);
    }

    // Whether the tables have room; those of edges are held twice.
    static bool fits(const Model& m) { return double(m.tables.size()) <= MOST_ENTRIES; }

    const double small;  // what is smaller is rounding

    double bound() const { return top_ - constant_; }
    // Only labellings with a higher score count.
    void require(double score) { most_ = top_ - score; }
    // Whether nothing that loses so much in addition counts.
    bool excludes(double loss) const { return constant_ + loss >= most_; }
    double most() const { return most_; }
    double constant() const { return constant_; }

    // The states of a node that are left, by their places.
    int32_t left(int32_t v) const { return left_[v]; }
    int32_t state(int32_t v, int32_t place) const { return states_[m_.at[v] + place]; }
    bool has(int32_t v, int32_t state) const { return place_[m_.at[v] + state] < left_[v]; }
    double loss(int32_t v, int32_t state) const { return node_[m_.at[v] + state]; }

    int32_t node(int32_t end) const { return owner_[end]; }
    int32_t reverse(int32_t arc) const { return reverse_[arc]; }
    int32_t end_of_slot(int32_t slot) const { return int32_t(m_.arcs.size()) + slot; }
    // Mean loss of a table in which nothing has been moved or removed.
    double mean(int32_t end) const {
        const int32_t arcs = int32_t(m_.arcs.size());
        const int64_t count = end < arcs ? m_.entries(m_.arcs[end].edge) : m_.factors[m_.factor_of[end - arcs]].size;
        double sum = 0;
        for (int64_t i = 0; i < count; ++i) sum += std::min(table_[table_at_[end] + i], m_.wall);
        return sum / double(count);
    }

    size_t mark() const { return trail_.size(); }
    void undo(size_t mark) {
        for (; trail_.size() > mark; trail_.pop_back()) {
            const Change& c = trail_.back();
            if (c.kind == LEFT)
                left_[c.at] = int32_t(c.old);
            else
                (c.kind == NODE ? node_[c.at] : c.kind == MOVED ? moved_[c.at] : constant_) = c.old;
        }
    }

    void keep_only(int32_t v, int32_t state) {
        note(LEFT, v, left_[v]);
        swap(v, state, 0);
        left_[v] = 1;
    }
    void remove(int32_t v, int32_t state) {
        note(LEFT, v, left_[v]);
        swap(v, state, --left_[v]);
    }

    // Moves what no state of a node avoids into the constant.
    void lift(int32_t v) {
        double least = std::numeric_limits<double>::max();
        for (int32_t p = 0; p < left_[v]; ++p) least = std::min(least, loss(v, state(v, p)));
        if (least <= small) return;
        note(CONSTANT, 0, constant_), constant_ += least;
        for (int32_t p = 0; p < left_[v]; ++p) change(NODE, node_, m_.at[v] + state(v, p), -least);
    }

    // least[i]: what the table at an end costs state i of its node at least; with `full`, the other nodes' states as well.
    void find_least(int32_t end, bool full, std::vector<double>& least) const {
        const int32_t v = owner_[end], k = m_.count[v];
        double* out = least.data();
        std::fill(out, out + k, std::numeric_limits<double>::max());
        if (end < int32_t(m_.arcs.size())) {
            const int32_t u = m_.arcs[end].other;
            const double *far = moved_.data() + moved_at_[reverse_[end]], *rows = table_.data() + table_at_[end];
            for (int32_t p = 0; p < left_[u]; ++p) {
                const int32_t j = state(u, p);
                const double shift = (full ? loss(u, j) : 0.0) - far[j], *row = rows + int64_t(j) * k;
                for (int32_t i = 0; i < k; ++i) out[i] = std::min(out[i], row[i] + shift);
            }
        } else {
            const int32_t slot = end - int32_t(m_.arcs.size());
            const Factor& f = m_.factors[m_.factor_of[slot]];
            descend(f, f.first, slot, full, table_.data() + table_at_[end], 0, out);
        }
        const double* moved = moved_.data() + moved_at_[end];
        for (int32_t i = 0; i < k; ++i) out[i] -= moved[i];
    }
    double effort(int32_t end) const {
        const int32_t arcs = int32_t(m_.arcs.size());
        if (end < arcs) return 40.0 + 0.8 * double(left_[m_.arcs[end].other]) * m_.count[owner_[end]];
        return 40.0 + 5.0 * double(m_.factors[m_.factor_of[end - arcs]].size);
    }

    // Moves amounts from the table at an end to its node; whether there were any.
    bool take(int32_t end, const std::vector<double>& amounts) {
        const int32_t v = owner_[end];
        bool some = false;
        for (int32_t p = 0; p < left_[v]; ++p) {
            const int32_t i = state(v, p);
            if (amounts[i] <= small) continue;
            change(NODE, node_, m_.at[v] + i, amounts[i]);
            change(MOVED, moved_, moved_at_[end] + i, amounts[i]);
            some = true;
        }
        return some;
    }
    // Moves all losses of an end's node into the table.
    void give(int32_t end) {
        const int32_t v = owner_[end];
        for (int32_t p = 0; p < left_[v]; ++p) {
            const double loss = node_[m_.at[v] + state(v, p)];
            if (loss <= 0) continue;
            change(NODE, node_, m_.at[v] + state(v, p), -loss);
            change(MOVED, moved_, moved_at_[end] + state(v, p), -loss);
        }
    }

  private:
    static constexpr double MOST_ENTRIES = 2e7;  // of all tables: 160 to 320 MB
    enum Kind : int32_t { CONSTANT, NODE, MOVED, LEFT };
    struct Change {
        Kind kind;
        int64_t at;
        double old;
    };
    const Model& m_;
    double top_ = 0, constant_ = 0, most_ = std::numeric_limits<double>::max();
    std::vector<double> node_, table_, moved_;      // losses of states; of tables at first; what was moved to nodes
    std::vector<int64_t> table_at_, moved_at_;      // by end; of an arc's table, the own state changes fastest
    std::vector<int32_t> owner_, reverse_;          // by end: its node; by arc: the other end
    std::vector<int32_t> states_, place_, left_;    // of a node, those that are left come first
    std::vector<Change> trail_;

    void add_end(int32_t v, int64_t table) {
        owner_.push_back(v), table_at_.push_back(table);
        moved_at_.push_back(int64_t(moved_.size())), moved_.resize(moved_.size() + m_.count[v]);
    }
    void note(Kind kind, int64_t at, double old) { trail_.push_back({kind, at, old}); }
    void change(Kind kind, std::vector<double>& values, int64_t at, double amount) {
        note(kind, at, values[at]), values[at] += amount;
    }
    void swap(int32_t v, int32_t state, int32_t to) {
        int32_t *states = states_.data() + m_.at[v], *place = place_.data() + m_.at[v];
        const int32_t from = place[state], other = states[to];
        states[from] = other, place[other] = from, states[to] = state, place[state] = to;
    }

    void descend(const Factor& f, int32_t i, int32_t slot, bool full, const double* table, double sum, double* out) const {
        if (i == f.first + f.order) {
            *out = std::min(*out, sum + *table);
            return;
        }
        const Member& u = m_.members[i];
        const double* moved = moved_.data() + moved_at_[end_of_slot(i)];
        for (int32_t p = 0; p < left_[u.node]; ++p) {
            const int32_t j = state(u.node, p);
            if (i == slot)
                descend(f, i + 1, slot, full, table + u.stride * j, sum, out + j);
            else
                descend(f, i + 1, slot, full, table + u.stride * j, sum + (full ? loss(u.node, j) : 0.0) - moved[j], out);
        }
    }

    // The parts of the score whose best values add up to the bound of a dual: what its last pass left of every node, and
    // what is left of every table with what the nodes that come later gave to it.
    void take_over(Dual& dual) {
        for (int32_t v = 0; v < m_.nodes; ++v) {
            const double* total = dual.totals(v);
            const double rest = dual.rest_share(v), best = *std::max_element(total, total + m_.count[v]);
            for (int32_t i = 0; i < m_.count[v]; ++i) node_[m_.at[v] + i] = rest * (best - total[i]);
            top_ += rest * best;
            for (int32_t a = m_.first[v]; a < m_.first[v + 1]; ++a) dual.given(m_.arcs[a], v, moved_.data() + moved_at_[a]);
        }
        for (size_t a = 0; a < m_.arcs.size(); ++a) {
            const Arc& arc = m_.arcs[a];
            if (!arc.forward) continue;
            const int32_t k = m_.count[owner_[a]], far = m_.count[arc.other], b = reverse_[a];
            const double *values = m_.tables.data() + arc.table, *own = moved_.data() + moved_at_[a];
            const double* other = moved_.data() + moved_at_[b];
            double *columns = table_.data() + table_at_[a], *rows = table_.data() + table_at_[b];
            const auto value = [&](int32_t i, int32_t j) { return values[int64_t(i) * far + j] + own[i] + other[j]; };
            double peak = value(0, 0);
            for (int32_t i = 0; i < k; ++i)
                for (int32_t j = 0; j < far; ++j) peak = std::max(peak, value(i, j));
            for (int32_t i = 0; i < k; ++i)
                for (int32_t j = 0; j < far; ++j)
                    rows[int64_t(i) * far + j] = columns[int64_t(j) * k + i] = peak - value(i, j);
            top_ += peak;
        }
        for (const Factor& f : m_.factors) {
            const std::vector<double> values = dual.given(f);
            const double peak = *std::max_element(values.begin(), values.end());
            double* losses = table_.data() + table_at_[end_of_slot(f.first)];
            for (size_t i = 0; i < values.size(); ++i) losses[i] = peak - values[i];
            top_ += peak;
        }
    }
};

}  // namespace search
