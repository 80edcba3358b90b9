// A labelling without forbidden combinations: a backtracking search that keeps arc consistency after every choice (Sabin and
// Freuder 1994). Nodes that took part in many contradictions are chosen first, and the search restarts now and then
// (dom/wdeg, Boussemart et al. 2004). If it ends without a labelling, there is none.
#pragma once
#include <queue>

#include "support.hpp"

namespace search {

class Feasible {
  public:
    enum Outcome { FOUND, NONE, OPEN };

    explicit Feasible(const Model& m) : m_(m), words_((m.most + 63) / 64), weight_(m.nodes, 1), support_(m) {
        allowed_at_.resize(m.arcs.size(), -1);
        for (int32_t v = 0; v < m.nodes; ++v)
            for (int32_t a = m.first[v]; a < m.first[v + 1]; ++a) note(v, a);
        domain_.assign(size_t(m.nodes) * words_, 0), left_ = m.count;
        for (int32_t v = 0; v < m.nodes; ++v)
            for (int32_t i = 0; i < m.count[v]; ++i) domain(v)[i / 64] |= uint64_t(1) << (i % 64);
    }

    // Whether the lists of what is allowed have room.
    static bool fits(const Model& m) { return m.most <= 64 * MOST_WORDS && Support::fits(m); }

    // Searches until the deadline; states with higher `wishes` (as model.unary) are tried first. May be called again.
    Outcome run(const std::vector<double>& wishes, Random& random, Labels& x, double deadline, const Clock& clock) {
        double limit = FIRST_RESTART;
        int64_t failures = 0;
        std::vector<Choice> choices;
        begin();
        for (int64_t step = 0;; ++step) {
            if ((step & 63) == 0 && clock.past(deadline)) return undo(0), OPEN;
            const int32_t v = next();
            if (v < 0) {
                x.resize(m_.nodes);
                for (int32_t u = 0; u < m_.nodes; ++u) x[u] = best(u, wishes, random);
                return undo(0), FOUND;
            }
            choices.push_back({v, best(v, wishes, random), trail_.size()});
            keep_only(v, choices.back().state);
            waiting_.assign(1, v);
            while (!narrow(clock)) {
                ++failures;
                if (choices.empty()) return NONE;
                const Choice last = choices.back();
                choices.pop_back();
                undo(last.mark);
                store(last.node);
                domain(last.node)[last.state / 64] &= ~(uint64_t(1) << (last.state % 64));
                --left_[last.node];
                if (choices.empty()) trail_.clear(), old_.clear();  // impossible whatever is chosen
                waiting_.assign(1, last.node);
                push(last.node);
                if (left_[last.node] == 0) {
                    if (choices.empty()) return NONE;
                    waiting_.clear(), waiting_.push_back(-1);
                }
            }
            if (failures > limit && !choices.empty()) {
                limit *= RESTART_GROWTH, failures = 0;
                undo(choices[0].mark);
                choices.clear();
                begin();
            }
        }
    }

  private:
    static constexpr double FIRST_RESTART = 50, RESTART_GROWTH = 1.1;  // short runs: times vary widely
    struct Choice {
        int32_t node, state;
        size_t mark;
    };
    struct Urgent {
        double key;
        int32_t node, left;
        bool operator<(const Urgent& other) const { return key > other.key; }
    };
    const Model& m_;
    const int32_t words_;
    std::vector<int64_t> weight_;
    std::vector<int64_t> allowed_at_;  // by arc: where its rows begin; -1: nothing is forbidden
    std::vector<uint64_t> allowed_;    // by arc and own state: states that may stand at the other end
    std::vector<uint64_t> domain_, old_;
    std::vector<int32_t> left_;        // states of a node that are left
    std::vector<std::pair<int32_t, int32_t>> trail_;  // (node, states it had)
    std::vector<int32_t> waiting_;
    std::vector<Urgent> urgent_;
    Support support_;

    uint64_t* domain(int32_t v) { return domain_.data() + size_t(v) * words_; }

    void note(int32_t v, int32_t a) {
        const Arc& arc = m_.arcs[a];
        const int32_t k = m_.count[v], far = m_.count[arc.other];
        const double* table = m_.tables.data() + arc.table;
        bool barred = false;
        for (int64_t i = 0; i < int64_t(k) * far && !barred; ++i) barred = m_.barred(arc.edge, table[i]);
        if (!barred) return;
        allowed_at_[a] = int64_t(allowed_.size());
        allowed_.resize(allowed_.size() + size_t(k) * words_, 0);
        for (int32_t i = 0; i < k; ++i)
            for (int32_t j = 0; j < far; ++j)
                if (!m_.barred(arc.edge, table[int64_t(i) * arc.own + int64_t(j) * arc.far]))
                    allowed_[allowed_at_[a] + int64_t(i) * words_ + j / 64] |= uint64_t(1) << (j % 64);
    }

    void store(int32_t v) {
        trail_.emplace_back(v, left_[v]);
        old_.insert(old_.end(), domain(v), domain(v) + words_);
    }
    void undo(size_t mark) {
        while (trail_.size() > mark) {
            const auto [v, left] = trail_.back();
            trail_.pop_back();
            std::copy(old_.end() - words_, old_.end(), domain(v));
            old_.resize(old_.size() - words_);
            left_[v] = left;
            push(v);
        }
    }
    void keep_only(int32_t v, int32_t state) {
        store(v);
        std::fill(domain(v), domain(v) + words_, 0);
        domain(v)[state / 64] = uint64_t(1) << (state % 64), left_[v] = 1;
    }

    // Removes what cannot stand beside the states of waiting nodes, and so on; false on a contradiction.
    bool narrow(const Clock& clock) {
        while (!waiting_.empty()) {
            const int32_t v = waiting_.back();
            waiting_.pop_back();
            if (v < 0) return false;
            clock.add(50.0 + 15.0 * m_.degree(v));
            for (int32_t a = m_.first[v]; a < m_.first[v + 1]; ++a) {
                if (allowed_at_[a] < 0) continue;
                const int32_t u = m_.arcs[a].other;
                if (!restrict(v, a, u)) continue;
                if (left_[u] == 0) {
                    ++weight_[u], ++weight_[v];
                    waiting_.clear();
                    return false;
                }
                push(u), waiting_.push_back(u);
            }
            for (const int32_t* s = m_.slots_begin(v); s != m_.slots_end(v); ++s)
                if (!revise(m_.factor_of[*s], clock)) return false;
        }
        return true;
    }
    // The same for the nodes of a factor.
    bool revise(int32_t f, const Clock& clock) {
        if (!support_.constrains(f)) return true;
        clock.add(20.0 + support_.effort(f));
        const auto has = [&](int32_t u, int32_t i) { return domain(u)[i / 64] >> (i % 64) & 1; };
        support_.refresh(f, has);
        const Factor& factor = m_.factors[f];
        for (int32_t s = factor.first; s < factor.first + factor.order; ++s) {
            const int32_t u = m_.members[s].node;
            bool changed = false;
            for (int32_t i = 0; i < m_.count[u]; ++i) {
                if (!has(u, i) || support_.holds(s, i)) continue;
                if (!changed) store(u), changed = true;
                domain(u)[i / 64] &= ~(uint64_t(1) << (i % 64)), --left_[u];
            }
            if (left_[u] == 0) {
                for (int32_t t = factor.first; t < factor.first + factor.order; ++t) ++weight_[m_.members[t].node];
                waiting_.clear();
                return false;
            }
            if (changed) push(u), waiting_.push_back(u);
        }
        return true;
    }
    bool restrict(int32_t v, int32_t a, int32_t u) {
        uint64_t support[MOST_WORDS];
        std::fill(support, support + words_, 0);
        for (int32_t w = 0; w < words_; ++w)
            for (uint64_t bits = domain(v)[w]; bits; bits &= bits - 1) {
                const int32_t i = w * 64 + __builtin_ctzll(bits);
                const uint64_t* row = allowed_.data() + allowed_at_[a] + int64_t(i) * words_;
                for (int32_t j = 0; j < words_; ++j) support[j] |= row[j];
            }
        bool changed = false;
        for (int32_t j = 0; j < words_; ++j) changed |= (domain(u)[j] & ~support[j]) != 0;
        if (!changed) return false;
        store(u);
        left_[u] = 0;
        for (int32_t j = 0; j < words_; ++j)
            domain(u)[j] &= support[j], left_[u] += __builtin_popcountll(domain(u)[j]);
        return true;
    }

    int32_t best(int32_t v, const std::vector<double>& wishes, Random& random) {
        int32_t found = -1;
        uint32_t equals = 0;
        for (int32_t i = 0; i < m_.count[v]; ++i) {
            if (!(domain(v)[i / 64] >> (i % 64) & 1)) continue;
            const double value = wishes[m_.at[v] + i], highest = found < 0 ? value : wishes[m_.at[v] + found];
            if (found < 0 || value > highest)
                found = i, equals = 1;
            else if (value == highest && random.below(++equals) == 0)
                found = i;
        }
        return found;
    }

    void push(int32_t v) {
        if (left_[v] < 2) return;
        urgent_.push_back({double(left_[v]) / double(weight_[v]), v, left_[v]});
        std::push_heap(urgent_.begin(), urgent_.end());
    }
    void begin() {
        urgent_.clear();
        for (int32_t v = 0; v < m_.nodes; ++v) push(v);
    }
    int32_t next() {
        while (!urgent_.empty()) {
            std::pop_heap(urgent_.begin(), urgent_.end());
            const Urgent top = urgent_.back();
            urgent_.pop_back();
            if (left_[top.node] == top.left) return top.node;
        }
        return -1;
    }

  public:
    static constexpr int32_t MOST_WORDS = 64;  // 4096 states
};

}  // namespace search
