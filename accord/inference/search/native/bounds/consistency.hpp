// Soft arc consistency (EDAC, de Givry et al. 2005): losses are moved from tables to nodes and on into the constant, which
// lowers the bound, and states that lose too much are removed, until nothing more follows.
#pragma once
#include "losses.hpp"

namespace search {

class Consistency {
  public:
    Consistency(const Model& m, Dual& dual)
        : losses(m, dual), weight(m.nodes, 0.0), m_(m), waits_(m.nodes, 0), amounts_(m.most), sums_(m.most) {
        double total = 0;
        int64_t ends = 0;
        for (int32_t v = 0; v < m.nodes; ++v) {
            visit_ends(v, [&](int32_t end) { weight[v] += losses.mean(end), ++ends; });
            total += weight[v];
            wait(v, SHRUNK | RISEN | STAR);
        }
        // On average one for each table, so that contradictions soon count as much.
        for (double& each : weight) each = 1 + (total > 0 ? each * double(ends) / total : 0);
    }

    Losses losses;
    std::vector<double> weight;  // of a node: how much its tables cost, and how often they led to a contradiction

    void keep_only(int32_t v, int32_t state) {
        if (losses.has(v, state))
            losses.keep_only(v, state), wait(v, SHRUNK | RISEN | STAR);
        else
            failed_ = true;
    }
    void remove(int32_t v, int32_t state) {
        if (losses.has(v, state)) losses.remove(v, state), wait(v, SHRUNK | STAR);
        failed_ |= losses.left(v) == 0;
    }
    void undo(size_t mark) {
        losses.undo(mark);
        forget();
    }

    // False: no labelling that is left has the score that is required.
    bool propagate(const Clock& clock) {
        bool possible = !failed_;
        int64_t stars = STARS * int64_t(m_.nodes);
        for (int64_t step = 1; possible; ++step) {
            if (step % LOOK == 0 && clock.late()) break;
            if (!shrunk_.empty()) {
                const int32_t v = pop(shrunk_, SHRUNK);
                possible = settle(v) && tell(v, clock);
            } else if (!risen_.empty()) {
                // The last node first: losses move towards nodes that come before.
                std::pop_heap(risen_.begin(), risen_.end());
                possible = pass_on(pop(risen_, RISEN), clock);
            } else if (!stars_.empty() && stars > 0) {
                --stars;
                possible = gather(pop(stars_, STAR), clock);
            } else if (losses.constant() > settled_constant_ + losses.small || losses.most() < settled_most_) {
                settled_constant_ = losses.constant(), settled_most_ = losses.most();
                clock.add(3.0 * double(m_.size()));
                for (int32_t v = 0; v < m_.nodes && possible; ++v) possible = settle(v);
            } else {
                break;
            }
        }
        forget();
        return possible;
    }

  private:
    static constexpr double WORTH = 1e-3;  // of what labellings may still lose: smaller amounts are not moved on
    static constexpr int32_t STARS = 3;    // how often a node is looked at with its neighbours: later ones gain little
    static constexpr int64_t LOOK = 256;   // steps between looks at the time
    // Why a node waits: it lost states; its losses rose; it and its neighbours may have a loss in common.
    enum Why : uint8_t { SHRUNK = 1, RISEN = 2, STAR = 4 };
    const Model& m_;
    std::vector<uint8_t> waits_;
    std::vector<int32_t> shrunk_, risen_, stars_;  // nodes that wait; the second is a heap
    std::vector<double> amounts_, sums_;
    double settled_constant_ = -1, settled_most_ = std::numeric_limits<double>::max();  // when all nodes were settled
    bool failed_ = false;

    void wait(int32_t v, int why) {
        const int fresh = why & ~waits_[v];
        waits_[v] |= uint8_t(fresh);
        if (fresh & SHRUNK) shrunk_.push_back(v);
        if (fresh & RISEN) risen_.push_back(v), std::push_heap(risen_.begin(), risen_.end());
        if (fresh & STAR) stars_.push_back(v);
    }
    int32_t pop(std::vector<int32_t>& queue, Why why) {
        const int32_t v = queue.back();
        queue.pop_back(), waits_[v] &= uint8_t(~why);
        return v;
    }
    void forget() {
        for (auto* queue : {&shrunk_, &risen_, &stars_}) {
            for (int32_t v : *queue) waits_[v] = 0;
            queue->clear();
        }
        failed_ = false, settled_constant_ = -1;
    }

    template <class Visit>
    void visit_ends(int32_t v, Visit visit) const {
        for (int32_t a = m_.first[v]; a < m_.first[v + 1]; ++a) visit(a);
        for (const int32_t* s = m_.slots_begin(v); s != m_.slots_end(v); ++s) visit(losses.end_of_slot(*s));
    }
    // The other ends of the table at an end.
    template <class Visit>
    void visit_others(int32_t end, Visit visit) const {
        const int32_t arcs = int32_t(m_.arcs.size());
        if (end < arcs) return visit(losses.reverse(end));
        const Factor& f = m_.factors[m_.factor_of[end - arcs]];
        for (int32_t s = f.first; s < f.first + f.order; ++s)
            if (s != end - arcs) visit(losses.end_of_slot(s));
    }

    double worth() const {
        return std::max(losses.small, WORTH * std::min(losses.most() - losses.constant(), m_.scale));
    }
    bool worthwhile(int32_t v, const std::vector<double>& amounts) const {
        const double least = worth();
        for (int32_t p = 0; p < losses.left(v); ++p)
            if (amounts[losses.state(v, p)] > least) return true;
        return false;
    }

    // Removes states that lose too much.
    bool settle(int32_t v) {
        losses.lift(v);
        if (losses.excludes(0)) return blame(v);
        bool shrunk = false;
        for (int32_t p = losses.left(v); p-- > 0;) {
            const int32_t state = losses.state(v, p);
            if (losses.excludes(losses.loss(v, state))) losses.remove(v, state), shrunk = true;
        }
        if (shrunk) wait(v, SHRUNK | STAR);
        return losses.left(v) > 0 || blame(v);
    }
    bool blame(int32_t v) {
        ++weight[v];
        return false;
    }

    // The node at an end takes from the table what amounts_ says.
    bool take(int32_t end) {
        if (!losses.take(end, amounts_)) return true;
        const int32_t v = losses.node(end);
        if (worthwhile(v, amounts_)) wait(v, RISEN | STAR);
        if (settle(v)) return true;
        visit_others(end, [&](int32_t other) { ++weight[losses.node(other)]; });
        return false;
    }

    // A node lost states: others may no longer avoid what they could.
    bool tell(int32_t v, const Clock& clock) {
        bool possible = true;
        visit_ends(v, [&](int32_t end) {
            visit_others(end, [&](int32_t other) {
                if (!possible) return;
                clock.add(losses.effort(other));
                losses.find_least(other, false, amounts_);
                possible = take(other);
            });
        });
        return possible;
    }

    // A node's losses rose: in each table they move to the node that comes first.
    bool pass_on(int32_t v, const Clock& clock) {
        bool possible = true;
        visit_ends(v, [&](int32_t end) {
            int32_t first = end;
            visit_others(end, [&](int32_t other) {
                wait(losses.node(other), STAR);
                if (losses.node(other) < losses.node(first)) first = other;
            });
            if (possible && first != end) possible = draw(first, clock);
        });
        return possible;
    }

    // Moves losses of other nodes through the table to the node at an end; what is not needed goes back.
    bool draw(int32_t end, const Clock& clock) {
        clock.add(losses.effort(end));
        losses.find_least(end, true, amounts_);
        const int32_t v = losses.node(end);
        if (!worthwhile(v, amounts_)) return true;
        visit_others(end, [&](int32_t other) { losses.give(other); });
        if (!take(end)) return false;
        visit_others(end, [&](int32_t other) {
            clock.add(losses.effort(other));
            losses.find_least(other, false, amounts_);
            losses.take(other, amounts_);
        });
        return true;
    }

    // If every state of a node loses something there or at its neighbours, moves these losses to the node, and on.
    bool gather(int32_t v, const Clock& clock) {
        for (int32_t i = 0; i < m_.count[v]; ++i) sums_[i] = losses.loss(v, i);
        const double least = worth();
        bool avoidable = true;
        visit_ends(v, [&](int32_t end) {
            if (!avoidable) return;
            clock.add(losses.effort(end));
            losses.find_least(end, true, amounts_);
            avoidable = false;
            for (int32_t i = 0; i < m_.count[v]; ++i) sums_[i] += std::max(amounts_[i], 0.0);
            for (int32_t p = 0; p < losses.left(v); ++p) avoidable |= sums_[losses.state(v, p)] <= least;
        });
        if (avoidable) return true;
        bool possible = true;
        visit_ends(v, [&](int32_t end) { possible = possible && draw(end, clock); });
        return possible;
    }
};

}  // namespace search
