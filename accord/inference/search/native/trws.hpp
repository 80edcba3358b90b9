// Sequential tree-reweighted message passing (Kolmogorov 2006): an upper bound that holds after every pass.
//
// Messages move potential between edges and nodes: with total_v = unary_v + sum of messages into v,
//   score(x) = sum_v total_v(x_v) + sum_(v,w) [ table(x_v, x_w) - message_vw(x_w) - message_wv(x_v) ],
// whatever the messages are. When a node v is visited, every edge to a node that is still to come gets the share
// 1 / max(arcs ahead, arcs behind) of total_v. The best value of each part, taken on its own, adds up to a bound.
#pragma once
#include "model.hpp"

namespace search {

class Dual {
  public:
    explicit Dual(const Model& m) : m_(m), unary_(m.unary), at_(2 * size_t(m.edges)) {
        int64_t size = 0;
        for (int32_t e = 0; e < m.edges; ++e) {
            at_[2 * e] = size, size += m.count[m.target[e]];      // along the edge
            at_[2 * e + 1] = size, size += m.count[m.source[e]];  // against it
        }
        messages_.assign(size, 0.0);
        total_.resize(m.most), given_.resize(m.most);
        share_.resize(m.nodes);
        for (int32_t v = 0; v < m.nodes; ++v) {
            int32_t ahead = 0;
            for (const Arc* a = m.begin(v); a != m.end(v); ++a) ahead += a->other > v;
            share_[v] = 1.0 / std::max({1, ahead, m.degree(v) - ahead});
        }
    }

    std::vector<double>& unary() { return unary_; }
    std::vector<double>& messages() { return messages_; }
    double bound = std::numeric_limits<double>::max();  // of the last iteration

    // Operations of an iteration.
    static double effort(const Model& m) { return 3.0 * double(m.tables.size()) + 30.0 * m.edges + 10.0 * m.nodes; }

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
        for (const Arc* a = m_.begin(v); a != m_.end(v); ++a) {
            const double* in = messages_.data() + at_[2 * a->edge + a->forward];
            for (int32_t i = 0; i < k; ++i) total_[i] += in[i];
        }
        return total_.data();
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

  private:
    const Model& m_;
    std::vector<double> unary_, messages_, total_, given_, share_;
    std::vector<int64_t> at_;

    void round(int32_t v, Labels& x) {
        const int32_t k = m_.count[v];
        const double* own = unary_.data() + m_.at[v];
        for (int32_t i = 0; i < k; ++i) given_[i] = own[i];
        for (const Arc* a = m_.begin(v); a != m_.end(v); ++a) {
            if (a->other < v) {
                const double* row = m_.tables.data() + a->table + int64_t(x[a->other]) * a->far;
                for (int32_t i = 0; i < k; ++i) given_[i] += row[int64_t(i) * a->own];
            } else {
                const double* in = messages_.data() + at_[2 * a->edge + a->forward];
                for (int32_t i = 0; i < k; ++i) given_[i] += in[i];
            }
        }
        x[v] = int32_t(std::max_element(given_.begin(), given_.begin() + k) - given_.begin());
    }

    double visit(int32_t v, bool forward) {
        const int32_t k = m_.count[v];
        totals(v);
        double best = total_[0], sum = 0, rest = 1;
        for (int32_t i = 1; i < k; ++i) best = std::max(best, total_[i]);
        const double share = share_[v];
        for (const Arc* a = m_.begin(v); a != m_.end(v); ++a) {
            if ((a->other > v) != forward) continue;
            rest -= share;
            sum += send(*a, k, share);
        }
        return sum + std::max(rest, 0.0) * best;
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
        double peak = out[0];
        for (int32_t j = 1; j < far; ++j) peak = std::max(peak, out[j]);
        for (int32_t j = 0; j < far; ++j) out[j] -= peak;
        return peak;
    }
};

}  // namespace search
