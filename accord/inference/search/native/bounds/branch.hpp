// Depth-first branch and bound: each branch keeps or removes one state of one node, and tree-reweighted passes that
// continue from the messages of the branch above give its bound.
#pragma once
#include "trws.hpp"

namespace search {

class Branch {
  public:
    Branch(const Model& m, Dual& root) : m_(m), dual_(m), root_(root) {}

    // True: no labelling is better than `best`, which may have been improved, by more than `gap`.
    bool prove(Labels& best, double& score, double gap, double deadline, const Clock& clock) {
        stack_.clear();
        stack_.push_back({root_.messages(), root_.unary()});
        size_t held = 0;
        Labels x;
        while (!stack_.empty()) {
            Part part = std::move(stack_.back());
            stack_.pop_back();
            dual_.messages().swap(part.messages);
            dual_.unary().swap(part.unary);
            double before = std::numeric_limits<double>::max();
            bool closed = false;
            for (int pass = 0; pass < MOST_PASSES; ++pass) {
                dual_.iterate(x, clock);
                const double found = m_.score(x);
                if (m_.allowed(found) && found > score) score = found, best = x;
                if (dual_.bound <= score + gap || !m_.allowed(dual_.bound)) {
                    closed = true;
                    break;
                }
                // Worth going on while the bound falls fast enough to close the gap soon.
                if (before - dual_.bound < 0.02 * (dual_.bound - score)) break;
                before = dual_.bound;
                if (clock.past(deadline)) return false;
            }
            if (closed) continue;
            if (clock.past(deadline)) return false;
            clock.add(5.0 * double(dual_.messages().size()));
            const int32_t v = ambiguous();
            if (v < 0) {  // every node has one state left, which rounding by the messages need not have taken
                for (int32_t u = 0; u < m_.nodes; ++u) x[u] = std::max(best_state(u), 0);
                const double left = m_.score(x);
                if (m_.allowed(left) && left > score) score = left, best = x;
                continue;
            }
            const int32_t state = best_state(v);
            held = stack_.size() * (dual_.messages().size() + dual_.unary().size());
            if (held > MOST_HELD) return false;
            Part without{dual_.messages(), dual_.unary()};
            without.unary[m_.at[v] + state] -= m_.wall;
            Part with{std::move(dual_.messages()), std::move(dual_.unary())};
            for (int32_t i = 0; i < m_.count[v]; ++i)
                if (i != state) with.unary[m_.at[v] + i] = m_.unary[m_.at[v] + i] - m_.wall;
            dual_.messages().resize(root_.messages().size());
            stack_.push_back(std::move(without));
            stack_.push_back(std::move(with));  // the likelier half first
        }
        return true;
    }

  private:
    static constexpr int MOST_PASSES = 40;
    static constexpr size_t MOST_HELD = 200'000'000;  // numbers: 1.6 GB
    struct Part {
        std::vector<double> messages, unary;
    };
    const Model& m_;
    Dual dual_;
    Dual& root_;
    std::vector<Part> stack_;

    // Values of the field may themselves be below -wall.
    bool open(int32_t v, int32_t i) { return dual_.unary()[m_.at[v] + i] == m_.unary[m_.at[v] + i]; }

    int32_t best_state(int32_t v) {
        const double* total = dual_.totals(v);
        int32_t best = -1;
        for (int32_t i = 0; i < m_.count[v]; ++i)
            if (open(v, i) && (best < 0 || total[i] > total[best])) best = i;
        return best;
    }

    // The node whose best two states are closest, given how many edges and factors depend on it.
    int32_t ambiguous() {
        int32_t found = -1;
        double least = 1e300;
        for (int32_t v = 0; v < m_.nodes; ++v) {
            const double* total = dual_.totals(v);
            double best = -1e300, second = -1e300;
            int32_t left = 0;
            for (int32_t i = 0; i < m_.count[v]; ++i) {
                if (!open(v, i)) continue;
                ++left;
                if (total[i] > best)
                    second = best, best = total[i];
                else
                    second = std::max(second, total[i]);
            }
            if (left < 2) continue;
            const double value = (best - second + 1e-3 * m_.scale) / std::max(1, m_.degree(v));
            if (value < least) least = value, found = v;
        }
        return found;
    }
};

}  // namespace search
