// Belief propagation between factors and variables, called from Python with plain pointers. See docs/adr/0018.
#include <exception>
#include <system_error>

#include "residual.hpp"
#include "sequential.hpp"
#include "synchronous.hpp"

// What Python is told; mirrored in _native.py.
enum Status { SOLVED, OUT_OF_MEMORY, NO_THREADS, OUT_OF_RANGE };
enum Schedule { SYNCHRONOUS, SEQUENTIAL, RESIDUAL };

template <class R> bool has_barred(const void* numbers, int64_t count) {
    bool found = false;
    for (int64_t k = 0; numbers && k < count; ++k) found |= ((const R*)numbers)[k] == -INF<R>;
    return found;
}
// Whether messages may be -inf.
template <class R> bool any_barred(const Arguments& a, int64_t messages) {
    // Runs in order update totals, so they count forbidden potentials too.
    const bool found = a.schedule != SYNCHRONOUS && has_barred<R>(a.unary, a.replicas * a.at[a.nodes]);
    // A rule can forbid labels without a score of -inf.
    return found || a.groups > 0 || has_barred<R>(a.tables, a.table_replicas * a.entries) ||
           has_barred<R>(a.start, a.replicas * messages);
}

template <class R, bool MAX> int64_t solve(const Arguments& a, const Graph& graph) {
    State<R> state(graph);
    state.barred = any_barred<R>(a, graph.message_at[graph.slots]);
    const int threads = int(std::max<int64_t>(1, a.threads));
    if (a.schedule == SEQUENTIAL) return solve_in_order<R, MAX, Sequential<R, MAX>>(graph, state, threads);
    if (a.schedule == RESIDUAL) return solve_in_order<R, MAX, Residual<R, MAX>>(graph, state, threads);
    return Synchronous<R, MAX>(graph, state, threads).solve();
}

template <class R> int propagate(Arguments& a) try {
    if (!in_range(a)) return OUT_OF_RANGE;
    const Graph graph(a);
    a.stuck = a.best ? solve<R, true>(a, graph) : solve<R, false>(a, graph);
    return SOLVED;
} catch (const std::system_error&) {
    return NO_THREADS;
} catch (const std::exception&) {
    return OUT_OF_MEMORY;
}

extern "C" int accord_factors_float32(Arguments* a) { return propagate<float>(*a); }
extern "C" int accord_factors_float64(Arguments* a) { return propagate<double>(*a); }
