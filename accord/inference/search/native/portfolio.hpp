// The best labelling of one connected field in a given time: elimination where it is affordable, else a dual bound,
// labellings from several searches, their combinations, and branch and bound.
#pragma once
#include <memory>
#include <utility>

#include "bounds/branch.hpp"
#include "bounds/hybrid.hpp"
#include "bounds/minibuckets.hpp"
#include "bounds/trws.hpp"
#include "elimination/elimination.hpp"
#include "labels/feasible.hpp"
#include "labels/population.hpp"

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

    // How to eliminate all nodes with tables of at most so many entries in all; some are `fixed` if that is too few.
    Plan plan(double work) {
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
            if (best.fixed && m_.nodes > LARGE && m_.factors.empty()) return best;
            take(planner_.make(all_, limit, true, random_, best.work));
            take(planner_.follow(breadth_first(), limit, best.work));
            for (int again = 0; again < 4 && best.work > EASY_WORK && !clock_.late(); ++again)
                take(planner_.make(all_, limit, true, random_, best.work));
        }
        return best;
    }

    // Exact, unless time runs out.
    void eliminate(const Plan& plan, double deadline) {
        Labels x(m_.nodes, 0);
        if (eliminator_.solve(plan, x, random_, 0, deadline, clock_)) close(x, ELIMINATION);
    }

    // Begins with labels, improved by changes of single nodes, or goes on from them if they are the best so far. Those that
    // are -1 become the best given the others.
    void begin(Labels x) {
        Labels open;
        for (int32_t v = 0; v < m_.nodes; ++v)
            if (x[v] < 0) open.push_back(v), x[v] = 0;
        if (!open.empty()) {
            const Plan plan = planner_.make(open, MOST_ENTRIES, false, random_);
            clock_.add(plan.effort);
            eliminator_.solve(plan, x, random_, 0, 1e300, clock_);
        }
        begun_ |= found.x.empty();
        begun_ |= offer(x, LOCAL);
        Labelling start(m_);
        start.set(x), start.improve(random_);
        begun_ |= offer(start.x, LOCAL);
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

    // A first labelling where combinations are forbidden, or the proof that there is none.
    void satisfy(double deadline) {
        if (m_.penalty == 0 || !found.x.empty() || !Feasible::fits(m_)) return;
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
            if (population_) population_->add(found.x);
        } else if (outcome == Feasible::NONE) {
            found.infeasible = true, found.bound = -std::numeric_limits<double>::infinity(), found.proof = BACKTRACKING;
        }
    }

    // A tighter bound by elimination in groups, with tables as large as time allows.
    void tighten_by_groups(double deadline) {
        if (!dual_ || m_.nodes > LARGE || double(m_.nodes) * double(m_.near.size()) > 2 * MOST_LINKS) return;
        const Plan plan = planner_.make(all_, 1e300, false, random_);
        if (plan.fixed) return;  // time ran out
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
        if (!groups_ || bound < groups_->root) groups_ = std::move(groups);
        lower(bound);
    }

    // Labels that were found elsewhere.
    void take(const Labels& x) {
        if (!x.empty()) offer(x, LOCAL);
    }

    // Until the deadline; with `any`, only until there are allowed labels.
    void search(double deadline, bool any = false) {
        if (!population_) {
            population_ = std::make_unique<Population>(m_, random_, clock_, std::max(deadline - clock_.seconds(), 0.0));
            if (!found.x.empty()) population_->add(found.x);
        }
        if (std::exchange(begun_, false) && !found.x.empty())
            population_->refine(found.x, deadline, [&](const Labels& x) { return offer(x, LOCAL); });
        while (!done() && !clock_.past(deadline) && !(any && !found.x.empty())) {
            population_->round(deadline, [&](const Labels& x) { return offer(x, LOCAL); });
            if (population_->too_soft()) {
                population_->harden();
                if (!found.x.empty()) population_->add(found.x);
            }
        }
    }

    // Changes of single nodes, so that none is left that would raise the score.
    void finish() {
        if (done() || found.x.empty()) return;
        Labelling last(m_);
        last.set(found.x), last.improve(random_);
        offer(last.x, LOCAL);
    }

    // Of a turn, what local search gets: less where the gap is so small, or the field, that branching has a chance.
    double search_share() const {
        if (!found.x.empty() && found.bound - found.score < 10 * m_.scale) return 0.4;
        return m_.nodes > 60 ? 0.95 : hopeful_ ? 0.4 : 0.8;
    }

    // A complete search. Where mini-buckets are far tighter, they guide it better. Where messages have lowered the bound,
    // a few branches that they bound may close the gap: a part of the first turns is for these.
    void branch(double deadline) {
        if (!dual_ || !m_.allowed(found.bound) || !Losses::fits(m_)) return;
        if (!hybrid_) {
            const double preparing = 20.0 * double(m_.tables.size() + m_.unary.size());
            if (clock_.seconds() + 1e-9 * preparing > deadline) return;
            clock_.add(preparing);
            hybrid_ = std::make_unique<Hybrid>(m_, *dual_);
        }
        Labels x = found.x;
        double score = std::isfinite(found.score) ? found.score : m_.floor - 1;
        const bool guided = groups_ && groups_->root - score < 0.7 * (hybrid_->bound() - score);
        const double before = hybrid_->bound() - score;
        const double gap = 0.5 * tolerance(), now = clock_.seconds();
        bool proved = guided && groups_->prove(x, score, gap, deadline, clock_);
        if (!guided && branched_ < MOST_BRANCHED && dual_->bound < m_.ceiling - 1e-6 * m_.scale)
            ++branched_, proved = Branch(m_, *dual_).prove(x, score, gap, now + BRANCH_SHARE * (deadline - now), clock_);
        if (!guided && !proved) proved = hybrid_->prove(x, score, gap, deadline, clock_);
        hopeful_ = guided || hybrid_->bound() - score < 0.9 * before;
        if (!x.empty() && score > found.score && m_.allowed(score)) offer(x, BRANCHING);
        if (!proved) return lower(std::max(hybrid_->bound(), score));
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
    static constexpr double BRANCH_SHARE = 0.4;      // of a turn's complete search
    static constexpr int MOST_BRANCHED = 3;          // turns
    static constexpr double MOST_ENTRIES = 1 << 26;  // of one table: 512 MB
    static constexpr double GROUP_ENTRIES_PER_SECOND = 1e8;  // of mini-buckets, on a slow machine
    static constexpr double MOST_WORK = 2e9;         // entries of all tables: 1 GB for the choices with two states
    static constexpr double MOST_LINKS = 2e8;        // nodes x pairs of neighbours, up to which all nodes are put in order
    static constexpr double MOST_HELD = 5e7;         // entries of all tables of mini-buckets: 400 MB
    static constexpr double EASY_WORK = 1e6;         // entries that take milliseconds; other orders are not tried
    static constexpr int32_t LARGE = 20000;          // nodes; beyond, only the quickest order is tried

    const Model& m_;
    const Clock& clock_;
    Random random_;
    Planner planner_;
    Eliminator eliminator_;
    Labels all_;
    std::unique_ptr<Dual> dual_;
    std::unique_ptr<Feasible> feasible_;
    std::unique_ptr<MiniBuckets> groups_;
    std::unique_ptr<Hybrid> hybrid_;
    std::unique_ptr<Population> population_;
    bool converged_ = false, begun_ = false, hopeful_ = true;
    double group_limit_ = 0;
    int branched_ = 0;

    bool offer(const Labels& x, Method method) {
        const double score = m_.score(x);
        if (!m_.allowed(score) || score <= found.score) return false;
        found.x = x, found.score = score, found.method = method;
        check();
        return true;
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
                for (const int32_t* u = m_.near_begin(order[next]); u != m_.near_end(order[next]); ++u)
                    if (!seen[*u]) seen[*u] = 1, order.push_back(*u);
            start = order.back();
        }
        return order;
    }
};

}  // namespace search
