// The best labelling of a field and an upper bound, called from Python with plain pointers. See docs/adr/0014.
#include <exception>
#include <new>

#include "portfolio.hpp"
#include "prepare.hpp"

namespace search {

constexpr double ENTRIES_PER_SECOND = 1e8;  // of elimination, on a slow machine
constexpr double QUICK_WORK = 1e6;          // entries that every component may use in the first round
constexpr double LEAST_SHARE = 2e-3;        // seconds; less is not worth another round

struct Job {
    Part part;
    Portfolio portfolio;
    bool begun = false;
    Job(Part&& given, uint64_t seed, const Clock& clock) : part(std::move(given)), portfolio(part.model, seed, clock) {}
};

// One component's turn: it may use `share` seconds.
inline void advance(Job& job, double share, const Clock& clock) {
    Portfolio& p = job.portfolio;
    const double start = clock.seconds();
    if (!job.begun) {
        job.begun = true;
        if (p.eliminate(0.8 * share * ENTRIES_PER_SECOND, start + 0.9 * share)) return;
    }
    const double left = start + share - clock.seconds(), now = clock.seconds();
    if (!p.converged()) p.tighten(now + 0.25 * left, 100000);
    if (p.done()) return;
    p.satisfy(clock.seconds() + 0.5 * (start + share - clock.seconds()));
    if (p.done()) return;
    p.search(std::max(clock.seconds(), now) + 0.6 * (start + share - clock.seconds()));
    if (p.done()) return;
    p.branch(start + share);
}

inline void write(const Arguments& a, int32_t c, const std::vector<int32_t>& nodes, const Part* part,
                  const Found& found) {
    a.score[c] = found.score, a.bound[c] = found.bound;
    a.method[c] = found.method, a.proof[c] = found.proof, a.infeasible[c] = found.infeasible;
    for (size_t i = 0; i < nodes.size(); ++i)
        a.labels[nodes[i]] = found.x.empty() ? -1 : part->states[part->model.at[i] + found.x[i]];
}

inline void solve(Arguments& a) {
    const Clock clock;
    const Components parts(a);
    a.components = parts.size();
    std::vector<int32_t> local(a.nodes);
    std::vector<char> alive(a.nodes ? a.at[a.nodes] : 0);
    std::vector<std::pair<int32_t, std::unique_ptr<Job>>> open;
    for (int32_t c = 0; c < parts.size(); ++c) {
        Part part;
        if (!prepare(a, parts, c, local, alive, part)) {
            Found none;
            none.infeasible = true, none.bound = none.score, none.proof = CONTRADICTION;
            write(a, c, part.nodes, nullptr, none);
            continue;
        }
        auto job = std::make_unique<Job>(std::move(part), a.seed + uint64_t(c) * 0x632BE59BD9B4E019ull, clock);
        job->portfolio.eliminate(QUICK_WORK, 1e300);
        if (job->portfolio.done())
            write(a, c, job->part.nodes, &job->part, job->portfolio.found);
        else
            open.emplace_back(c, std::move(job));
    }
    // Every open component takes turns; each round gives half of the time that is left to all of them.
    while (!open.empty()) {
        const double left = a.budget - clock.seconds();
        const bool last = 0.5 * left / double(open.size()) < LEAST_SHARE;
        size_t kept = 0;
        for (size_t i = 0; i < open.size(); ++i) {
            const double rest = a.budget - clock.seconds(), others = double(open.size() - i);
            advance(*open[i].second, std::max((last ? 1.0 : 0.5) * rest / others, 0.0), clock);
            auto& [c, job] = open[i];
            if (last || job->portfolio.done())
                write(a, c, job->part.nodes, &job->part, job->portfolio.found);
            else
                std::swap(open[kept++], open[i]);
        }
        open.resize(kept);
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
