// Sequential reweighted message passing (Kolmogorov 2006, 2015): an upper bound that holds after every pass.
//
// Messages move potential between edges or factors and nodes: with total_v = unary_v + sum of messages into v,
//   score(x) = sum_v total_v(x_v) + sum_(v,w) [ table(x_v, x_w) - message_vw(x_w) - message_wv(x_v) ]
//              + sum_f [ table_f(x) - sum_(v in f) message_fv(x_v) ],
// whatever the messages are. When a node v is visited, every edge or factor that has a node still to come gets the share
// 1 / max(those with a node ahead, those with one behind) of total_v. The best value of each part, taken on its own, adds
// up to a bound.
#pragma once
#include "../model/model.hpp"

namespace search {

class Dual {
  public:
    explicit Dual(const Model& m) : m_(m), unary_(m.unary), at_(2 * size_t(m.edges)), into_(m.members.size()) {
        int64_t size = 0;
        for (int32_t e = 0; e < m.edges; ++e) {
            at_[2 * e] = size, size += m.count[m.target[e]];      // along the edge
            at_[2 * e + 1] = size, size += m.count[m.source[e]];  // against it
        }
        // Of a factor's node: the message into it, then what the node gave to the factor less that message.
        for (size_t i = 0; i < m.members.size(); ++i) into_[i] = size, size += 2 * m.members[i].count;
        messages_.assign(size, 0.0);
        total_.resize(m.most), given_.resize(m.most);
        share_.resize(m.nodes);
        for (int32_t v = 0; v < m.nodes; ++v) {
            int32_t ahead = 0, behind = 0;
            for (const Arc* a = m.begin(v); a != m.end(v); ++a) ++(a->other > v ? ahead : behind);
            for (const int32_t* s = m.slots_begin(v); s != m.slots_end(v); ++s)
                ahead += !ends(*s, true), behind += !ends(*s, false);
            share_[v] = 1.0 / std::max({1, ahead, behind});
        }
    }

    std::vector<double>& unary() { return unary_; }
    std::vector<double>& messages() { return messages_; }
    double bound = std::numeric_limits<double>::max();  // of the last iteration

    // Operations of an iteration.
    static double effort(const Model& m) {
        double sum = 3.0 * double(m.tables.size()) + 30.0 * m.edges + 10.0 * m.nodes;
        for (const Factor& f : m.factors) sum += 3.0 * f.order * double(f.size + 20);
        return sum;
    }

    // A pass forwards, which also labels the nodes in x, then a pass backwards, which gives the bound.
    void iterate(Labels& x, const Clock& clock) {
        clock.add(effort(m_));
        x.resize(m_.nodes);
        for (int32_t v = 0; v < m_.nodes; ++v) {
            round(v, x);
            visit(v, true);
        }
        double sum = 0;
        for (int32_t v = m_.nodes - 1; v >= 0; --v) sum += visit(v, false);
        bound = sum;
    }

    // How far each state of a node is below the best one, at the current messages.
    const double* totals(int32_t v) {
        const int32_t k = m_.count[v];
        const double* own = unary_.data() + m_.at[v];
        for (int32_t i = 0; i < k; ++i) total_[i] = own[i];
        for (const Arc* a = m_.begin(v); a != m_.end(v); ++a) gather(messages_.data() + at_[2 * a->edge + a->forward], k);
        for (const int32_t* s = m_.slots_begin(v); s != m_.slots_end(v); ++s) gather(into(*s), k);
        return total_.data();
    }

    // The share of its total that the last pass backwards left to a node.
    double rest_share(int32_t v) const {
        double rest = 1;
        for (const Arc* a = m_.begin(v); a != m_.end(v); ++a) rest -= a->other < v ? share_[v] : 0;
        for (const int32_t* s = m_.slots_begin(v); s != m_.slots_end(v); ++s) rest -= ends(*s, false) ? 0 : share_[v];
        return std::max(rest, 0.0);
    }
    // What that pass gave from node v to the edge of its arc, less the message into v.
    void given(const Arc& a, int32_t v, double* out) {
        const double *total = totals(v), *in = messages_.data() + at_[2 * a.edge + a.forward];
        for (int32_t i = 0; i < m_.count[v]; ++i) out[i] = (a.other < v ? share_[v] * total[i] : 0) - in[i];
    }
    // A factor's table with what the pass gave to it, less its messages.
    std::vector<double> given(const Factor& f) {
        std::vector<double> table(m_.tables.begin() + f.table, m_.tables.begin() + f.table + f.size);
        for (int32_t s = f.first; s < f.first + f.order; ++s) {
            const Member& u = m_.members[s];
            const double* own = part(s);
            for (int64_t i = 0; i < f.size; ++i) table[i] += own[i / u.stride % u.count];
        }
        return table;
    }

    // What the messages leave of an edge's table: [source states, target states].
    std::vector<double> rest(int32_t e) const {
        const int32_t k = m_.count[m_.source[e]], far = m_.count[m_.target[e]];
        std::vector<double> left(m_.tables.begin() + m_.table_at[e], m_.tables.begin() + m_.table_at[e] + int64_t(k) * far);
        const double *along = messages_.data() + at_[2 * e], *against = messages_.data() + at_[2 * e + 1];
        for (int32_t i = 0; i < k; ++i)
            for (int32_t j = 0; j < far; ++j) left[int64_t(i) * far + j] -= along[j] + against[i];
        return left;
    }

    // What they leave of a factor's table.
    std::vector<double> rest(const Factor& f) const {
        std::vector<double> left(m_.tables.begin() + f.table, m_.tables.begin() + f.table + f.size);
        for (int32_t s = f.first; s < f.first + f.order; ++s) {
            const Member& u = m_.members[s];
            const double* message = messages_.data() + into_[s];
            for (int64_t i = 0; i < f.size; ++i) left[i] -= message[i / u.stride % u.count];
        }
        return left;
    }

  private:
    const Model& m_;
    std::vector<double> unary_, messages_, total_, given_, share_;
    std::vector<int64_t> at_, into_;

    double* into(int32_t slot) { return messages_.data() + into_[slot]; }
    double* part(int32_t slot) { return into(slot) + m_.members[slot].count; }  // what the node gave less the message
    // Whether the node at a slot is its factor's last one in a pass.
    bool ends(int32_t slot, bool forward) const {
        const Factor& f = m_.factors[m_.factor_of[slot]];
        return slot == (forward ? f.first + f.order - 1 : f.first);
    }
    void gather(const double* message, int32_t k) {
        for (int32_t i = 0; i < k; ++i) total_[i] += message[i];
    }

    // best[i]: the highest value of a factor's table plus the parts of the other nodes, if the node at `slot` has state i.
    // With labels, nodes before it have theirs, without a part.
    void maximise(int32_t slot, double* best, const Labels* x) {
        const Factor& f = m_.factors[m_.factor_of[slot]];
        for (int32_t i = 0; i < m_.members[slot].count; ++i) best[i] = -std::numeric_limits<double>::max();
        descend(f, f.first, slot, m_.tables.data() + f.table, 0, best, x);
    }
    void descend(const Factor& f, int32_t i, int32_t slot, const double* table, double sum, double* best, const Labels* x) {
        const Member& u = m_.members[i];
        const double* own = part(i);
        if (i + 1 < f.first + f.order) {
            if (x && i < slot) return descend(f, i + 1, slot, table + u.stride * (*x)[u.node], sum, best, x);
            for (int32_t j = 0; j < u.count; ++j, table += u.stride)
                descend(f, i + 1, slot, table, i == slot ? sum : sum + own[j], i == slot ? best + j : best, x);
            return;
        }
        if (i == slot) {
            for (int32_t j = 0; j < u.count; ++j) best[j] = std::max(best[j], sum + table[j]);
            return;
        }
        double highest = table[0] + own[0];
        for (int32_t j = 1; j < u.count; ++j) highest = std::max(highest, table[j] + own[j]);
        *best = std::max(*best, sum + highest);
    }

    void round(int32_t v, Labels& x) {
        const int32_t k = m_.count[v];
        const double* own = unary_.data() + m_.at[v];
        for (int32_t i = 0; i < k; ++i) total_[i] = own[i];
        for (const Arc* a = m_.begin(v); a != m_.end(v); ++a) {
            if (a->other < v) {
                const double* row = m_.tables.data() + a->table + int64_t(x[a->other]) * a->far;
                for (int32_t i = 0; i < k; ++i) total_[i] += row[int64_t(i) * a->own];
            } else {
                gather(messages_.data() + at_[2 * a->edge + a->forward], k);
            }
        }
        for (const int32_t* s = m_.slots_begin(v); s != m_.slots_end(v); ++s) {
            if (!ends(*s, false)) maximise(*s, given_.data(), &x);
            gather(ends(*s, false) ? into(*s) : given_.data(), k);
        }
        x[v] = int32_t(std::max_element(total_.begin(), total_.begin() + k) - total_.begin());
    }

    double visit(int32_t v, bool forward) {
        const int32_t k = m_.count[v];
        double sum = 0, rest = 1;
        for (const int32_t* s = m_.slots_begin(v); s != m_.slots_end(v); ++s) {
            if (ends(*s, !forward)) continue;  // the first of the pass: nothing has changed
            double* out = into(*s);
            maximise(*s, out, nullptr);
            const double peak = level(out, k);
            if (ends(*s, forward)) sum += peak;
        }
        totals(v);
        double best = total_[0];
        for (int32_t i = 1; i < k; ++i) best = std::max(best, total_[i]);
        const double share = share_[v];
        for (const Arc* a = m_.begin(v); a != m_.end(v); ++a) {
            if ((a->other > v) != forward) continue;
            rest -= share;
            sum += send(*a, k, share);
        }
        for (const int32_t* s = m_.slots_begin(v); s != m_.slots_end(v); ++s) {
            const double each = ends(*s, forward) ? 0 : share;
            rest -= each;
            double* own = part(*s);
            for (int32_t i = 0; i < k; ++i) own[i] = each * total_[i] - into(*s)[i];
        }
        return sum + std::max(rest, 0.0) * best;
    }

    // Takes the highest value out of a message, and returns it.
    static double level(double* out, int32_t k) {
        double peak = out[0];
        for (int32_t j = 1; j < k; ++j) peak = std::max(peak, out[j]);
        for (int32_t j = 0; j < k; ++j) out[j] -= peak;
        return peak;
    }

    // The message along an arc out of a node; returns the constant that was taken out of it.
    double send(const Arc& a, int32_t k, double share) {
        const double* in = messages_.data() + at_[2 * a.edge + a.forward];
        double* out = messages_.data() + at_[2 * a.edge + !a.forward];
        const double* table = m_.tables.data() + a.table;
        const int32_t far = m_.count[a.other];
        double* given = given_.data();
        for (int32_t i = 0; i < k; ++i) given[i] = share * total_[i] - in[i];
        if (k == 2 && far == 2) {
            const double b = table[a.far], c = table[a.own];
            out[0] = std::max(given[0] + table[0], given[1] + c);
            out[1] = std::max(given[0] + b, given[1] + table[3]);
        } else if (a.far == 1) {
            for (int32_t j = 0; j < far; ++j) out[j] = given[0] + table[j];
            for (int32_t i = 1; i < k; ++i) {
                const double* row = table + int64_t(i) * a.own;
                for (int32_t j = 0; j < far; ++j) out[j] = std::max(out[j], given[i] + row[j]);
            }
        } else {
            for (int32_t j = 0; j < far; ++j) {
                const double* row = table + int64_t(j) * a.far;
                double best = given[0] + row[0];
                for (int32_t i = 1; i < k; ++i) best = std::max(best, given[i] + row[i]);
                out[j] = best;
            }
        }
        return level(out, far);
    }
};

}  // namespace search
