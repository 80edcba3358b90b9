// Memory for one unit and one replica at a time: loads tables and messages into lanes, and writes messages out.
#pragma once
#include <cmath>
#include <exception>

#include "plan.hpp"
#include "team.hpp"
#include "ways.hpp"

template <class R> class Storage {
  public:
    static constexpr int W = WIDTH<R>;
    Storage(const Arguments& arguments, const Plan& plan) : a(arguments), plan(plan), K(int(arguments.states)) {}

    // Numbers in one of the two halves of a row of totals.
    static int padded_states(int states, Way way) {
        if (way == Way::BINARY) return 1;
        if (way != Way::LOGS && states <= MAX_REDUCED) return pad(states);
        return (states + W - 1) / W * W;
    }
    static Way quickest(int states, bool one_graph) {
        if (states <= 2) return states == 2 ? Way::BINARY : Way::LOGS;
        // Small graphs solved together need the change of every message, and so all biases in every sweep.
        return one_graph && states <= MAX_REDUCED ? Way::REDUCED : Way::RATIO;
    }

    void reserve(const Unit& unit, Way way) {
        const int64_t blocks = unit.blocks(), width = (way == Way::LOGS ? 2 : 1) * padded_states(K, way);
        tables.reserve(blocks * table_numbers(way) * W);
        messages.reserve(blocks * 2 * message_numbers(way) * W);
        if (a.appearance) weights.reserve(blocks * W);
        if (way == Way::BINARY) biases.reserve(blocks * 2 * W);
        if (may_multiply(unit, way)) spans.reserve(blocks * W);
        in_logs.reserve(blocks);
        live.reserve(blocks);
        base.reserve(unit.rows() * width);
        totals.reserve(2 * unit.rows() * width);
        int64_t tiles = 0;
        for (const auto& round : unit.rounds) tiles += int64_t(round.size());
        residual.reserve((unit.one_graph() ? 2 * tiles : blocks) * W);
        zeros.assign(K * K, R(0));
        scratch.reserve(std::max<int64_t>(a.threads, 1) * scratch_numbers());
        hub_base.resize(unit.hubs.size() * K);
    }

  protected:
    const Arguments& a;
    const Plan& plan;
    const int K;
    Buffer<R> tables, messages, weights, biases, base, totals, residual, scratch;
    Buffer<uint8_t> in_logs, spans;
    Buffer<uint32_t> live;
    std::vector<R> zeros;
    std::vector<double> hub_base;  // [hubs][states]: as `base`
    std::atomic<bool> found_barred{false}, found_wide{false}, found_far{false};
    bool out_of_memory = false;
    Way way = Way::LOGS;
    Form form = Form::LINEAR;
    int padded = 0;
    bool multiplying = false;  // totals may be products, unless spans turn out too large
    bool only_sums = false;    // totals are never products: other processes read and write them
    // A lane without a possible state: found in even sweeps, in odd sweeps, and before the first. A fast thread may be
    // one sweep ahead of a slow one, which must not see its finding yet.
    int64_t stuck[3] = {-1, -1, -1};
    Sweep<R> s{};

    int table_numbers(Way way) const {
        return way == Way::BINARY ? 1 : way == Way::REDUCED ? (K - 1) * (K - 1) : K * K;
    }
    // Whether totals may be products, if spans allow. Weights would be powers, and problems larger than the cache would
    // gain nothing.
    bool may_multiply(const Unit& unit, Way way) const {
        if (only_sums || a.best || a.appearance || a.start || K > MAX_REDUCED) return false;
        return (way == Way::REDUCED || way == Way::RATIO) && totals_bytes(unit, way) <= OWN_CACHE;
    }
    int64_t totals_bytes(const Unit& unit, Way way) const {
        return unit.rows() * 2 * (way == Way::LOGS ? 2 : 1) * padded_states(K, way) * int64_t(sizeof(R));
    }
    int message_numbers(Way way) const { return way == Way::LOGS ? K : K - 1; }
    int room() const { return (K + W - 1) / W * W; }
    int64_t scratch_numbers() const { return int64_t(SCRATCH_ROWS) * room() * W; }
    R* scratch_of(int rank) const { return scratch.get() + rank * scratch_numbers(); }

    // ---- in

    void choose(const Unit& unit, Way new_way, Form new_form) {
        way = new_way, form = new_form;
        found_barred = found_wide = found_far = false;
        reserve(unit, way);
        padded = padded_states(K, way);
        s.states = K, s.padded = padded, s.stride = 2 * (way == Way::LOGS ? 2 : 1) * padded;
        s.source = plan.source.data() + unit.first_block * W, s.target = plan.target.data() + unit.first_block * W;
        s.tables = tables.get(), s.messages = messages.get(), s.totals = totals.get();
        s.weights = a.appearance ? weights.get() : nullptr, s.biases = biases.get();
        s.in_logs = in_logs.get(), s.live = live.get(), s.edges = plan.edge.data() + unit.first_block * W;
        s.damping = R(a.damping), s.scratch = scratch.get(), s.room = room();
        s.prefetch = totals_bytes(unit, way) > OWN_CACHE;
        multiplying = may_multiply(unit, way);
    }

    // One member of a team gets memory for all; the others learn in `load` whether it got it.
    void choose_if_fits(const Unit& unit, Way new_way, Form new_form) {
        try {
            choose(unit, new_way, new_form);
        } catch (const std::exception&) {
            out_of_memory = true;
        }
    }

    // False if there is no memory to load into.
    bool load(const Unit& unit, int64_t replica, const Team& team) {
        if (team.rank == 0) s.potentials = static_cast<const R*>(a.edge) + replica * a.edges * K * K;
        team.wait();
        if (out_of_memory) return false;
        bool barred = false, wide = false;
        R span = a.start && a.damping != 0 ? NARROW<R> : R(0);  // of messages to start from, which damping keeps
        for (int64_t b = team.begin(unit.blocks()); b < team.end(unit.blocks()); ++b) {
            const int32_t* edges = plan.edge.data() + (unit.first_block + b) * W;
            prefetch_tables_after(unit, b);
            live.get()[b] = plan.live[unit.first_block + b];
            if (a.appearance) {
                const R* from = static_cast<const R*>(a.appearance);
                if (a.appearance_replicas > 1) from += replica * a.edges;
                for (int l = 0; l < W; ++l) weights.get()[b * W + l] = edges[l] < 0 ? R(1) : from[edges[l]];
            }
            alignas(64) R bias[2 * MAX_REDUCED * W];
            Lanes<R>* values = (Lanes<R>*)scratch_of(team.rank);
            for (const Kind kind : {load_table(b, edges, bias), load_messages(replica, b, edges, bias, values)})
                barred |= kind.barred, wide |= kind.wide, span = std::max(span, kind.span);
        }
        // Only small graphs, which no team shares, need this bound.
        if (team.size == 1) s.widest = std::max(R(1), span + (a.best ? R(0) : R(std::log(double(K)))));
        // Way::LOGS takes any span, and counts infinities.
        if (barred && way != Way::LOGS) found_barred = true;
        if (wide && (way == Way::REDUCED || (way != Way::LOGS && form == Form::LINEAR))) found_wide = true;
        team.wait();
        return true;
    }
    struct Kind {
        bool barred, wide;  // holds -inf; spans too much for the quickest way
        R span = 0;         // of a table, and so of messages computed with it
    };

    void prefetch_tables_after(const Unit& unit, int64_t block) const {
        constexpr int ahead = 2;  // blocks
        if (block + ahead < unit.blocks()) prefetch_tables(s.potentials, K, s.edges + (block + ahead) * W);
    }

    // Load the tables of a block's edges into lanes; also their biases, if tables are stored without them.
    Kind load_table(int64_t block, const int32_t* edges, R* bias) {
        const R* rows[W];
        for (int l = 0; l < W; ++l) rows[l] = edges[l] < 0 ? zeros.data() : s.potentials + int64_t(edges[l]) * K * K;
        R* table = tables.get() + block * table_numbers(way) * W;
        if (way == Way::BINARY) return load_half(block, rows, table);
        if (way == Way::REDUCED) return load_reduced(block, rows, table, bias);
        const Lanes<R> divisor = a.appearance ? ::load(weights.get() + block * W) : splat(R(1));
        Lanes<R> high = splat(-INF<R>), low = splat(INF<R>);
        Mask<R> forbidden{};
        int i = 0, j = 0;
        const auto put = [&](Lanes<R> value) {
            if (a.appearance) value /= divisor;
            store(table + entry(K, i, j) * W, value);
            high = larger<R>(high, value);
            low = smaller<R>(low, value == -INF<R> ? splat(INF<R>) : value);
            forbidden |= value == -INF<R>;
            if (++j == K) ++i, j = 0;
        };
        for (int n = 0; n < K * K; n += W) {
            Lanes<R> columns[W];
            read_columns(rows, n, K * K, columns);
            for (int k = 0; k < W && n + k < K * K; ++k) put(columns[k]);
        }
        keep_spans(block, high - low);
        if (!a.best) {
            const bool wide = way == Way::LOGS && any<R>(high - low > WIDEST<R>);
            in_logs.get()[block] = wide;
            const Lanes<R> level = finite<R>(high);
            for (int n = 0; n < K * K; ++n) {
                const Lanes<R> value = ::load(table + n * W) - level;
                store(table + n * W, wide ? value : exp<R>(value));
            }
        }
        return {any<R>(forbidden), any<R>(high - low > NARROW<R>), reduce_max<R>(high - low)};
    }
    // Stored in quarters, rounded up, so that a byte is enough.
    void keep_spans(int64_t block, Lanes<R> span) {
        if (!multiplying) return;
        const Mask<R> quarters = __builtin_convertvector(smaller<R>(4 * span, splat(R(254))), Mask<R>) + 1;
        for (int l = 0; l < W; ++l) spans.get()[block * W + l] = uint8_t(quarters[l]);
    }
    Kind load_half(int64_t block, const R* const* rows, R* table) {
        Lanes<R> p[4];
        for (int n = 0; n < 4; ++n)
            for (int l = 0; l < W; ++l) p[n][l] = rows[l][n];
        Mask<R> forbidden{};
        for (int n = 0; n < 4; ++n) {
            forbidden |= p[n] == -INF<R>;
            if (a.appearance) p[n] /= ::load(weights.get() + block * W);
        }
        const Lanes<R> half = ((p[0] - p[1]) + (p[3] - p[2])) / R(2);
        const Lanes<R> bias[2] = {((p[1] - p[0]) + (p[3] - p[2])) / R(2), ((p[2] - p[0]) + (p[3] - p[1])) / R(2)};
        store(table, form == Form::LINEAR ? exp_positive(half) : half);
        for (int side = 0; side < 2; ++side) store(biases.get() + (block * 2 + side) * W, bias[side]);
        const Lanes<R> span = magnitude<R>(half) + larger<R>(magnitude<R>(bias[0]), magnitude<R>(bias[1]));
        return {any<R>(forbidden), any<R>(magnitude<R>(half) > NARROW_HALF<R>), reduce_max<R>(span)};
    }

    Kind load_reduced(int64_t block, const R* const* rows, R* table, R* bias) {
        const int last = K - 1;
        Mask<R> forbidden{}, wide{};
        Lanes<R> p[MAX_REDUCED * MAX_REDUCED + W], high = splat(-INF<R>), low = splat(INF<R>);
        for (int n = 0; n < K * K; n += W) read_columns(rows, n, K * K, p + n);
        for (int n = 0; n < K * K; ++n) {
            forbidden |= p[n] == -INF<R>;
            if (a.appearance) p[n] /= ::load(weights.get() + block * W);
            high = larger<R>(high, p[n]), low = smaller<R>(low, p[n]);
        }
        wide = high - low > NARROW<R>;
        keep_spans(block, high - low);
        for (int k = 0; k < last; ++k) {
            store(bias + k * W, p[last * K + k] - p[last * K + last]);
            store(bias + (last + k) * W, p[k * K + last] - p[last * K + last]);
        }
        for (int i = 0; i < last; ++i)
            for (int j = 0; j < last; ++j) {
                const Lanes<R> value = (p[i * K + j] - p[i * K + last]) - (p[last * K + j] - p[last * K + last]);
                wide |= magnitude<R>(value) > NARROW<R>;
                store(table + (i * last + j) * W, a.best ? value : exp_positive(value));
            }
        return {any<R>(forbidden), any<R>(wide)};
    }

    Kind load_messages(int64_t replica, int64_t block, const int32_t* edges, const R* bias, Lanes<R>* values) {
        const R* from = static_cast<const R*>(a.start) + (a.start ? replica * 2 * a.edges * K : 0);
        Mask<R> forbidden{}, wide{};
        for (int side = 0; side < 2; ++side) {
            for (int k = 0; k < K; ++k) {
                values[k] = Lanes<R>{};
                for (int l = 0; a.start && l < W; ++l)
                    if (edges[l] >= 0) values[k][l] = from[(side * a.edges + edges[l]) * K + k];
                forbidden |= values[k] == -INF<R>;
            }
            R* to = messages.get() + (block * 2 + side) * message_numbers(way) * W;
            if (way == Way::BINARY) {
                const Lanes<R> ratio = values[1] - values[0] - ::load(biases.get() + (block * 2 + side) * W);
                wide |= magnitude<R>(ratio) > NARROW_HALF<R>;
                store(to, form == Form::LINEAR ? exp_positive(ratio) : ratio);
                continue;
            }
            if (a.best) normalise<R, true>(K, values);
            else normalise<R, false>(K, values);
            for (int k = 0; k < message_numbers(way); ++k) {
                Lanes<R> value = values[k];
                if (way != Way::LOGS) {
                    value -= values[K - 1];
                    wide |= magnitude<R>(value) > NARROW<R>;
                    if (way == Way::REDUCED) value -= ::load(bias + (side * (K - 1) + k) * W);
                    wide |= magnitude<R>(value) > NARROW<R>;
                    if (!a.best) value = exp_positive(value);
                }
                store(to + k * W, value);
            }
        }
        return {any<R>(forbidden), any<R>(wide)};
    }

    // ---- out

    void write_block(const Unit& unit, int64_t replica, int64_t block, int rank) {
        const int32_t* edges = plan.edge.data() + (unit.first_block + block) * W;
        R* out = static_cast<R*>(a.messages) + replica * 2 * a.edges * K;
        alignas(64) R bias[2 * MAX_REDUCED * W];
        if (way == Way::REDUCED) prefetch_tables_after(unit, block), find_biases(s, block, bias);
        for (int side = 0; side < 2; ++side) {
            R* logs = scratch_of(rank);
            const R* from = messages.get() + (block * 2 + side) * message_numbers(way) * W;
            if (way == Way::BINARY) {
                const Lanes<R> zero{}, value = ::load(from);
                const Lanes<R> bias = ::load(biases.get() + (block * 2 + side) * W);
                const Lanes<R> ratio = (form == Form::LINEAR ? log(value) : value) + bias;
                const Lanes<R> rest = a.best ? zero : log(splat(R(1)) + exp_positive(-magnitude<R>(ratio)));
                store(logs, zero - larger<R>(ratio, zero) - rest);
                store(logs + W, zero - larger<R>(-ratio, zero) - rest);
                from = logs;
            } else if (way != Way::LOGS) {
                Lanes<R>* values = (Lanes<R>*)logs;
                for (int k = 0; k < K - 1; ++k) values[k] = a.best ? ::load(from + k * W) : log(::load(from + k * W));
                for (int k = 0; way == Way::REDUCED && k < K - 1; ++k)
                    values[k] += ::load(bias + (side * (K - 1) + k) * W);
                values[K - 1] = Lanes<R>{};
                if (a.best) normalise<R, true>(K, values);
                else normalise<R, false>(K, values);
                from = logs;
            }
            for (int l = 0; l < W; ++l) {
                if (edges[l] < 0) continue;
                R* to = out + (side * a.edges + edges[l]) * K;
                for (int k = 0; k < K; ++k) to[k] = from[k * W + l];
            }
        }
    }
};
