// The arguments that Python passes, and the choice of a kernel.
#pragma once
#include "binary.hpp"
#include "ratio.hpp"

extern "C" struct Arguments {
    int64_t replicas, nodes, edges, states, graphs;
    const int64_t *source, *target, *graph;  // [edges]
    const void* node;                        // [replicas, nodes, states]
    const void* edge;                        // [replicas, edges, states, states]
    const void* appearance;                  // [appearance_replicas, edges], or null if all are 1
    const void* start;                       // [replicas, 2 edges, states], or null
    void* messages;                          // [replicas, 2 edges, states]
    void* totals;                            // [replicas, nodes, states]: see `write_totals`; filled with `node`
    void* residual;                          // [replicas, graphs]
    int64_t* sweeps;                         // [replicas, graphs]
    int64_t appearance_replicas, max_sweeps, best, threads;
    double damping, tolerance;
    int64_t stuck;  // output: an arc whose message has no possible state, or -1
};

// How a unit is solved: what its messages are, and which kernel updates them.
enum class Way { BINARY, REDUCED, RATIO, LOGS };

template <class R> struct Kernel {
    void (*sweep)(const Sweep<R>&, int64_t first, int64_t last);
    void (*advance)(R* totals, const R* base, int64_t first, int64_t last, int padded);
};
template <class R, Form FORM> Kernel<R> binary_kernel() { return {sweep_binary<R, FORM>, advance_binary<R, FORM>}; }
template <class R, int K, bool MAX, bool PRODUCT> Kernel<R> ratio_kernel(Way way) {
    constexpr auto advance_rows = advance<R, (K > 0 ? pad(K) : 0), MAX || PRODUCT>;
    if constexpr (K > 0)
        if (way == Way::REDUCED) return {sweep_ratios<R, K, MAX, true, PRODUCT>, advance_rows};
    return {sweep_ratios<R, K, MAX, false, PRODUCT>, advance_rows};
}
template <class R, int K, bool MAX> Kernel<R> ratio_kernel(Way way, Form form) {
    if constexpr (!MAX && K > 0)
        if (form == Form::PRODUCT) return ratio_kernel<R, K, false, true>(way);
    return ratio_kernel<R, K, MAX, false>(way);
}
template <class R, bool MAX> Kernel<R> kernel_for(int states, Way way, Form form) {
    if (way == Way::LOGS && states > ON_STACK) return {sweep_logs<R, MAX, 0>, advance<R, 0, true>};
    if (way == Way::LOGS) return {sweep_logs<R, MAX, ON_STACK>, advance<R, 0, true>};
    switch (states) {
        case 2: return MAX ? binary_kernel<R, Form::MAX>()
                           : form == Form::LINEAR ? binary_kernel<R, Form::LINEAR>() : binary_kernel<R, Form::LOGS>();
        case 3: return ratio_kernel<R, 3, MAX>(way, form);
        case 4: return ratio_kernel<R, 4, MAX>(way, form);
        case 5: return ratio_kernel<R, 5, MAX>(way, form);
        case 6: return ratio_kernel<R, 6, MAX>(way, form);
        case 7: return ratio_kernel<R, 7, MAX>(way, form);
        case 8: return ratio_kernel<R, 8, MAX>(way, form);
        default: return states > ON_STACK ? ratio_kernel<R, MANY_STATES, MAX>(way, form)
                                          : ratio_kernel<R, SOME_STATES, MAX>(way, form);
    }
}
