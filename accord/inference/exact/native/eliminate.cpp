// Exact inference by elimination. See docs/adr/0021-compiled-elimination.md.
#include <new>

#include "passes.hpp"

namespace {

enum Status { SOLVED, OUT_OF_MEMORY, CLIQUE_TOO_LARGE, TABLES_TOO_LARGE };

Status eliminate(exact::Arguments& given) {
    exact::Model model(given);
    model.find_states();
    if (!model.arrange(given)) return given.entries > 0 ? TABLES_TOO_LARGE : CLIQUE_TOO_LARGE;
    exact::Passes passes(model);
    for (int64_t r = 0; r < given.replicas; ++r) {
        double* totals = given.totals + r * given.graphs;
        const auto feasible = [&] {
            return std::none_of(totals, totals + given.graphs, [](double total) { return total == -exact::INFINITE; });
        };
        if (given.labels && !given.maximise) {
            passes.collect(r, true, totals);
            if (!feasible()) return SOLVED;  // the total says so
            passes.decode(given.labels + r * given.nodes);
        }
        passes.collect(r, given.maximise, totals);
        if (!feasible()) return SOLVED;
        if (given.labels && given.maximise) passes.decode(given.labels + r * given.nodes);
        if (given.samples)
            passes.sample(given.uniform + r * given.nodes * given.samples, given.samples,
                          given.sampled + r * given.nodes * given.samples);
        if (given.unary_beliefs)
            passes.distribute(given.maximise, given.unary_beliefs + r * given.unary_size,
                              given.factor_beliefs ? given.factor_beliefs + r * given.belief_size : nullptr);
    }
    return SOLVED;
}

}  // namespace

extern "C" int accord_eliminate(exact::Arguments* given) {
    given->clique_size = 0, given->entries = 0;
    try {
        return eliminate(*given);
    } catch (const std::bad_alloc&) {
        return OUT_OF_MEMORY;
    }
}
