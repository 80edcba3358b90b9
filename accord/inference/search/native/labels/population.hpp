// Labellings of one field that are improved, kept and mixed: annealing, tabu search, exact moves of blocks, mixtures.
//
// Searches may pass through forbidden combinations, so these have a lower penalty here, which rises while nothing allowed is
// found.
#pragma once
#include "../elimination/elimination.hpp"
#include "labelling.hpp"

namespace search {

class Population {
  public:
    static constexpr int PATIENCE = 8;  // rounds without a better labelling

    // `seconds`: what the first rounds may take; in large fields they do less.
    Population(const Model& m, Random& random, const Clock& clock, double seconds)
        : soft_(m.penalty > 0 ? m : Model()), m_(m.penalty > 0 ? soft_ : m), hard_(m), clock_(clock), random_(random) {
        if (m.penalty > 0) soften(std::max(1e-3, 0.5 * m.scale));
        all_.resize(m.nodes);
        for (int32_t v = 0; v < m.nodes; ++v) all_[v] = v;
        // At first, a tenth of the time for annealing, and as much for a block.
        const double sweep = 1e-9 * (12.0 * m.nodes + 3.0 * double(m.size()));
        sweeps_ = int(std::clamp(0.1 * seconds / sweep, 5.0, double(sweeps_)));
        const double least = double(m.most) * m.most;
        block_limit_ = std::clamp(0.1 * seconds / (3e-9 * m.nodes), least, std::max(least, block_limit_));
    }

    void add(const Labels& x) { elite_.emplace_back(m_.score(x), x); }

    // Moves of blocks alone, from labels that are good already.
    template <class Offer>
    void refine(const Labels& x, double deadline, Offer offer) {
        current_.set(x);
        move_blocks(2, deadline);
        offer(current_.x);
        keep();
    }

    // One labelling is made, improved and mixed with the others. `offer` takes labels, and returns whether they are the
    // best so far.
    template <class Offer>
    void round(double deadline, Offer offer) {
        const double begun = clock_.seconds();
        const bool few = !blocks_help_ || m_.nodes <= FEW;
        // Few sweeps from a random labelling are worse than as many from a good one.
        const int kind = elite_.empty() ? 0 : sweeps_ < 50 ? 1 : rounds_ % (few ? 3 : 2);
        const double hot = 0.5 * m_.scale, cold = coldest();
        if (kind == 0)
            current_.draw(random_);
        else
            current_.set(elite_[random_.below(uint32_t(elite_.size()))].second);
        if (kind == 2) {
            shake();
            current_.tabu(random_, 10 * sweeps_, deadline, clock_);
        } else {
            const double begin = kind == 0 ? hot : hot * (0.2 + 0.4 * random_.uniform());
            current_.anneal(random_, sweeps_, begin, cold, deadline, clock_);
        }
        current_.improve(random_);
        bool better = offer(current_.x);
        const double middle = clock_.seconds();
        if (blocks_help_) {
            move_blocks(2, deadline);
            for (size_t i = 0; i < elite_.size() && !clock_.past(deadline); ++i)
                combine(elite_[i].second, random_.below(2), deadline);
            move_blocks(1, deadline);
            better |= offer(current_.x);
        }
        keep();
        ++rounds_;
        barred_rounds_ = hard_.penalty > 0 && !hard_.allowed(hard_.score(current_.x)) ? barred_rounds_ + 1 : 0;
        // About as much time for annealing as for blocks; how much of either is best depends on the graph.
        if (blocks_help_ && kind < 2) {
            const double ratio = (clock_.seconds() - middle) / std::max(middle - begun, 1e-9);
            sweeps_ = std::clamp(int(sweeps_ * std::clamp(ratio, 0.8, 1.3)), 5, MOST_SWEEPS);
        }
        barren_ = better ? 0 : barren_ + 1;
        if (barren_ >= PATIENCE) renew();
    }

    // Several rounds ended with forbidden combinations. Where nothing but those has a score, patience is worth more.
    bool too_soft() const { return barred_rounds_ >= (hard_.range > 0 ? 2 : PATIENCE); }

    // Forbidden combinations cost more from now on.
    void harden() {
        soften(std::min(soft_.penalty * (hard_.range > 0 ? 2 : 1.5), hard_.penalty));
        elite_.clear(), barred_rounds_ = 0;
    }

  private:
    static constexpr size_t ELITE = 12;         // labellings that are kept to be mixed
    static constexpr int32_t FEW = 300;         // nodes; tabu search looks at all of them in every step
    static constexpr int MOST_SWEEPS = 1 << 20;
    static constexpr double MOST_BLOCK = 65536; // entries of a table of a block

    Model soft_;
    const Model& m_;
    const Model& hard_;
    const Clock& clock_;
    Random& random_;
    Labels all_;
    Labelling current_{m_};
    Planner planner_{m_, clock_};
    Eliminator eliminator_{m_};
    std::vector<std::pair<double, Labels>> elite_;
    bool blocks_help_ = true;
    double block_limit_ = 1024;
    int sweeps_ = 200, rounds_ = 0, barren_ = 0, barred_rounds_ = 0;

    void soften(double penalty) {
        for (int32_t t = 0; t < hard_.num_tables(); ++t) {
            const double* values = hard_.table(t);
            double* softer = soft_.table(t);
            for (int64_t i = 0; i < hard_.entries(t); ++i)
                if (hard_.barred(t, values[i])) softer[i] = hard_.low[t] - penalty;
        }
        soft_.penalty = penalty;
    }

    // The last temperature. Where some tables change the score by far less than others, low ones settle these too.
    double coldest() {
        const double usual = 0.03 * m_.scale, least = 0.1 * m_.fine;
        return m_.fine > 0 ? usual * std::pow(least / usual, random_.uniform()) : usual;
    }

    // The labellings have converged: begin with others, and search longer.
    void renew() {
        barren_ = 0;
        if (!blocks_help_) sweeps_ = std::min(sweeps_ * 2, MOST_SWEEPS);
        block_limit_ = std::min(block_limit_ * 2, std::max(block_limit_, MOST_BLOCK));
        if (random_.below(2)) elite_.clear();
    }

    // A connected set of nodes gets random states.
    void shake() {
        const uint32_t wanted = 1 + random_.below(uint32_t(std::max(2, m_.nodes / 8)));
        Labels region{int32_t(random_.below(m_.nodes))};
        std::vector<char> seen(m_.nodes, 0);
        seen[region[0]] = 1;
        for (size_t next = 0; next < region.size() && region.size() < wanted; ++next)
            for (const int32_t* u = m_.near_begin(region[next]); u != m_.near_end(region[next]); ++u)
                if (!seen[*u] && random_.below(4)) seen[*u] = 1, region.push_back(*u);
        for (int32_t v : region) {
            const int32_t state = int32_t(random_.below(m_.count[v]));
            if (state != current_.x[v] && !current_.follows(v)) current_.change(v, state);
        }
    }

    // Blocks of nodes get their best labels given the others, until several blocks in a row gain nothing.
    void move_blocks(int patience, double deadline) {
        for (int idle = 0; idle < patience && blocks_help_ && !clock_.past(deadline);) {
            const double gain = optimise(all_, deadline);
            if (gain < 0) return;
            idle = gain > 1e-9 * m_.scale ? 0 : idle + 1;
        }
    }

    // The best mixture of two labellings and more: nodes on which they agree keep their labels.
    void combine(const Labels& other, bool wider, double deadline) {
        Labels apart;
        for (int32_t v = 0; v < m_.nodes; ++v) {
            bool differs = other[v] != current_.x[v];
            if (wider)  // nodes beside those may change too
                for (const int32_t* u = m_.near_begin(v); u != m_.near_end(v) && !differs; ++u)
                    differs = other[*u] != current_.x[*u];
            if (differs) apart.push_back(v);
        }
        if (!apart.empty()) optimise(apart, deadline);
    }

    double optimise(const Labels& candidates, double deadline) {
        const Plan plan = planner_.make(candidates, block_limit_, false, random_);
        if (candidates.size() == all_.size() && double(plan.order.size()) < 0.1 * double(all_.size())) {
            blocks_help_ = false;
            return -1;
        }
        clock_.add(plan.effort + 10.0 * double(m_.size() + m_.edges + m_.members.size()));
        Labels x = current_.x;
        if (!eliminator_.solve(plan, x, random_, 1e-10 * m_.scale, deadline, clock_)) return -1;
        const double score = m_.score(x), gain = score - current_.score;
        if (gain >= -1e-9 * m_.scale) current_.set(x);
        return std::max(gain, 0.0);
    }

    // Good labellings that differ are kept; the worst goes.
    void keep() {
        for (auto& [score, x] : elite_)
            if (x == current_.x) return;
        elite_.emplace_back(current_.score, current_.x);
        if (elite_.size() > ELITE)
            elite_.erase(std::min_element(elite_.begin(), elite_.end(),
                                          [](const auto& a, const auto& b) { return a.first < b.first; }));
    }
};

}  // namespace search
