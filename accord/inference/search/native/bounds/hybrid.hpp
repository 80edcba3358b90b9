// A complete search on losses that are kept soft arc consistent: short searches in depth, each from the open branch with
// the highest bound (hybrid best-first search, Allouche et al. 2015).
//
// So labellings are found early, nothing is searched twice, and the highest bound of an open branch holds for the field.
#pragma once
#include "consistency.hpp"

namespace search {

class Hybrid {
  public:
    Hybrid(const Model& m, Dual& dual) : m_(m), rules_(m, dual), losses_(rules_.losses) {
        open_.push_back({losses_.bound(), -1});
    }

    // No labelling scores more, unless it is known.
    double bound() const { return open_.empty() ? -std::numeric_limits<double>::infinity() : open_.front().bound; }

    // Searches until the deadline, and goes on in the next call. True: no labelling is better than `best`, which may have
    // been improved, by more than `gap`.
    bool prove(Labels& best, double& score, double gap, double deadline, const Clock& clock) {
        while (!open_.empty() && open_.front().bound > score + gap) {
            if (clock.past(deadline) || steps_.size() > MOST_STEPS) return false;
            const Open from = open_.front();
            std::pop_heap(open_.begin(), open_.end());
            open_.pop_back();
            rules_.undo(0);
            for (int32_t s = from.step; s >= 0; s = steps_[s].before) apply(steps_[s]);
            losses_.require(score + gap);
            const double before = clock.seconds();
            const bool possible = rules_.propagate(clock);
            const double middle = clock.seconds();
            if (possible) descend(from, best, score, gap, deadline, clock);
            // Longer searches return less often to a branch, which costs time.
            returning_ += middle - before, descending_ += clock.seconds() - middle;
            if (returning_ > MOST_RETURNING * descending_)
                limit_ = std::min(2 * limit_, MOST_BACKTRACKS);
            else if (returning_ < 0.5 * MOST_RETURNING * descending_)
                limit_ = std::max(limit_ / 2, LEAST_BACKTRACKS);
        }
        return true;
    }

  private:
    static constexpr int64_t LEAST_BACKTRACKS = 8, MOST_BACKTRACKS = 1 << 14;  // of one search in depth
    static constexpr double MOST_RETURNING = 0.1;     // of the time: going back to open branches
    static constexpr size_t MOST_STEPS = 20'000'000;  // 320 MB
    // A node keeps or loses a state, in the branch that another step leads to; -1: the root.
    struct Step {
        int32_t before, node, state;
        bool keep;
    };
    struct Open {
        double bound;
        int32_t step;
        bool operator<(const Open& other) const {
            return bound != other.bound ? bound < other.bound : step < other.step;
        }
    };
    // A state was kept; without it is still to be tried.
    struct Choice {
        size_t mark, length;
        double bound;
    };
    const Model& m_;
    Consistency rules_;
    Losses& losses_;
    std::vector<Step> steps_;
    std::vector<Open> open_;  // a heap
    int64_t limit_ = 64;                        // of backtracks
    double returning_ = 0, descending_ = 0;     // seconds of work
    int32_t last_ = -1;                         // the node of the last contradiction

    void apply(const Step& s) { s.keep ? rules_.keep_only(s.node, s.state) : rules_.remove(s.node, s.state); }

    void descend(const Open& from, Labels& best, double& score, double gap, double deadline, const Clock& clock) {
        std::vector<Choice> choices;
        std::vector<Step> path;  // the first step's `before` is that of `from`
        double bound = std::min(from.bound, losses_.bound());
        int64_t backtracks = 0;
        for (int64_t k = 0;; ++k) {
            if (backtracks > limit_ || ((k & 15) == 15 && clock.past(deadline))) break;
            const int32_t v = choose();
            clock.add(3.0 * m_.nodes);
            bool possible = v >= 0;
            if (possible) {
                const int32_t state = preferred(v, best);
                choices.push_back({losses_.mark(), path.size(), bound});
                path.push_back({0, v, state, true});
                rules_.keep_only(v, state);
                possible = rules_.propagate(clock);
            } else {
                complete(best, score, clock);
                losses_.require(score + gap);
            }
            while (!possible) {
                if (choices.empty()) return;
                ++backtracks;
                const Choice back = choices.back();
                choices.pop_back();
                rules_.undo(back.mark);
                path.resize(back.length + 1);
                path.back().keep = false;
                last_ = path.back().node;
                rules_.remove(path.back().node, path.back().state);
                bound = back.bound;
                if (bound <= score + gap) continue;
                possible = rules_.propagate(clock);
            }
            bound = std::min(bound, losses_.bound());
        }
        keep(from, choices, path, bound);
    }

    // What is left to be searched.
    void keep(const Open& from, const std::vector<Choice>& choices, const std::vector<Step>& path, double bound) {
        const auto add = [&](double value, int32_t step) {
            open_.push_back({value, step});
            std::push_heap(open_.begin(), open_.end());
        };
        int32_t before = from.step;
        size_t next = 0;
        for (size_t length = 0; length < path.size(); ++length) {
            Step step = path[length];
            step.before = before;
            if (next < choices.size() && choices[next].length == length) {
                Step without = step;
                without.keep = false;
                steps_.push_back(without);
                add(choices[next++].bound, int32_t(steps_.size()) - 1);
            }
            steps_.push_back(step);
            before = int32_t(steps_.size()) - 1;
        }
        add(bound, before);
    }

    void complete(Labels& best, double& score, const Clock& clock) {
        Labels x(m_.nodes);
        for (int32_t v = 0; v < m_.nodes; ++v) x[v] = losses_.state(v, 0);
        clock.add(10.0 * m_.nodes + 5.0 * m_.num_tables());
        const double found = m_.score(x);
        if (m_.allowed(found) && found > score) score = found, best = x;
    }

    // The node of the last contradiction; else one with few states, whose tables cost much or led to contradictions
    // (dom/wdeg, Boussemart et al. 2004). -1: every node has one state.
    int32_t choose() {
        if (last_ >= 0 && losses_.left(last_) > 1) return last_;
        int32_t found = -1;
        double least = std::numeric_limits<double>::max();
        for (int32_t v = 0; v < m_.nodes; ++v) {
            if (losses_.left(v) < 2) continue;
            const double value = losses_.left(v) / rules_.weight[v];
            if (value < least) least = value, found = v;
        }
        return found;
    }

    // The state that loses least; of equals that of the best labelling, or the first.
    int32_t preferred(int32_t v, const Labels& best) const {
        double least = std::numeric_limits<double>::max();
        for (int32_t p = 0; p < losses_.left(v); ++p) least = std::min(least, losses_.loss(v, losses_.state(v, p)));
        least += losses_.small;
        if (!best.empty() && losses_.has(v, best[v]) && losses_.loss(v, best[v]) <= least) return best[v];
        int32_t state = 0;
        while (!losses_.has(v, state) || losses_.loss(v, state) > least) ++state;
        return state;
    }
};

}  // namespace search
