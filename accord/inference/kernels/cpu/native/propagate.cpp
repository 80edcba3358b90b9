// Loopy belief propagation on CPUs, called from Python with plain pointers. See docs/adr/0004-fused-cpu-kernel.md.
#include <exception>
#include <system_error>

#include "solver.hpp"

// What Python is told; mirrored in _solve.py.
enum Status { SOLVED, OUT_OF_MEMORY, NO_THREADS, OUT_OF_RANGE };

// Whether edges name existing nodes and graphs, and every node has edges of one graph only. A field was checked when it
// was built, but its tensors may have been changed since, and everything below uses these numbers as places in memory.
inline bool in_range(const Arguments& a) {
    const uint64_t nodes = a.nodes, graphs = a.graphs;  // as unsigned numbers, negative ones are too large
    bool good = true;
    for (int64_t e = 0; e < a.edges; ++e) good &= (uint64_t(a.source[e]) < nodes) & (uint64_t(a.target[e]) < nodes);
    if (!good || !a.graph) return good;
    std::vector<int32_t> graph_of(a.nodes, -1);
    for (int64_t e = 0; e < a.edges; ++e) {
        if (uint64_t(a.graph[e]) >= graphs) return false;
        for (int64_t node : {a.source[e], a.target[e]}) {
            if (graph_of[node] < 0) graph_of[node] = int32_t(a.graph[e]);
            if (graph_of[node] != a.graph[e]) return false;
        }
    }
    return true;
}

template <class R> int propagate(Arguments& a) try {
    if (!in_range(a)) return OUT_OF_RANGE;
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
                const bool last = unit == together.back() && r == a.replicas - 1;
                if (!common.solve(*unit, r, team, stuck, last)) {
                    failed = true;
                    return;
                }
            }
        try {
            std::unique_ptr<Solver<R>> own;
            const int64_t tasks = int64_t(alone.size()) * a.replicas;
            for (int64_t task = next++; task < tasks && stuck.load() < 0 && !failed; task = next++) {
                if (!own) own = std::make_unique<Solver<R>>(a, plan);
                const Unit& unit = *alone[task / a.replicas];
                if (!own->solve(unit, task % a.replicas, Team{}, stuck, task == tasks - 1)) failed = true;
            }
        } catch (const std::exception&) {  // one that leaves a thread ends the process
            failed = true;
        }
    };
    in_parallel(threads, work);
    a.stuck = stuck.load();
    return failed ? OUT_OF_MEMORY : SOLVED;
} catch (const std::system_error&) {
    return NO_THREADS;
} catch (const std::exception&) {
    return OUT_OF_MEMORY;
}

extern "C" int accord_propagate_float32(Arguments* a) { return propagate<float>(*a); }
extern "C" int accord_propagate_float64(Arguments* a) { return propagate<double>(*a); }
