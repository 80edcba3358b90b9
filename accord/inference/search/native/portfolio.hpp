// The best labelling of one connected field in a given time: elimination where it is affordable, else a dual bound,
// labellings from several searches, their combinations, and branch and bound.
#pragma once
#include <memory>

#include "branch.hpp"
#include "elimination.hpp"
#include "feasible.hpp"
#include "labelling.hpp"
#include "minibuckets.hpp"
#include "trws.hpp"

namespace search {

enum Method : int32_t { NOT_STARTED, ELIMINATION, DUAL, LOCAL, BRANCHING, CONTRADICTION, BACKTRACKING };

struct Found {
    Labels x;
    double score = -std::numeric_limits<double>::infinity();
    double bound = std::numeric_limits<double>::infinity();
    bool optimal = false, infeasible = false;
    int32_t method = NOT_STARTED;  // what found the labels
    int32_t proof = NOT_STARTED;   // what closed the gap, if it is closed
};

class Portfolio {
  public:
    Portfolio(const Model& m, uint64_t seed, const Clock& clock)
        : m_(m), clock_(clock), random_(seed), planner_(m, clock), eliminator_(m) {
        all_.resize(m.nodes);
        for (int32_t v = 0; v < m.nodes; ++v) all_[v] = v;
    }

    Found found;

    bool done() const { return found.optimal || found.infeasible; }

    // Exact, if tables of this many entries in all suffice.
    bool eliminate(double work, double deadline) {
        work = std::min(work, MOST_WORK);
        const double limit = std::min(work, MOST_ENTRIES);
        Plan best;
        best.fixed = 1, best.work = work;
        const auto take = [&](Plan&& plan) {
            if (!plan.fixed && (best.fixed || plan.work < best.work)) best = std::move(plan);
        };
        take(planner_.make(all_, limit, false, random_, best.work));
        clock_.add(300.0 * m_.nodes);
        if (best.fixed || best.work > EASY_WORK) {
            if (best.fixed && m_.nodes > LARGE) return false;
            take(planner_.make(all_, limit, true, random_, best.work));
            take(planner_.follow(breadth_first(), limit, best.work));
            for (int again = 0; again < 4 && best.work > EASY_WORK && !clock_.late(); ++again)
                take(planner_.make(all_, limit, true, random_, best.work));
        }
        if (best.fixed) return false;
        Labels x(m_.nodes, 0);
        if (!eliminator_.solve(best, x, random_, 0, deadline, clock_)) return false;
        close(x, ELIMINATION);
        return true;
    }

    // Passes of the dual until it converges, the gap is closed or time is up; every few passes a labelling.
    void tighten(double deadline, int most) {
        if (!dual_) dual_ = std::make_unique<Dual>(m_);
        Labels x;
        double before = found.bound;
        for (int pass = 0; pass < most && !done(); ++pass) {
            if (pass && clock_.past(deadline)) return;
            dual_->iterate(x, clock_);
            lower(dual_->bound);
            offer(x, DUAL);
            if (pass % 8 == 7) {
                const double fall = before - found.bound;
                before = found.bound;
                if (fall < 1e-5 * std::max(found.bound - found.score, tolerance())) {
                    converged_ = true;
                    return;
                }
            }
        }
    }

    // A first labelling where pairs are forbidden, or the proof that there is none.
    void satisfy(double deadline) {
        if (m_.penalty == 0 || !found.x.empty() || m_.most > 64 * Feasible::MOST_WORDS) return;
        if (!feasible_) feasible_ = std::make_unique<Feasible>(m_);
        std::vector<double> wishes = m_.unary;
        if (dual_)
            for (int32_t v = 0; v < m_.nodes; ++v)
                std::copy_n(dual_->totals(v), m_.count[v], wishes.begin() + m_.at[v]);
        Labels x;
        const auto outcome = feasible_->run(wishes, random_, x, deadline, clock_);
        if (outcome == Feasible::FOUND) {
            Labelling start(m_);
            start.set(x), start.improve(random_);
            offer(start.x, BACKTRACKING);
            if (soft_) elite_.emplace_back(soft().score(found.x), found.x);
        } else if (outcome == Feasible::NONE) {
            found.infeasible = true, found.bound = -std::numeric_limits<double>::infinity(), found.proof = BACKTRACKING;
        }
    }

    // A tighter bound by elimination in groups, with tables as large as time allows.
    void tighten_by_groups(double deadline) {
        if (!dual_ || m_.nodes > LARGE || double(m_.nodes) * m_.edges > MOST_LINKS) return;
        const Plan plan = planner_.make(all_, 1e300, false, random_);
        double bits = 0;  // of the tables of exact elimination
        for (size_t p = 0; p < plan.order.size(); ++p)
            for (int32_t u : plan.around[p]) bits += std::log2(double(m_.count[u]));
        bits /= m_.nodes;
        double limit = double(m_.most) * m_.most * m_.most;
        const double entries = GROUP_ENTRIES_PER_SECOND * (deadline - clock_.seconds()) / m_.nodes;
        const auto fits = [&](double size) { return size * std::max(1.0, 1.5 * bits / std::log2(size)) <= entries; };
        if (!fits(limit) || !fits(2 * group_limit_)) return;
        while (2 * limit <= MOST_ENTRIES && 2 * limit * m_.nodes <= MOST_HELD && fits(2 * limit)) limit *= 2;
        group_limit_ = limit;
        clock_.add(plan.effort);
        auto groups = std::make_unique<MiniBuckets>(m_);
        const double bound = groups->bound(*dual_, plan.order, limit, deadline, clock_);
#ifdef TRACE
        printf("%.3f groups of %.0f: bound %.6f, before %.6f\n", clock_.seconds(), limit, bound, found.bound);
#endif
        if (!groups_ || bound < groups_->root) groups_ = std::move(groups);
        lower(bound);
    }

    void search(double deadline) {
        if (!soft_) {
            prepare();
            // At first, a tenth of the time for annealing, and as much for a block.
            const double sweep = 1e-9 * (12.0 * m_.nodes + 3.0 * double(m_.size()));
            const double seconds = 0.1 * std::max(deadline - clock_.seconds(), 0.0);
            sweeps_ = int(std::clamp(seconds / sweep, 5.0, double(sweeps_)));
            block_limit_ = std::clamp(seconds / (3e-9 * m_.nodes), double(m_.most) * m_.most, block_limit_);
        }
        while (!done() && !clock_.past(deadline)) round(deadline);
    }

    // Whether the gap is so small, or the field, that branching has a chance.
    bool nearly_solved() const {
        return m_.nodes <= 60 || (!found.x.empty() && found.bound - found.score < 10 * m_.scale);
    }

    void branch(double deadline) {
        if (!dual_ || !m_.allowed(found.bound)) return;
        Branch tree(m_, *dual_);
        Labels x = found.x;
        double score = std::isfinite(found.score) ? found.score : m_.floor - 1;
        // Where mini-buckets are far tighter than the dual, they guide the search better.
        const bool guided = groups_ && groups_->root - score < 0.7 * (dual_->bound - score);
        const bool proved = guided ? groups_->prove(x, score, 0.5 * tolerance(), deadline, clock_)
                                   : tree.prove(x, score, 0.5 * tolerance(), deadline, clock_);
#ifdef TRACE
        printf("%.3f branching, guided %d: proved %d score %.6f\n", clock_.seconds(), guided, proved, score);
#endif
        if (!x.empty() && score > found.score && m_.allowed(score)) offer(x, BRANCHING);
        if (!proved) return;
        if (found.x.empty())
            found.infeasible = true, found.bound = -std::numeric_limits<double>::infinity();
        else
            found.bound = found.score, found.optimal = true;
        found.proof = BRANCHING;
    }

    double tolerance() const {
        return 1e-9 * std::max(1e-300, std::isfinite(found.score) ? std::fabs(found.score) : m_.scale);
    }
    bool converged() const { return converged_; }

  private:
    static constexpr double MOST_ENTRIES = 1 << 26;  // of one table: 512 MB
    static constexpr double GROUP_ENTRIES_PER_SECOND = 1e8;  // of mini-buckets, on a slow machine
    static constexpr double MOST_WORK = 2e9;         // entries of all tables: 1 GB for the choices with two states
    static constexpr double MOST_LINKS = 2e8;        // nodes x edges, up to which all nodes are put in order
    static constexpr double MOST_HELD = 5e7;         // entries of all tables of mini-buckets: 400 MB
    static constexpr double EASY_WORK = 1e6;         // entries that take milliseconds; other orders are not tried
    static constexpr int32_t LARGE = 20000;          // nodes; beyond, only the quickest order is tried
    static constexpr size_t ELITE = 12;              // labellings that are kept to be combined
    static constexpr int32_t FEW = 300;              // nodes; tabu search looks at all of them in every step
    static constexpr int PATIENCE = 8;               // rounds without a better labelling

    const Model& m_;
    const Clock& clock_;
    Random random_;
    Planner planner_;
    Eliminator eliminator_;
    Labels all_;
    std::unique_ptr<Dual> dual_;
    std::unique_ptr<Feasible> feasible_;
    std::unique_ptr<MiniBuckets> groups_;
    std::unique_ptr<Model> soft_;  // the model with a lower penalty, for searches that pass through forbidden pairs
    std::unique_ptr<Labelling> current_;
    std::unique_ptr<Planner> soft_planner_;
    std::unique_ptr<Eliminator> soft_eliminator_;
    std::vector<std::pair<double, Labels>> elite_;
    bool converged_ = false, blocks_help_ = true;
    double block_limit_ = 1024, group_limit_ = 0;
    int sweeps_ = 200, rounds_ = 0, barren_ = 0;

    const Model& soft() const { return m_.penalty > 0 ? *soft_ : m_; }

    void offer(const Labels& x, Method method) {
        const double score = m_.score(x);
        if (!m_.allowed(score) || score <= found.score) return;
        found.x = x, found.score = score, found.method = method;
        check();
    }
    void lower(double bound) {
        found.bound = std::min(found.bound, bound);
        if (!m_.allowed(found.bound)) {
            found.infeasible = true, found.bound = -std::numeric_limits<double>::infinity(), found.proof = DUAL;
            return;
        }
        check();
    }
    void check() {
        if (found.bound - found.score <= tolerance()) {
            found.optimal = true, found.proof = DUAL;
            found.bound = std::max(found.bound, found.score);
        }
    }
    void close(const Labels& x, Method method) {
        const double score = m_.score(x);
        found.proof = method;
        if (!m_.allowed(score)) {
            found.infeasible = true, found.bound = -std::numeric_limits<double>::infinity();
            return;
        }
        found.x = x, found.score = found.bound = score, found.optimal = true, found.method = method;
    }

    Labels breadth_first() {
        // From a node far away from others: the second of two searches starts where the first ended.
        Labels order;
        int32_t start = 0;
        for (int twice = 0; twice < 2; ++twice) {
            std::vector<char> seen(m_.nodes, 0);
            order.assign(1, start), seen[start] = 1;
            for (size_t next = 0; next < order.size(); ++next)
                for (const Arc* a = m_.begin(order[next]); a != m_.end(order[next]); ++a)
                    if (!seen[a->other]) seen[a->other] = 1, order.push_back(a->other);
            start = order.back();
        }
        return order;
    }

    void prepare() {
        soft_ = std::make_unique<Model>(m_);
        if (m_.penalty > 0) soften(std::max(1e-3, 0.5 * m_.scale));
        current_ = std::make_unique<Labelling>(soft());
        soft_planner_ = std::make_unique<Planner>(soft(), clock_);
        soft_eliminator_ = std::make_unique<Eliminator>(soft());
        block_limit_ = std::max(1024.0, double(m_.most) * m_.most);
        if (!found.x.empty()) elite_.emplace_back(soft().score(found.x), found.x);
    }
    void soften(double penalty) {
        for (int32_t e = 0; e < m_.edges; ++e)
            for (int64_t i = m_.table_at[e]; i < (e + 1 < m_.edges ? m_.table_at[e + 1] : int64_t(m_.tables.size())); ++i)
                if (m_.barred(e, m_.tables[i])) soft_->tables[i] = m_.low[e] - penalty;
        soft_->penalty = penalty;
    }

    void round(double deadline) {
        const double before = found.score, begun = clock_.seconds();
        const bool few = !blocks_help_ || m_.nodes <= FEW;
        // Few sweeps from a random labelling are worse than as many from a good one.
        const int kind = elite_.empty() ? 0 : sweeps_ < 50 ? 1 : rounds_ % (few ? 3 : 2);
        const double hot = 0.5 * m_.scale, cold = 0.03 * m_.scale;
        if (kind == 0) {
            current_->draw(random_);
            current_->anneal(random_, sweeps_, hot, cold, deadline, clock_);
        } else if (kind == 1) {
            current_->set(elite_[random_.below(uint32_t(elite_.size()))].second);
            current_->anneal(random_, sweeps_, hot * (0.2 + 0.4 * random_.uniform()), cold, deadline, clock_);
        } else {
            current_->set(elite_[random_.below(uint32_t(elite_.size()))].second);
            shake();
            current_->tabu(random_, 10 * sweeps_, deadline, clock_);
        }
        current_->improve(random_);
        take();
        const double middle = clock_.seconds();
        if (blocks_help_) {
            move_blocks(2, deadline);
            for (size_t i = 0; i < elite_.size() && !clock_.past(deadline); ++i)
                combine(elite_[i].second, random_.below(2), deadline);
            move_blocks(1, deadline);
        }
        take();
        keep();
        ++rounds_;
        // About as much time for annealing as for blocks; how much of either is best depends on the graph.
        if (blocks_help_ && kind < 2) {
            const double ratio = (clock_.seconds() - middle) / std::max(middle - begun, 1e-9);
            sweeps_ = std::clamp(int(sweeps_ * std::clamp(ratio, 0.8, 1.3)), 5, 1 << 20);
        }
        barren_ = found.score > before ? 0 : barren_ + 1;
#ifdef TRACE
        printf("%.3f kind %d sweeps %d limit %.0f current %.6f best %.6f\n", clock_.seconds(), kind, sweeps_,
               block_limit_, current_->score, found.score);
#endif
        if (barren_ < PATIENCE) return;
        // The population has converged: begin another, and search longer.
        barren_ = 0;
        if (!blocks_help_) sweeps_ = std::min(sweeps_ * 2, 1 << 20);
        block_limit_ = std::min(block_limit_ * 2, 65536.0);
        if (random_.below(2)) elite_.clear();
        if (found.x.empty() && m_.penalty > 0) soften(soft_->penalty * 1.5);
    }

    void take() { offer(current_->x, LOCAL); }

    // A connected set of nodes gets random states.
    void shake() {
        const uint32_t wanted = 1 + random_.below(uint32_t(std::max(2, m_.nodes / 8)));
        Labels region{int32_t(random_.below(m_.nodes))};
        std::vector<char> seen(m_.nodes, 0);
        seen[region[0]] = 1;
        for (size_t next = 0; next < region.size() && region.size() < wanted; ++next)
            for (const Arc* a = m_.begin(region[next]); a != m_.end(region[next]); ++a)
                if (!seen[a->other] && random_.below(4)) seen[a->other] = 1, region.push_back(a->other);
        for (int32_t v : region) {
            const int32_t state = int32_t(random_.below(m_.count[v]));
            if (state != current_->x[v]) current_->change(v, state);
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
            bool differs = other[v] != current_->x[v];
            if (wider)  // nodes beside those may change too
                for (const Arc* a = m_.begin(v); a != m_.end(v) && !differs; ++a)
                    differs = other[a->other] != current_->x[a->other];
            if (differs) apart.push_back(v);
        }
        if (!apart.empty()) optimise(apart, deadline);
    }

    double optimise(const Labels& candidates, double deadline) {
        const Plan plan = soft_planner_->make(candidates, block_limit_, false, random_);
        if (candidates.size() == all_.size() && double(plan.order.size()) < 0.1 * double(all_.size())) {
            blocks_help_ = false;
            return -1;
        }
        clock_.add(plan.effort + 10.0 * double(m_.size() + m_.edges));
        Labels x = current_->x;
        if (!soft_eliminator_->solve(plan, x, random_, 1e-10 * m_.scale, deadline, clock_)) return -1;
        const double score = soft().score(x), gain = score - current_->score;
        if (gain >= -1e-9 * m_.scale) current_->set(x);
        return std::max(gain, 0.0);
    }

    // Good labellings that differ are kept; the worst goes.
    void keep() {
        for (auto& [score, x] : elite_)
            if (x == current_->x) return;
        elite_.emplace_back(current_->score, current_->x);
        if (elite_.size() > ELITE)
            elite_.erase(std::min_element(elite_.begin(), elite_.end(),
                                          [](const auto& a, const auto& b) { return a.first < b.first; }));
    }
};

}  // namespace search
