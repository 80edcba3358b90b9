// Loopy belief propagation on CPUs, called from Python with plain pointers. See docs/adr/0004-fused-cpu-kernel.md.
#include <exception>

#include "solver.hpp"

template <class R> int propagate(Arguments& a) try {
    const int threads = int(std::max<int64_t>(1, a.threads));
    const int K = int(a.states);
    constexpr int64_t each = sizeof(R);
    const int64_t edge_bytes = (K * K + 4 * K) * each;
    const int64_t row_bytes = 2 * Solver<R>::padded_states(K, Solver<R>::quickest(K, true)) * each;
    const Sizes sizes{a.nodes, a.edges, a.graphs, a.replicas, WIDTH<R>, threads, edge_bytes, row_bytes};
    const Plan plan = std::move(Planner(sizes, a.source, a.target, a.graph).plan);
    return_freed(a.edges);
    std::atomic<int64_t> stuck{-1}, next{0};
    std::atomic<bool> failed{false};

    std::vector<const Unit*> together, alone;
    for (const Unit& unit : plan.units) (unit.shared ? together : alone).push_back(&unit);
    Solver<R> common(a, plan);
    for (const Unit* unit : together) common.reserve(*unit, Solver<R>::quickest(K, true));
    Barrier barrier(threads);
    const auto work = [&](int rank) {
        const Team team{rank, threads, threads > 1 ? &barrier : nullptr};
        for (const Unit* unit : together)
            for (int64_t r = 0; r < a.replicas; ++r) {
                if (stuck.load() >= 0) return;
                common.solve(*unit, r, team, stuck, unit == together.back() && r == a.replicas - 1);
            }
        try {
            std::unique_ptr<Solver<R>> own;
            const int64_t tasks = int64_t(alone.size()) * a.replicas;
            for (int64_t task = next++; task < tasks && stuck.load() < 0; task = next++) {
                if (!own) own = std::make_unique<Solver<R>>(a, plan);
                const Unit& unit = *alone[task / a.replicas];
                own->solve(unit, task % a.replicas, Team{}, stuck, task == tasks - 1);
            }
        } catch (const std::bad_alloc&) {
            failed = true;
        }
    };
    in_parallel(threads, work);
    a.stuck = stuck.load();
    return failed ? 1 : 0;
} catch (const std::exception&) {
    return 1;
}

extern "C" int accord_propagate_float32(Arguments* a) { return propagate<float>(*a); }
extern "C" int accord_propagate_float64(Arguments* a) { return propagate<double>(*a); }
