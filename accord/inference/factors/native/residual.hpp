// Residual schedule: always the message with the largest pending change (Elidan, McGraw and Koller 2006).
//
// The pending change of a message is that from the present message to the one that would be computed now. When a
// variable's belief changes, the pending messages that depend on it change by no more than the spread of that change:
// it is added to their bounds, and a message is computed only when its bound is the largest of all. So the order is
// that of the exact pending changes.
#pragma once
#include "ordered.hpp"

// Slots by key, the largest first, where keys may change.
template <class R> class Queue {
  public:
    Queue(std::vector<R>& key, std::vector<int32_t>& place) : key(key), place(place) {}
    void reserve(int64_t count) { heap.reserve(count); }
    void build(const int32_t* slots, int64_t count) {
        heap.assign(slots, slots + count);
        for (int64_t k = 0; k < count; ++k) place[heap[k]] = int32_t(k);
        for (int64_t k = count / 2; k-- > 0;) down(k);
    }
    int32_t top() const { return heap[0]; }
    bool empty() const { return heap.empty(); }
    void change(int32_t slot, R value) {
        const bool more = value > key[slot];
        key[slot] = value;
        if (more) up(place[slot]);
        else down(place[slot]);
    }

  private:
    std::vector<R>& key;
    std::vector<int32_t>& place;
    std::vector<int32_t> heap;
    // Among equal keys the lower number is first.
    bool before(int32_t s, int32_t t) const { return key[s] > key[t] || (key[s] == key[t] && s < t); }
    void set(int64_t k, int32_t slot) { heap[k] = slot, place[slot] = int32_t(k); }
    void up(int64_t k) {
        const int32_t slot = heap[k];
        for (; k > 0 && before(slot, heap[(k - 1) / 2]); k = (k - 1) / 2) set(k, heap[(k - 1) / 2]);
        set(k, slot);
    }
    void down(int64_t k) {
        const int32_t slot = heap[k];
        const int64_t count = int64_t(heap.size());
        for (int64_t child; (child = 2 * k + 1) < count; k = child) {
            if (child + 1 < count && before(heap[child + 1], heap[child])) ++child;
            if (!before(heap[child], slot)) break;
            set(k, heap[child]);
        }
        set(k, slot);
    }
};

template <class R, bool MAX> struct Residual {
    struct Shared {  // what graphs share, each in places of its own
        std::vector<int32_t> slots;     // by graph
        std::vector<int64_t> graph_at;  // [graphs + 1]
        int64_t largest = 0;
        mutable std::vector<R> pending, key, far;  // messages; bounds; absolute changes, for the next bounds
        mutable std::vector<int32_t> place;
        mutable std::vector<uint8_t> fresh;  // whether a pending message is that of the present messages
        Shared(const Graph& graph, const State<R>& state)
            : slots(graph.slots), graph_at(graph.a.graphs + 1, 0), pending(graph.message_at[graph.slots] + WIDTH<R>),
              key(graph.slots), far(graph.slots), place(graph.slots), fresh(graph.slots) {
            const Arguments& a = graph.a;
            for (int64_t s = 0; s < graph.slots; ++s) ++graph_at[a.graph[a.scope[s]] + 1];
            for (int64_t g = 0; g < a.graphs; ++g) {
                largest = std::max(largest, graph_at[g + 1]);
                graph_at[g + 1] += graph_at[g];
            }
            std::vector<int64_t> next(graph_at.begin(), graph_at.end() - 1);
            for (int64_t s = 0; s < graph.slots; ++s) slots[next[a.graph[a.scope[s]]]++] = int32_t(s);
        }
    };
    const Graph& graph;
    const Arguments& a;
    const State<R>& state;
    const Shared& shared;
    Engine<R, MAX> engine;
    Queue<R> queue;
    std::vector<double> before;
    std::vector<int32_t> infinities_before;
    std::vector<R> mixed;

    Residual(const Graph& graph, const State<R>& state, const Tables<R>& tables, const Shared& shared)
        : graph(graph), a(graph.a), state(state), shared(shared), engine(state, tables),
          queue(shared.key, shared.place) {
        int64_t states = 1;
        for (int64_t v = 0; v < a.nodes; ++v) states = std::max<int64_t>(states, graph.variable_states(v));
        before.resize(states), infinities_before.resize(states), mixed.resize(states);
        queue.reserve(shared.largest);
    }

    bool solve(int64_t g) {
        const int32_t* slots = shared.slots.data() + shared.graph_at[g];
        const int64_t count = shared.graph_at[g + 1] - shared.graph_at[g];
        R& residual = ((R*)a.residual)[state.replica * a.graphs + g];
        int64_t& sweeps = a.sweeps[state.replica * a.graphs + g];
        residual = count ? INF<R> : R(0), sweeps = 0;
        if (!count || !a.max_sweeps) return true;
        for (int64_t k = 0; k < count; ++k) state.collect(graph.variable(slots[k]));
        for (int64_t k = 0; k < count; k += graph.order(graph.factor_of[slots[k]]))
            if (!compute_all(graph.factor_of[slots[k]])) return false;
        queue.build(slots, count);
        int64_t sent = 0;
        while (shared.key[queue.top()] > R(a.tolerance)) {
            const int32_t s = queue.top();
            if (!shared.fresh[s]) {
                if (!refresh(s)) return false;
                continue;
            }
            if (sent == count * a.max_sweeps) break;
            send(s);
            ++sent;
        }
        residual = shared.key[queue.top()];
        sweeps = (sent + count - 1) / count;
        return true;
    }

  private:
    R* pending(int64_t s) const { return shared.pending.data() + graph.message_at[s]; }

    // The messages that would be sent now: those of a factor before the queue is built, or one that is in it.
    bool compute_all(int32_t f) {
        if (!engine.compute(f)) return false;
        for (int64_t s = graph.first(f); s < graph.first(f + 1); ++s) {
            take(int32_t(s));
            shared.key[s] = measure(int32_t(s));
        }
        return true;
    }
    bool refresh(int32_t s) {
        const int32_t f = graph.factor_of[s];
        if (!graph.is_rule(f)) {
            if (!engine.compute(f, int(s - graph.first(f)))) return false;
            take(s);
            queue.change(s, measure(s));
            return true;
        }
        if (!engine.compute(f)) return false;  // all messages of a rule are computed at once
        for (int64_t t = graph.first(f); t < graph.first(f + 1); ++t)
            if (!shared.fresh[t]) {
                take(int32_t(t));
                queue.change(int32_t(t), measure(int32_t(t)));
            }
        return true;
    }
    void take(int32_t s) {
        std::copy_n(engine.scratch.message[s - graph.first(graph.factor_of[s])], graph.states(s), pending(s));
        shared.fresh[s] = 1;
    }
    // The pending change of a message, relative to its size.
    R measure(int32_t s) {
        const R *old = state.message(s), *now = pending(s);
        const int count = graph.states(s);
        R most = 0;
        for (int x = 0; x < count; ++x)
            if (old[x] != now[x]) most = std::max(most, R(std::abs(now[x] - old[x])));
        shared.far[s] = most;
        return change(old, now, count);
    }
    void send(int32_t s) {
        const int64_t v = graph.variable(s), begin = a.at[v];
        const int count = graph.states(s);
        const int32_t f = graph.factor_of[s];
        R* m = state.message(s);
        std::copy_n(state.totals.get() + begin, count, before.data());
        if (state.barred) std::copy_n(state.infinities.get() + begin, count, infinities_before.data());
        std::copy_n(pending(s), count, mixed.data());
        if (a.damping != 0) damp(m, mixed.data(), count, a.damping, MAX);
        R high = -INF<R>, low = INF<R>;  // of the message's own change
        for (int x = 0; x < count; ++x) {
            const R step = mixed[x] == m[x] ? R(0) : mixed[x] - m[x];
            high = std::max(high, step), low = std::min(low, step);
        }
        std::copy_n(mixed.data(), count, m);
        queue.change(s, measure(s));  // what damping held back
        state.collect(v);
        const R spread = moved(begin, count);
        for (int64_t k = graph.into_at[v]; k < graph.into_at[v + 1]; ++k) {
            const int32_t t = graph.into[k], other = graph.factor_of[t];
            // In plain propagation a factor's own message does not return to it.
            if (t == s && !a.appearance) continue;
            const R more = t == s ? spread + (high - low) : spread;
            if (!(more > R(0))) continue;
            for (int64_t u = graph.first(other); u < graph.first(other + 1); ++u)
                if (u != t) {
                    shared.far[u] += more, shared.fresh[u] = 0;
                    queue.change(int32_t(u), std::max(shared.key[u], shared.far[u]));
                }
        }
    }
    // Largest minus smallest change of a variable's belief; infinite if a state became possible or impossible.
    R moved(int64_t begin, int count) const {
        double high = -INF<double>, low = INF<double>;
        for (int x = 0; x < count; ++x) {
            if (state.barred && infinities_before[x] != state.infinities.get()[begin + x]) return INF<R>;
            const double step = state.totals.get()[begin + x] - before[x];
            high = std::max(high, step), low = std::min(low, step);
        }
        return R(high - low);
    }
};
