// The log-partition of forests, its gradient, and their best labels. See docs/adr/0020-small-calls-and-wheels.md.
#include <new>

#include "passes.hpp"

namespace {

enum Status { SOLVED, OUT_OF_MEMORY, NO_FOREST, OUT_OF_RANGE, INFEASIBLE };

template <class R>
Status solve(const trees::Arguments& given) {
    trees::Forest forest;
    const trees::Shape shape = trees::peel(given, forest);
    if (shape != trees::Shape::forest) return shape == trees::Shape::loops ? NO_FOREST : OUT_OF_RANGE;
    trees::Passes<R> passes(given, forest);
    for (int64_t r = 0; r < given.replicas; ++r) {
        if (given.labels) {
            if (!passes.label(r)) return INFEASIBLE;
            continue;
        }
        if (!passes.collect(r, given.weight)) return INFEASIBLE;
        if (given.weight) passes.distribute(r);
    }
    return SOLVED;
}

template <class R>
int guarded(const trees::Arguments* given) {
    try {
        return solve<R>(*given);
    } catch (const std::bad_alloc&) {
        return OUT_OF_MEMORY;
    }
}

}  // namespace

extern "C" int accord_trees_float32(const trees::Arguments* given) { return guarded<float>(given); }
extern "C" int accord_trees_float64(const trees::Arguments* given) { return guarded<double>(given); }
