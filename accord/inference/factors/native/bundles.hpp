// New messages of a bundle of factors whose tables are read by rows, one step for all of them after the other.
//
// A message of a few dozen states is a few vectors, and its maximum and its sum need all of their lanes: computed alone,
// each step would wait for the one before. So each step is done for WIDTH messages, whose maxima and sums are found
// together. A message is a row of numbers, padded to whole vectors.
#pragma once
#include "engine.hpp"
#include "plan.hpp"

template <class R, bool MAX> struct BundleEngine {
    static constexpr int W = WIDTH<R>;
    struct Row {
        int64_t slot, at;  // where its numbers begin in `cavities` and `sums`
        int32_t factor, count;
        R span;            // of its table
        bool logs;         // its sums are normalised logs already
    };
    const State<R>& state;
    const Plan<R>& plan;
    const Tables<R>& tables;
    const Graph& graph;
    Engine<R, MAX>& engine;
    Buffer<R> cavities, sums;
    std::vector<Row> rows;
    std::vector<R> spans;  // [rows]: the largest cavity minus the smallest finite one, where the table's span matters
    int64_t used = 0;      // rows of this bundle
    int64_t stuck = -1;

    BundleEngine(const State<R>& state, const Plan<R>& plan, const Tables<R>& tables, Engine<R, MAX>& engine)
        : state(state), plan(plan), tables(tables), graph(state.graph), engine(engine) {
        int64_t slots = 0, numbers = 0;
        for (const Block& b : plan.blocks) {
            if (b.way != Way::ROWS) continue;
            int64_t here = 0, length = 0;
            for (int k = 0; k < b.count; ++k)
                for (int64_t f = plan.order[b.first + k], s = graph.first(f); s < graph.first(f + 1); ++s)
                    ++here, length += padded<R>(graph.states(s));
            slots = std::max(slots, here), numbers = std::max(numbers, length);
        }
        rows.resize(slots), spans.resize(slots);
        for (Buffer<R>* buffer : {&cavities, &sums}) std::fill_n(buffer->reserve(numbers + W), numbers + W, R(0));
    }

    // New messages of a block's factors whose graphs are running; `report(graph, change)` is called for each message.
    template <class Report> bool sweep(const Block& b, const std::vector<uint8_t>& running, const Report& report) {
        next = used = 0;
        for (int k = 0; k < b.count; ++k)
            if (const int32_t f = plan.order[b.first + k]; running[plan.graph_of[f]])
                for (int axis = 0; axis < graph.order(f); ++axis) add(f, axis);
        for (int64_t first = 0; first < used; first += W) load_cavities(first, int(std::min<int64_t>(W, used - first)));
        for (int64_t first = 0; first < used; first += graph.order(rows[first].factor))
            if (!contract_factor(first)) return false;
        for (int64_t first = 0; first < used; first += W)
            if (!finish(first, int(std::min<int64_t>(W, used - first)), report)) return false;
        return true;
    }

  private:
    int64_t next = 0;  // number in `cavities` and `sums`

    void add(int32_t f, int axis) {
        const int64_t slot = graph.axis_slot(f, axis);
        rows[used++] = {slot, next, f, graph.states(slot), tables.span_of(f), false};
        next += padded<R>(graph.states(slot));
        fetch(state.totals.get() + state.a.at[graph.variable(slot)], graph.states(slot));
    }
    // Cavities of some rows: exp(cavity - largest), or logs. Numbers beyond the last state are NOTHING.
    void load_cavities(int64_t first, int count) {
        Lanes<R> most[W];
        bool wanted = false;
        for (int i = 0; i < W; ++i) most[i] = splat(-INF<R>);
        for (int i = 0; i < count; ++i) {
            const Row& row = rows[first + i];
            R* to = cavities.get() + row.at;
            if (state.barred) state.cavity(row.slot, to);
            const double* sum = state.totals.get() + state.a.at[graph.variable(row.slot)];
            const R* own = state.message(row.slot);
            each_vector<R>(row.count, [&](int x, auto inside) {
                const Lanes<R> values = keep<R>(state.barred ? load(to + x) : subtract<R>(sum + x, own + x), inside, -INF<R>);
                store(to + x, values);
                if (!MAX) most[i] = larger<R>(most[i], values);
            });
            wanted |= row.span > R(0);
        }
        if (MAX) return;
        Lanes<R> best = fold_each<R, true>(most);
        best = best == -INF<R> ? Lanes<R>{} : best;
        R level[W];
        store(level, best);
        if (wanted) {
            for (int i = 0; i < count; ++i) {
                const Row& row = rows[first + i];
                most[i] = splat(-INF<R>);  // of the negatives
                for (int x = 0; x < row.count; x += W) {
                    const Lanes<R> values = load(cavities.get() + row.at + x);
                    most[i] = larger<R>(most[i], values == -INF<R> ? splat(-level[i]) : -values);
                }
            }
            const Lanes<R> span = best + fold_each<R, true>(most);
            for (int i = 0; i < count; ++i) spans[first + i] = span[i];
        }
        for (int i = 0; i < count; ++i) {
            R* to = cavities.get() + rows[first + i].at;
            for (int x = 0; x < rows[first + i].count; x += W) store(to + x, exp<R>(load(to + x) - level[i]));
        }
    }
    // Sums of one factor, whose first row is named; in logs where products may have underflowed.
    bool contract_factor(int64_t first) {
        const int32_t f = rows[first].factor;
        const int order = graph.order(f);
        Scratch<R>& s = engine.scratch;
        R span = rows[first].span;
        const bool sure = MAX || span == R(0);  // see `prepare`
        for (int axis = 0; axis < order; ++axis) {
            const Row& row = rows[first + axis];
            const int64_t i = row.slot - graph.first(f);
            s.size[i] = row.count, s.cavity[i] = cavities.get() + row.at, s.message[i] = sums.get() + row.at;
            if (!sure) span += spans[first + axis];
        }
        contract<R, MAX>(tables.table(f), order, graph.turned[f], s);
        if (sure || span < SAFE_SPAN<R>) return true;
        for (int axis = 0; axis < order; ++axis) {
            Row& row = rows[first + axis];
            const R* m = sums.get() + row.at;
            if (*std::min_element(m, m + row.count) >= SAFE_SUM<R>) continue;
            if (!engine.finish_in_logs(f, int(row.slot - graph.first(f)))) return refuse(engine.stuck);
            row.logs = true;
        }
        return true;
    }
    // Normalise the sums of some rows, mix in the old messages, store them, and report how far they moved.
    template <class Report> bool finish(int64_t first, int count, const Report& report) {
        Lanes<R> all[W];
        R shift[W];
        for (int i = 0; i < W; ++i) all[i] = splat(i < count ? NOTHING<R, MAX> : MAX ? R(0) : R(1));
        for (int i = 0; i < count; ++i) {
            const Row& row = rows[first + i];
            R* m = sums.get() + row.at;
            each_vector<R>(row.count, [&](int x, auto inside) {
                const Lanes<R> values = keep<R>(load(m + x), inside, NOTHING<R, MAX>);
                store(m + x, values);
                all[i] = MAX ? larger<R>(all[i], values) : all[i] + values;
            });
        }
        const Lanes<R> level = fold_each<R, MAX>(all);
        if (any<R>(level == NOTHING<R, MAX>))
            for (int i = 0; i < count; ++i)
                if (level[i] == NOTHING<R, MAX> && !rows[first + i].logs) return refuse(rows[first + i].slot);
        store(shift, MAX ? level : log(level));
        for (int i = 0; i < count; ++i) {
            const Row& row = rows[first + i];
            if (row.logs) continue;
            R* m = sums.get() + row.at;
            for (int x = 0; x < row.count; x += W) {
                const Lanes<R> values = load(m + x);
                store(m + x, (MAX ? values : log_or_barred<R>(values)) - shift[i]);
            }
        }
        if (state.a.damping != 0)
            for (int i = 0; i < count; ++i) {
                const Row& row = rows[first + i];
                damp(state.message(row.slot), sums.get() + row.at, row.count, state.a.damping, MAX);
            }
        settle(first, count, report);
        return true;
    }
    template <class Report> void settle(int64_t first, int count, const Report& report) {
        Lanes<R> most[W]{}, size[W];
        for (int i = 0; i < W; ++i) size[i] = splat(R(1));
        for (int i = 0; i < count; ++i) {
            const Row& row = rows[first + i];
            R* old = state.message(row.slot);
            each_vector<R>(row.count, [&](int x, auto inside) {
                const Lanes<R> before = load(old + x), after = keep<R>(load(sums.get() + row.at + x), inside, R(0));
                most[i] = larger<R>(most[i], before == after ? Lanes<R>{} : magnitude<R>(after - before));
                size[i] = larger<R>(size[i], after == -INF<R> ? Lanes<R>{} : magnitude<R>(after));
                store(old + x, after);
            });
        }
        const Lanes<R> moved = fold_each<R, true>(most) / fold_each<R, true>(size);
        for (int i = 0; i < count; ++i) report(plan.graph_of[rows[first + i].factor], moved[i]);
    }
    bool refuse(int64_t slot) {
        stuck = slot;
        return false;
    }
};
