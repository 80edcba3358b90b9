// Synchronous sweeps: all messages from those of the sweep before. Threads share each sweep.
#pragma once
#include "bundles.hpp"
#include "lanes.hpp"

// What the threads of a run agree on.
template <class R> struct Run {
    std::vector<uint8_t> running;           // [graphs]
    std::vector<std::vector<R>> residuals;  // [threads][graphs]: of this sweep
    bool more = false;
    std::atomic<int64_t> stuck{-1};
};

template <class R, bool MAX> class Synchronous {
  public:
    Synchronous(const Graph& graph, State<R>& state, int threads)
        : graph(graph), a(graph.a), state(state), plan(graph, state, threads), threads(threads) {
        state.reserve(plan.numbers);
        tables.plan(graph, plan.by_rows);
        run.running.resize(a.graphs);
        run.residuals.assign(threads, std::vector<R>(a.graphs));
        for (int t = 0; t < threads; ++t) engines.push_back(std::make_unique<Engine<R, MAX>>(state, tables));
        for (int t = 0; t < threads; ++t)
            lanes.push_back(std::make_unique<LaneEngine<R, MAX>>(state, plan, *engines[t]));
        for (int t = 0; t < threads; ++t)
            bundles.push_back(std::make_unique<BundleEngine<R, MAX>>(state, plan, tables, *engines[t]));
    }
    int64_t solve() {
        Barrier barrier(threads);
        in_parallel(threads, [&](int rank) { work(Team{rank, threads, threads > 1 ? &barrier : nullptr}); });
        return run.stuck.load();
    }

  private:
    const Graph& graph;
    const Arguments& a;
    State<R>& state;
    Plan<R> plan;
    Tables<R> tables;
    const int threads;
    Run<R> run;
    std::vector<std::unique_ptr<Engine<R, MAX>>> engines;
    std::vector<std::unique_ptr<LaneEngine<R, MAX>>> lanes;
    std::vector<std::unique_ptr<BundleEngine<R, MAX>>> bundles;

    void work(Team team) {
        const int64_t copies = int64_t(tables.copies.size());
        for (int64_t r = 0; r < a.replicas && run.stuck.load() < 0; ++r) {
            team.wait();
            if (team.rank == 0) {
                state.replica = r;
                std::fill(run.running.begin(), run.running.end(), 0);
                for (int32_t g : plan.graph_of) run.running[g] = 1;
                run.more = a.max_sweeps > 0 && a.factors > 0;
                for (int64_t g = 0; g < a.graphs; ++g) residual(g) = run.running[g] ? INF<R> : R(0);
            }
            team.wait();
            if (r == 0 || a.table_replicas > 1 || a.appearance_replicas > 1) {
                plan.fill(state, plan.cuts[team.rank], plan.cuts[team.rank + 1]);
                tables.fill(state, team.begin(copies), team.end(copies));
            }
            for (int64_t s = team.begin(graph.slots); s < team.end(graph.slots); ++s) state.begin(s);
            team.wait();
            for (int64_t sweep = 1; run.more; ++sweep) {
                collect(team, a.graphs > 1);
                team.wait();
                send(team);
                team.wait();
                if (team.rank == 0) decide(sweep);
                team.wait();
            }
            collect(team, false);
            for (int64_t v = team.begin(a.nodes); v < team.end(a.nodes); ++v) state.write_total(v);
            for (int64_t s = team.begin(graph.slots); s < team.end(graph.slots); ++s) state.write(s);
        }
    }
    R& residual(int64_t g) { return ((R*)a.residual)[state.replica * a.graphs + g]; }
    void collect(Team team, bool some) {
        for (int64_t v = team.begin(a.nodes); v < team.end(a.nodes); ++v)
            if (!some || run.running[a.graph[v]]) state.collect(v);
    }
    void send(Team team) {
        std::vector<R>& moved = run.residuals[team.rank];
        std::fill(moved.begin(), moved.end(), R(0));
        const auto report = [&](int64_t g, R change) { moved[g] = std::max(moved[g], change); };
        Engine<R, MAX>& engine = *engines[team.rank];
        LaneEngine<R, MAX>& side = *lanes[team.rank];
        BundleEngine<R, MAX>& bundle = *bundles[team.rank];
        for (int64_t k = plan.cuts[team.rank]; k < plan.cuts[team.rank + 1]; ++k) {
            const Block& b = plan.blocks[k];
            if (b.way == Way::ROWS) {
                if (!bundle.sweep(b, run.running, report)) return refuse(bundle.stuck);
                continue;
            }
            uint32_t active = 0;
            for (int l = 0; l < b.count; ++l)
                active |= uint32_t(run.running[plan.graph_of[plan.order[b.first + l]]]) << l;
            if (!active) continue;
            if (is_side_by_side(b.way)) {
                if (!side.sweep(k, active, report)) return refuse(side.stuck);
                continue;
            }
            const int32_t f = plan.order[b.first];
            if (!engine.compute(f)) return refuse(engine.stuck);
            for (int i = 0; i < graph.order(f); ++i) {
                const int64_t slot = graph.first(f) + i;
                R *now = engine.scratch.message[i], *old = state.message(slot);
                const int count = graph.states(slot);
                if (a.damping != 0) damp(old, now, count, a.damping, MAX);
                report(plan.graph_of[f], change(old, now, count));
                std::copy_n(now, count, old);
            }
        }
    }
    void refuse(int64_t slot) {
        int64_t none = -1;
        run.stuck.compare_exchange_strong(none, slot);
    }
    void decide(int64_t sweep) {
        bool any = false;
        for (int64_t g = 0; g < a.graphs; ++g) {
            if (!run.running[g]) continue;
            R most = 0;
            for (const auto& moved : run.residuals) most = std::max(most, moved[g]);
            residual(g) = most;
            a.sweeps[state.replica * a.graphs + g] = sweep;
            if (a.tolerance != 0 && !(most > R(a.tolerance))) run.running[g] = 0;
            any |= run.running[g];
        }
        run.more = any && sweep < a.max_sweeps && run.stuck.load() < 0;
    }
};
