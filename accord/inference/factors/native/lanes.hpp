// All messages of several factors of the same shape, one factor in each lane. See Way in plan.hpp.
#pragma once
#include "engine.hpp"
#include "plan.hpp"

// As `multiply` in rows.hpp, for every lane. COLS is the number of columns; sums of columns stay in registers.
template <class R, bool MAX, int COLS, bool SHARED>
void multiply_few(const R* table, int64_t rows, const R* weights, const R* cavity, R* column, R* row) {
    constexpr int W = WIDTH<R>;
    Lanes<R> others[COLS], totals[COLS];
    for (int c = 0; c < COLS; ++c) others[c] = load(cavity + c * W), totals[c] = splat(NOTHING<R, MAX>);
    for (int64_t r = 0; r < rows; ++r) {
        const R* at = table + r * COLS * (SHARED ? 1 : W);
        const Lanes<R> weight = load(weights + r * W);
        Lanes<R> sum = splat(NOTHING<R, MAX>);
#pragma GCC unroll 8
        for (int c = 0; c < COLS; ++c) {
            const Lanes<R> value = SHARED ? splat(at[c]) : load(at + c * W);
            totals[c] = gather_term<R, MAX>(totals[c], value, weight);
            sum = gather_term<R, MAX>(sum, value, others[c]);
        }
        store(row + r * W, sum);
    }
    for (int c = 0; c < COLS; ++c) store(column + c * W, totals[c]);
}
// The same for any number of columns: ROWS rows together, so that each sum of a column is loaded once for all of them.
template <class R, bool MAX, bool SHARED, int ROWS>
void multiply_some(const R* table, int cols, const R* weights, const R* cavity, R* column, R* row) {
    constexpr int W = WIDTH<R>;
    Lanes<R> weight[ROWS], sum[ROWS];
    for (int i = 0; i < ROWS; ++i) weight[i] = load(weights + i * W), sum[i] = splat(NOTHING<R, MAX>);
    for (int c = 0; c < cols; ++c) {
        Lanes<R> total = load(column + c * W);
        const Lanes<R> other = load(cavity + c * W);
#pragma GCC unroll 8
        for (int i = 0; i < ROWS; ++i) {
            const int64_t at = int64_t(i) * cols + c;
            if (!SHARED) __builtin_prefetch(table + (at + ROWS * cols) * W, 0, 2);
            const Lanes<R> value = SHARED ? splat(table[at]) : load(table + at * W);
            total = gather_term<R, MAX>(total, value, weight[i]);
            sum[i] = gather_term<R, MAX>(sum[i], value, other);
        }
        store(column + c * W, total);
    }
    for (int i = 0; i < ROWS; ++i) store(row + i * W, sum[i]);
}
template <class R, bool MAX, bool SHARED>
void multiply_lanes(const R* table, int64_t rows, int cols, const R* weights, const R* cavity, R* column, R* row) {
    switch (cols) {
#define CASE(N) \
    case N: return multiply_few<R, MAX, N, SHARED>(table, rows, weights, cavity, column, row)
        CASE(2);
        CASE(3);
        CASE(4);
        CASE(5);
        CASE(6);
        CASE(7);
        CASE(8);
#undef CASE
    }
    constexpr int W = WIDTH<R>, TOGETHER = 6;
    const int64_t step = int64_t(cols) * (SHARED ? 1 : W);
    for (int c = 0; c < cols; ++c) store(column + c * W, splat(NOTHING<R, MAX>));
    int64_t r = 0;
    for (; r + TOGETHER <= rows; r += TOGETHER)
        multiply_some<R, MAX, SHARED, TOGETHER>(table + r * step, cols, weights + r * W, cavity, column, row + r * W);
    for (; r < rows; ++r)
        multiply_some<R, MAX, SHARED, 1>(table + r * step, cols, weights + r * W, cavity, column, row + r * W);
}

template <class R, bool MAX> struct LaneEngine {
    static constexpr int W = WIDTH<R>;
    const State<R>& state;
    const Plan<R>& plan;
    const Graph& graph;
    Engine<R, MAX>& engine;  // for factors that would underflow
    Buffer<R> numbers, weights, rows;
    Buffer<R> numbers_of_rows, barred_rows;  // old messages, and cavities with -inf, where messages do not alternate
    std::vector<R*> cavity, message, weight, old;
    std::vector<R*> row;  // [order, W]: messages that do not alternate
    std::vector<int> size;
    Buffer<R> inside;  // [order, W]: states of each lane, where lanes differ
    int64_t stuck = -1;

    LaneEngine(const State<R>& state, const Plan<R>& plan, Engine<R, MAX>& engine)
        : state(state), plan(plan), graph(state.graph), engine(engine) {
        int64_t order = 1, states = 1, products = 1;
        for (const Block& b : plan.blocks) {
            if (!is_side_by_side(b.way)) continue;
            const int64_t first = graph.first(plan.order[b.first]), end = graph.first(plan.order[b.first] + 1);
            int64_t all = 0, product = 1, sum = 0;
            for (int64_t s = first; s < end; ++s) {
                all += graph.states(s);
                if (s + 1 < end) sum += product *= graph.states(s);
            }
            order = std::max(order, end - first), states = std::max(states, all), products = std::max(products, sum);
        }
        for (Buffer<R>* buffer : {&numbers_of_rows, &barred_rows}) buffer->reserve((states + W) * W);
        numbers.reserve(2 * states * W), weights.reserve(products * W), rows.reserve(2 * products * W);
        cavity.resize(order), message.resize(order), weight.resize(order + 1), old.resize(order), size.resize(order);
        inside.reserve(order * W);
        row.resize(order * W);
    }

    // Room for the cavities and messages of a block, axis by axis. Returns the number of axes.
    int shape(const Block& b) {
        const int32_t f = plan.order[b.first];
        const int order = graph.order(f);
        R* next = numbers.get();
        for (int i = 0; i < order; ++i) {
            size[i] = graph.axis_states(f, i);
            cavity[i] = next, next += size[i] * W;
            message[i] = next, next += size[i] * W;
        }
        return order;
    }
    // New messages of a block's factors whose graphs are running; `report(graph, change)` is called for each.
    template <class Report> bool sweep(int64_t number, uint32_t running, const Report& report) {
        const Block& b = plan.blocks[number];
        const int32_t* factors = plan.order.data() + b.first;
        const int order = shape(b);
        R* at = b.way == Way::LANES ? state.messages.get() + b.message : numbers_of_rows.get();
        Lanes<R> span = load(plan.spans.get() + number * W);
        const Mask<R> sure = span == R(0);  // see `prepare`
        for (int i = 0; i < order; ++i) {
            old[i] = at, at += size[i] * W;
            if (b.way == Way::LANES) load_alternating(b, factors, i);
            else if (b.way == Way::WIDE) load_rows<false>(b, factors, i);
            else load_rows<true>(b, factors, i);
            span += exponentiate(i);
        }
        contract(b, order);
        Lanes<R> least = splat(INF<R>);
        for (int i = 0; i < order && !MAX && any<R>(~sure); ++i)
            for (int x = 0; x < size[i]; ++x) {
                const Lanes<R> value = load(message[i] + x * W);
                least = smaller<R>(least, b.way == Way::MIXED ? within(i, x, value, INF<R>) : value);
            }
        const Mask<R> unsafe = MAX ? Mask<R>{} : (least < SAFE_SUM<R>) & (span >= SAFE_SPAN<R>) & ~sure;
        if (!finish(order, factors, b.count, running, unsafe)) return false;
        if (any<R>(unsafe) && !finish_in_logs(order, factors, b.count, unsafe)) return false;
        if (state.a.damping != 0)
            for (int i = 0; i < order; ++i) damp_lanes(i);
        const Mask<R> active = lanes_of<R>(running);
        Lanes<R> moved{};
        for (int i = 0; i < order; ++i) {
            Lanes<R> most{}, scale = splat(R(1));
            R* const to = old[i];
            const R* const now = message[i];
            for (int x = 0, count = size[i]; x < count; ++x) {
                const Lanes<R> before = load(to + x * W), after = load(now + x * W);
                most = larger<R>(most, before == after ? Lanes<R>{} : magnitude<R>(after - before));
                scale = larger<R>(scale, after == -INF<R> ? Lanes<R>{} : magnitude<R>(after));
                store(to + x * W, active ? after : before);
            }
            moved = larger<R>(moved, most / scale);
        }
        for (int i = 0; i < order && b.way != Way::LANES; ++i) store_rows(b, i, running);
        for (int l = 0; l < b.count; ++l)
            if (running >> l & 1) report(plan.graph_of[factors[l]], moved[l]);
        return true;
    }

    // Unnormalised messages along all axes, from the block's tables and the cavities.
    void contract(const Block& b, int order) {
        const R* table = plan.tables.get() + b.table;
        if (order == 1) {
            for (int x = 0; x < size[0]; ++x) store(message[0] + x * W, b.shared ? splat(table[x]) : load(table + x * W));
            return;
        }
        weight[1] = cavity[0];
        R* room = weights.get();
        int64_t length = size[0];
        for (int i = 1; i + 1 < order; ++i) {
            R* to = weight[i + 1] = room;
            for (int64_t r = 0; r < length; ++r) {
                const Lanes<R> before = load(weight[i] + r * W);
                for (int x = 0; x < size[i]; ++x)
                    store(to + (r * size[i] + x) * W, join<R, MAX>(before, load(cavity[i] + x * W)));
            }
            length *= size[i], room += length * W;
        }
        R *row = rows.get(), *other = row + length * W;
        for (int i = order - 1; i >= 1; --i) {
            const auto multiply = b.shared && i == order - 1 ? multiply_lanes<R, MAX, true> : multiply_lanes<R, MAX, false>;
            multiply(table, length, size[i], weight[i], cavity[i], message[i], i == 1 ? message[0] : row);
            table = row;
            std::swap(row, other);
            if (i > 1) length /= size[i - 1];
        }
    }

  private:
    // Cavities of an axis, in logs, where messages alternate.
    void load_alternating(const Block& b, const int32_t* factors, int i) {
        int64_t begin[W];
        for (int l = 0; l < W; ++l)
            begin[l] = state.a.at[graph.variable(graph.axis_slot(factors[l < b.count ? l : 0], i))];
        const double* totals = state.totals.get();
        for (int x = 0; x < size[i]; ++x) {
            const R* own = old[i] + x * W;
            R* to = cavity[i] + x * W;
            if (!state.barred)
                for (int l = 0; l < W; ++l) to[l] = R(totals[begin[l] + x] - double(own[l]));
            else
                for (int l = 0; l < W; ++l) {
                    const bool off = own[l] == -INF<R>;
                    const bool out = state.infinities.get()[begin[l] + x] - off > 0;
                    to[l] = out ? -INF<R> : R(totals[begin[l] + x] - double(off ? R(0) : own[l]));
                }
        }
    }
    // `value` in lanes that have state x of axis i, `other` in the rest.
    Lanes<R> within(int i, int x, Lanes<R> value, R other) const { return load(inside.get() + i * W) > R(x) ? value : splat(other); }
    // The same where each message is a row: old messages and cavities are transposed. Empty lanes repeat the first one.
    // Where lanes differ, states beyond a lane's own are -inf in both.
    template <bool MIXED> void load_rows(const Block& b, const int32_t* factors, int i) {
        const double* sum[W];
        int count[W];
        R** const own = row.data() + i * W;
        for (int l = 0; l < W; ++l) {
            const int64_t slot = graph.axis_slot(factors[l < b.count ? l : 0], i);
            sum[l] = state.totals.get() + state.a.at[graph.variable(slot)], own[l] = state.message(slot);
            count[l] = MIXED ? graph.states(slot) : size[i];
            if (MIXED) inside.get()[i * W + l] = R(count[l]);
            if (state.is_large) fetch(sum[l], count[l]);
            if (state.barred) state.cavity(slot, barred_rows.get() + l * padded<R>(size[i]));
        }
        const auto turn = [&](R* to, int x, const auto& row) {
            Lanes<R> tile[W];
            for (int l = 0; l < W; ++l) tile[l] = row(l, !MIXED || x < count[l] ? x : 0);
            transpose<R, W>(tile);
            const int inner = std::min(W, size[i] - x);
            for (int k = 0; k < inner; ++k)
                store(to + (x + k) * W, MIXED ? within(i, x + k, tile[k], -INF<R>) : tile[k]);
        };
        for (int x = 0; x < size[i]; x += W) {
            turn(old[i], x, [&](int l, int at) { return load(own[l] + at); });
            if (state.barred) turn(cavity[i], x, [&](int l, int at) { return load(barred_rows.get() + l * padded<R>(size[i]) + at); });
            else turn(cavity[i], x, [&](int l, int at) { return subtract<R>(sum[l] + at, own[l] + at); });
        }
    }
    void store_rows(const Block& b, int i, uint32_t running) const {
        R* const* const to = row.data() + i * W;
        const R* const from = old[i];
        for (int x = 0; x < size[i]; x += W) {
            Lanes<R> tile[W];
            for (int k = 0; k < W; ++k) tile[k] = x + k < size[i] ? load(from + (x + k) * W) : Lanes<R>{};
            transpose<R, W>(tile);
            for (int l = 0; l < b.count; ++l)
                if ((running >> l & 1) && (b.way == Way::WIDE || R(x) < inside.get()[i * W + l])) store(to[l] + x, tile[l]);
        }
    }
    // cavity[i] <- exp(cavity - largest); returns the largest minus the smallest finite one. In logs: unchanged, 0.
    Lanes<R> exponentiate(int i) {
        if (MAX) return Lanes<R>{};
        Lanes<R> best = splat(-INF<R>), worst = splat(INF<R>);
        R* const numbers = cavity[i];
        const int count = size[i];
        for (int x = 0; x < count; ++x) {
            const Lanes<R> values = load(numbers + x * W);
            best = larger<R>(best, values);
            worst = smaller<R>(worst, values == -INF<R> ? splat(INF<R>) : values);
        }
        const Mask<R> none = best == -INF<R>;
        best = none ? Lanes<R>{} : best, worst = none ? Lanes<R>{} : worst;
        for (int x = 0; x < count; ++x) store(numbers + x * W, exp<R>(load(numbers + x * W) - best));
        return best - worst;
    }
    bool finish(int order, const int32_t* factors, int count, uint32_t running, Mask<R> unsafe) {
        for (int i = 0; i < order; ++i) {
            Lanes<R> level = splat(NOTHING<R, MAX>);
            R* const m = message[i];
            for (int x = 0; x < size[i]; ++x) {
                const Lanes<R> value = load(m + x * W);
                level = MAX ? larger<R>(level, value) : level + value;
            }
            const Mask<R> empty = (level == NOTHING<R, MAX>) & ~unsafe & lanes_of<R>(running);
            if (any<R>(empty))
                for (int l = 0; l < count; ++l)
                    if (empty[l]) {
                        stuck = graph.axis_slot(factors[l], i);
                        return false;
                    }
            const Lanes<R> shift = MAX ? level : log(level);
            for (int x = 0, end = size[i]; x < end; ++x) {
                const Lanes<R> value = load(m + x * W);
                store(m + x * W, (MAX ? value : log_or_barred<R>(value)) - shift);
            }
        }
        return true;
    }
    bool finish_in_logs(int order, const int32_t* factors, int count, Mask<R> unsafe) {
        for (int l = 0; l < count; ++l) {
            if (!unsafe[l]) continue;
            engine.scratch.shape(graph, factors[l]);
            for (int i = 0; i < order; ++i) {
                const int variable = int(graph.axis_slot(factors[l], i) - graph.first(factors[l]));
                if (!engine.finish_in_logs(factors[l], variable)) {
                    stuck = engine.stuck;
                    return false;
                }
                const int own = graph.axis_states(factors[l], i);
                for (int x = 0; x < own; ++x) message[i][x * W + l] = engine.scratch.message[variable][x];
            }
        }
        return true;
    }
    void damp_lanes(int i) {
        const R share = R(state.a.damping), rest = R(1 - state.a.damping);
        Lanes<R> best = splat(-INF<R>), sum{};
        for (int x = 0; x < size[i]; ++x) {
            const Lanes<R> mixed = share * load(old[i] + x * W) + rest * load(message[i] + x * W);
            store(message[i] + x * W, mixed);
            best = larger<R>(best, mixed);
        }
        if (!MAX) {
            for (int x = 0; x < size[i]; ++x) sum += exp<R>(load(message[i] + x * W) - best);
            best += log(sum);
        }
        for (int x = 0; x < size[i]; ++x) store(message[i] + x * W, load(message[i] + x * W) - best);
    }
};
