// Sequential sweeps: each message from the newest others, in the order of levels.hpp.
#pragma once
#include "levels.hpp"
#include "ordered.hpp"

template <class R, bool MAX> struct Sequential {
    struct Shared {
        Steps steps;
        Shared(const Graph& graph, const State<R>&) : steps(graph) {}
    };
    const Graph& graph;
    const Arguments& a;
    const State<R>& state;
    const Steps& steps;
    Engine<R, MAX> engine;
    std::vector<R> fresh;  // messages of a step, which are computed before any of them is stored

    Sequential(const Graph& graph, const State<R>& state, const Tables<R>& tables, const Shared& shared)
        : graph(graph), a(graph.a), state(state), steps(shared.steps), engine(state, tables), fresh(steps.largest) {}

    // Sweep over a graph until it has converged. False if a message has no possible state.
    bool solve(int64_t g) {
        R& residual = ((R*)a.residual)[state.replica * a.graphs + g];
        int64_t& sweeps = a.sweeps[state.replica * a.graphs + g];
        const int64_t begin = steps.graph_at[g], end = steps.graph_at[g + 1];
        residual = begin < end ? INF<R> : R(0), sweeps = 0;
        while (begin < end && sweeps < a.max_sweeps) {
            R moved = 0;
            for (int64_t step = begin; step < end; ++step)
                if (!send(step, moved)) return false;
            residual = moved, ++sweeps;
            if (a.tolerance != 0 && !(moved > R(a.tolerance))) break;
        }
        return true;
    }

  private:
    bool send(int64_t step, R& moved) {
        for (int64_t k = steps.sources_at[step]; k < steps.sources_at[step + 1]; ++k) state.collect(steps.sources[k]);
        R* to = fresh.data();
        int64_t computed = -1;  // a rule, of which all messages are there
        for (int64_t k = steps.step_at[step]; k < steps.step_at[step + 1]; ++k) {
            const int32_t s = steps.slots[k], f = graph.factor_of[s];
            const int i = int(s - graph.first(f)), count = graph.states(s);
            if (f != computed && !(graph.is_rule(f) ? engine.compute(f) : engine.compute(f, i))) return false;
            computed = graph.is_rule(f) ? f : -1;
            R* now = engine.scratch.message[i];
            if (a.damping != 0) damp(state.message(s), now, count, a.damping, MAX);
            moved = std::max(moved, change<R>(state.message(s), now, count));
            std::copy_n(now, count, to);
            to += count;
        }
        to = fresh.data();
        for (int64_t k = steps.step_at[step]; k < steps.step_at[step + 1]; ++k) {
            const int32_t s = steps.slots[k];
            std::copy_n(to, graph.states(s), state.message(s));
            to += graph.states(s);
        }
        return true;
    }
};
