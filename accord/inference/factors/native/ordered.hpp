// What schedules share that send messages in an order: graphs are solved one after the other, or by several threads.
#pragma once
#include "engine.hpp"

template <class R, bool MAX, class Schedule> int64_t solve_in_order(const Graph& graph, State<R>& state, int threads) {
    const Arguments& a = graph.a;
    Tables<R> tables;
    std::vector<int32_t> tabled(a.tabled);
    for (int64_t f = 0; f < a.tabled; ++f) tabled[f] = int32_t(f);
    tables.plan(graph, tabled);
    for (int64_t s = 0; s < graph.slots; ++s) state.place[s] = graph.message_at[s];
    state.reserve(graph.message_at[graph.slots]);
    threads = int(std::min<int64_t>(threads, a.graphs));
    const typename Schedule::Shared shared(graph, state);
    std::vector<std::unique_ptr<Schedule>> workers;
    for (int t = 0; t < threads; ++t) workers.push_back(std::make_unique<Schedule>(graph, state, tables, shared));
    std::atomic<int64_t> stuck{-1};
    for (int64_t r = 0; r < a.replicas && stuck.load() < 0; ++r) {
        state.replica = r;
        if (r == 0 || a.table_replicas > 1 || a.appearance_replicas > 1)
            tables.fill(state, 0, int64_t(tables.copies.size()));
        for (int64_t s = 0; s < graph.slots; ++s) state.begin(s);
        std::atomic<int64_t> next{0};
        in_parallel(threads, [&](int rank) {
            for (int64_t g = next++; g < a.graphs && stuck.load() < 0; g = next++)
                if (!workers[rank]->solve(g)) stuck = workers[rank]->engine.stuck;
        });
        for (int64_t v = 0; v < a.nodes; ++v) state.collect(v), state.write_total(v);
        for (int64_t s = 0; s < graph.slots; ++s) state.write(s);
    }
    return stuck.load();
}
