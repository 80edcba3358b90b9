// The best labelling of a field and an upper bound, called from Python with plain pointers. See docs/adr/0015.
#include <exception>
#include <new>
#include <system_error>

#include "helper.hpp"
#include "model/prepare.hpp"

namespace search {

constexpr double ENTRIES_PER_SECOND = 1e8;  // of elimination, on a slow machine
constexpr double QUICK_WORK = 1e6;          // entries that every component may use before the first turn
constexpr double QUICK_FACTOR = 8;          // of the entries of a component's tables: enough for trees of factors
constexpr double QUICK_SHARE = 0.03;        // of the time for elimination: what the dual may use before
constexpr double QUICK_TURN = 0.1;          // seconds of work that everything else may use before a long elimination
constexpr double FIRST_TURN = 0.05;         // seconds of work, see Clock; each turn is twice as long as the one before
constexpr double FIRST_PASSES = 50;         // of the dual, which the first turn of a large field can hold
constexpr double EDGE_SHARE = 0.04;         // of the work for a node: what such a turn gets for an edge or a factor
constexpr double FOREVER = 1e300;           // no limit but the budget
constexpr int MOST_PASSES = 100000;         // of the dual in one turn

constexpr int64_t MANY = 5000;              // nodes, whose first turn may take all the time: further labels come before

// Ways to labels and bounds that may be switched off, for tests.
enum Way { BY_ELIMINATION = 1, BY_GROUPS = 2, BY_SEARCH = 4, BY_BRANCHING = 8 };

struct Job {
    Part part;
    Portfolio portfolio;
    Job(Part&& given, uint64_t seed, const Clock& clock) : part(std::move(given)), portfolio(part.model, seed, clock) {}
};

// One component's turn of so many seconds of work. With `any`, labels that are allowed suffice.
inline void advance(Portfolio& p, double share, int64_t ways, const Clock& clock, bool any = false) {
    const double end = clock.seconds() + share;
    const auto until = [&](double part) { return clock.seconds() + part * std::max(end - clock.seconds(), 0.0); };
    if (!p.converged()) p.tighten(until(0.25), MOST_PASSES);
    if (!p.done()) p.satisfy(until(0.5));
    if (!p.done() && ways & BY_GROUPS) p.tighten_by_groups(until(0.3));
    if (!p.done() && ways & BY_SEARCH) p.search(until(p.search_share()), any);
    if (!p.done() && ways & BY_BRANCHING) p.branch(end);
}

// One turn of fixed work. While nothing allowed is found, further ones, each twice as long; then one more to improve it.
inline void advance_fixed(Portfolio& p, const Model& m, const Arguments& a, const Clock& clock) {
    const double share = std::min(a.work * (m.nodes + EDGE_SHARE * double(m.num_tables())), a.most);
    const auto turn = [&](double seconds, bool any) {
        clock.restart();
        advance(p, seconds, a.ways, clock, any);
    };
    turn(share, false);
    double spent = 0;
    for (double next = 2 * share; !p.done() && p.found.x.empty() && spent + next <= a.patience; next *= 2) {
        turn(next, true);
        spent += next;
    }
    if (spent > 0 && !p.done() && !p.found.x.empty()) turn(share, false);
    if (a.ways & BY_SEARCH) p.finish();
}

// By elimination, unless a short turn of everything else suffices.
inline void solve_exactly(Portfolio& p, double seconds, int64_t ways, const Clock& clock) {
    const Plan plan = p.plan(seconds * ENTRIES_PER_SECOND);
    if (plan.fixed) return;
    advance(p, std::min(plan.work / ENTRIES_PER_SECOND, QUICK_TURN), ways, clock);
    if (!p.done()) p.eliminate(plan, FOREVER);
}

inline void write(const Arguments& a, int32_t c, const std::vector<int32_t>& nodes, const Part* part,
                  const Found& found) {
    a.score[c] = found.score, a.bound[c] = found.bound;
    a.method[c] = found.method, a.proof[c] = found.proof, a.infeasible[c] = found.infeasible;
    for (size_t i = 0; i < nodes.size(); ++i)
        a.labels[nodes[i]] = found.x.empty() ? -1 : part->states[part->model.at[i] + found.x[i]];
}

// Begins with labels as states that are left; -1: none.
inline void begin(Job& job, const int64_t* start) {
    const Part& part = job.part;
    Labels x(part.nodes.size(), -1);
    bool some = false;
    for (size_t i = 0; i < x.size(); ++i)
        for (int32_t s = 0; s < part.model.count[i]; ++s)
            if (part.states[part.model.at[i] + s] == start[part.nodes[i]]) x[i] = s, some = true;
    if (some) job.portfolio.begin(std::move(x));
}

using Jobs = std::vector<std::pair<int32_t, std::unique_ptr<Job>>>;

// Further labels, if any component is not solved.
inline void go_on(const Arguments& a, Jobs& open) {
    if (std::all_of(open.begin(), open.end(), [](auto& entry) { return entry.second->portfolio.done(); })) return;
    std::vector<int64_t> labels(a.nodes, -1);
    if (!a.later(labels.data())) return;
    for (auto& [c, job] : open)
        if (!job->portfolio.done()) begin(*job, labels.data());
}

inline void solve(Arguments& a) {
    const Clock clock(a.budget - a.used, a.stop);
    Parts parts(a);
    a.components = parts.size();
    Jobs open;
    for (int32_t c = 0; c < parts.size(); ++c) {
        Part part;
        if (!parts.prepare(c, part)) {
            Found none;
            none.infeasible = true, none.bound = none.score, none.proof = CONTRADICTION;
            write(a, c, part.nodes, nullptr, none);
            continue;
        }
        auto job = std::make_unique<Job>(std::move(part), a.seed, clock);
        const Model& m = job->part.model;
        const double quick = std::max(QUICK_WORK, QUICK_FACTOR * double(m.size() + int64_t(m.tables.size())));
        if (a.ways & BY_ELIMINATION) {
            const Plan plan = job->portfolio.plan((a.start && !a.distinct) || !m.factors.empty() ? quick : QUICK_WORK);
            if (!plan.fixed) job->portfolio.eliminate(plan, FOREVER);
        }
        if (a.start && !job->portfolio.done()) begin(*job, a.start);
        if (job->portfolio.done())
            write(a, c, job->part.nodes, &job->part, job->portfolio.found);
        else
            open.emplace_back(c, std::move(job));
    }
    if (a.work > 0) {
        for (auto& [c, job] : open) {
            advance_fixed(job->portfolio, job->part.model, a, clock);
            write(a, c, job->part.nodes, &job->part, job->portfolio.found);
        }
        return;
    }
    std::vector<std::unique_ptr<Job>> closed;  // kept as long as the helper may use their models
    std::vector<const Model*> models;
    std::unique_ptr<Helper> helper;
    for (auto& [c, job] : open) models.push_back(&job->part.model);
    if (a.threads > 1 && a.ways & BY_SEARCH && !open.empty() && clock.elapsed() < a.budget - a.used)
        try {
            helper = std::make_unique<Helper>(models, a.seed + 1, a.budget - a.used - clock.elapsed());
        } catch (const std::system_error&) {  // no more threads are allowed
        }
    // A share of the time for exact solutions, before anything else is tried on the component but a few passes of the dual.
    const double seconds = 0.75 * a.budget / std::max<double>(1, double(open.size()));
    const bool exactly = a.ways & BY_ELIMINATION && seconds * ENTRIES_PER_SECOND > QUICK_WORK;
    for (auto& [c, job] : open)
        if (exactly && !clock.late()) job->portfolio.tighten(clock.seconds() + QUICK_SHARE * seconds, MOST_PASSES);
    const bool many = a.nodes > MANY;
    if (a.later && many && !clock.late()) go_on(a, open);
    for (auto& [c, job] : open)
        if (exactly && !job->portfolio.done() && !clock.late()) solve_exactly(job->portfolio, seconds, a.ways, clock);
    double work = 0;
    for (auto& [c, job] : open) work = std::max(work, Dual::effort(job->part.model));
    double share = std::max(FIRST_TURN, 1e-9 * FIRST_PASSES * work);
    share = std::min(share, 0.3 * a.budget / std::max<double>(1, double(open.size())));
    for (bool first = true; !open.empty(); share *= 2, first = false) {
        for (auto& [c, job] : open) {
            Portfolio& p = job->portfolio;
            if (!p.done()) advance(p, share, a.ways, clock);
        }
        if (first && a.later && !many && !clock.late()) go_on(a, open);
        const bool last = clock.late();
        if (last && helper) {
            helper->stop();
            for (auto& [c, job] : open) {
                const auto place = std::find(models.begin(), models.end(), &job->part.model) - models.begin();
                if (!job->portfolio.done()) job->portfolio.take(helper->labels(place));
            }
        }
        const auto finished = [&](auto& entry) {
            auto& [c, job] = entry;
            if (!last && !job->portfolio.done()) return false;
            write(a, c, job->part.nodes, &job->part, job->portfolio.found);
            if (helper) closed.push_back(std::move(job));
            return true;
        };
        open.erase(std::remove_if(open.begin(), open.end(), finished), open.end());
    }
}

}  // namespace search

// 0: solved; 1: out of memory; 2: anything else.
extern "C" int accord_maximise(search::Arguments* arguments) try {
    search::solve(*arguments);
    return 0;
} catch (const std::bad_alloc&) {
    return 1;
} catch (const std::exception&) {
    return 2;
}
