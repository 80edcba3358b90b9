// One unit of a plan, for one replica: into blocks, sweeps until it has settled, and out again.
#pragma once
#include <cmath>

#include "plan.hpp"
#include "team.hpp"
#include "ways.hpp"

// Memory for one unit and one replica at a time, and what is done with it.
template <class R> class Solver {
  public:
    static constexpr int W = WIDTH<R>;
    Solver(const Arguments& arguments, const Plan& plan) : a(arguments), plan(plan), K(int(arguments.states)) {}

    // Numbers in one of the two halves of a row of totals.
    static int padded_states(int states, Way way) {
        if (way == Way::BINARY) return 1;
        if (way != Way::LOGS && states <= MAX_REDUCED) return pad(states);
        return (states + W - 1) / W * W;
    }
    static Way quickest(int states, bool one_graph) {
        if (states <= 2) return states == 2 ? Way::BINARY : Way::LOGS;
        // Small graphs side by side need the change of every message, and so all biases in every sweep.
        return one_graph && states <= MAX_REDUCED ? Way::REDUCED : Way::RATIO;
    }

    void reserve(const Unit& unit, Way way) {
        const int64_t blocks = unit.blocks(), width = (way == Way::LOGS ? 2 : 1) * padded_states(K, way);
        tables.reserve(blocks * table_numbers(way) * W);
        messages.reserve(blocks * 2 * message_numbers(way) * W);
        if (a.appearance) weights.reserve(blocks * W);
        if (way == Way::BINARY) biases.reserve(blocks * 2 * W);
        in_logs.reserve(blocks);
        live.reserve(blocks);
        base.reserve(unit.rows() * width);
        totals.reserve(2 * unit.rows() * width);
        int64_t tiles = 0;
        for (const auto& round : unit.rounds) tiles += int64_t(round.size());
        residual.reserve((unit.one_graph() ? 2 * tiles : blocks) * W);
        zeros.assign(K * K, R(0));
    }

    // All of a team call this together; the result is the same for every member. After the `last` nothing more will
    // be solved: what messages are not made of is given back before there are messages twice.
    void solve(const Unit& unit, int64_t replica, const Team& team, std::atomic<int64_t>& stuck_arc, bool last) {
        setup(unit, replica, team);
        if (unit.one_graph()) sweep_graph(unit, replica, team);
        else sweep_bundle(unit, replica);
        team.wait();
        if (last && team.rank == 0) tables.release(), totals.release(), base.release(), return_freed(a.edges);
        const int64_t lane = std::max({stuck[0], stuck[1], stuck[2]});
        if (lane >= 0) {
            const int64_t edge = plan.edge[unit.first_block * W + lane / 2];
            stuck_arc.store(lane % 2 ? a.edges + edge : edge, std::memory_order_relaxed);
        } else {
            for (int64_t b = team.begin(unit.blocks()); b < team.end(unit.blocks()); ++b) write_block(unit, replica, b);
        }
        team.wait();
    }

  private:
    const Arguments& a;
    const Plan& plan;
    const int K;
    Buffer<R> tables, messages, weights, biases, base, totals, residual;
    Buffer<uint8_t> in_logs;
    Buffer<uint32_t> live;
    std::vector<R> zeros;
    std::vector<int64_t> counts;
    std::vector<R> change;
    std::atomic<bool> found_barred{false}, found_wide{false};
    Way way = Way::LOGS;
    Form form = Form::LINEAR;
    int padded = 0;
    // Lanes without a state left: found in even sweeps, in odd sweeps (a fast thread may be one sweep ahead of a slow
    // one, which must not see what comes next), and before the first.
    int64_t stuck[3] = {-1, -1, -1};
    Sweep<R> s{};

    // ---- set-up

    int table_numbers(Way way) const {
        return way == Way::BINARY ? 1 : way == Way::REDUCED ? (K - 1) * (K - 1) : K * K;
    }
    int message_numbers(Way way) const { return way == Way::LOGS ? K : K - 1; }

    // Most problems can be solved the quickest way; what was loaded tells.
    void setup(const Unit& unit, int64_t replica, const Team& team) {
        if (team.rank == 0) {
            stuck[0] = stuck[1] = stuck[2] = -1;
            choose(unit, quickest(K, unit.one_graph()), a.best ? Form::MAX : Form::LINEAR);
        }
        load(unit, replica, team);
        while (found_barred || found_wide) {
            team.wait();
            if (team.rank == 0) {
                if (way == Way::BINARY && !found_barred) choose(unit, Way::BINARY, Form::LOGS);
                else choose(unit, way == Way::REDUCED && !found_barred ? Way::RATIO : Way::LOGS, form);
            }
            load(unit, replica, team);
        }
        collect(unit, replica, team);
    }
    void choose(const Unit& unit, Way new_way, Form new_form) {
        way = new_way, form = new_form;
        found_barred = found_wide = false;
        reserve(unit, way);
        padded = padded_states(K, way);
        s.states = K, s.padded = padded, s.stride = 2 * (way == Way::LOGS ? 2 : 1) * padded;
        s.source = plan.source.data() + unit.first_block * W, s.target = plan.target.data() + unit.first_block * W;
        s.tables = tables.get(), s.messages = messages.get(), s.totals = totals.get();
        s.weights = a.appearance ? weights.get() : nullptr, s.biases = biases.get();
        s.in_logs = in_logs.get(), s.live = live.get(), s.edges = plan.edge.data() + unit.first_block * W;
        s.damping = R(a.damping);
        s.prefetch = unit.rows() * s.stride * int64_t(sizeof(R)) > OWN_CACHE;
    }

    void load(const Unit& unit, int64_t replica, const Team& team) {
        if (team.rank == 0) s.potentials = static_cast<const R*>(a.edge) + replica * a.edges * K * K;
        team.wait();
        bool barred = false, wide = false;
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
            for (const Kind kind : {load_table(b, edges, bias), load_messages(replica, b, edges, bias)})
                barred |= kind.barred, wide |= kind.wide;
        }
        // Where the way is already that of logs, nothing is too wide, and infinities are counted.
        if (barred && way != Way::LOGS) found_barred = true;
        if (wide && (way == Way::REDUCED || (way != Way::LOGS && form == Form::LINEAR))) found_wide = true;
        team.wait();
    }
    struct Kind {
        bool barred, wide;  // holds -inf; spans too much for the quickest way
    };

    void prefetch_tables_after(const Unit& unit, int64_t block) const {
        constexpr int ahead = 2;  // blocks
        if (block + ahead < unit.blocks()) prefetch_tables(s.potentials, K, s.edges + (block + ahead) * W);
    }

    // Tables of a block's edges, lane by lane, ready for the sweep; and biases, where tables go without them.
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
        if (!a.best) {
            const bool wide = way == Way::LOGS && any<R>(high - low > WIDEST<R>);
            in_logs.get()[block] = wide;
            const Lanes<R> level = finite<R>(high);
            for (int n = 0; n < K * K; ++n) {
                const Lanes<R> value = ::load(table + n * W) - level;
                store(table + n * W, wide ? value : exp<R>(value));
            }
        }
        return {any<R>(forbidden), any<R>(high - low > NARROW<R>)};
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
        store(table, form == Form::LINEAR ? exp_positive(half) : half);
        store(biases.get() + block * 2 * W, ((p[1] - p[0]) + (p[3] - p[2])) / R(2));
        store(biases.get() + (block * 2 + 1) * W, ((p[2] - p[0]) + (p[3] - p[1])) / R(2));
        return {any<R>(forbidden), any<R>(magnitude<R>(half) > NARROW_HALF<R>)};
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

    Kind load_messages(int64_t replica, int64_t block, const int32_t* edges, const R* bias) {
        const R* from = static_cast<const R*>(a.start) + (a.start ? replica * 2 * a.edges * K : 0);
        Mask<R> forbidden{}, wide{};
        for (int side = 0; side < 2; ++side) {
            Lanes<R> values[MAX_STATES];
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

    // Node potentials in rows, and the totals that the first sweep starts from.
    void collect(const Unit& unit, int64_t replica, const Team& team) {
        for_tiles(unit, team, [&](int round, int tile, Tile range, int64_t) {
            if (round == 0) {
                load_rows(unit, replica, tile);
                for (int64_t row = unit.group_rows[tile]; row < unit.group_rows[tile + 1]; ++row)
                    std::copy_n(base.get() + row * (s.stride / 2), s.stride / 2, new_totals(row));
            }
            for (int64_t b = range.first; b < range.last; ++b) collect_block(b);
        });
    }
    void load_rows(const Unit& unit, int64_t replica, int group) {
        const R* nodes = static_cast<const R*>(a.node) + replica * a.nodes * K;
        const int64_t width = s.stride / 2;
        for (int64_t row = unit.group_rows[group]; row < unit.group_rows[group + 1]; ++row) {
            const int32_t node = plan.row_node[unit.first_row + row];
            R* to = base.get() + row * width;
            std::fill_n(to, width, R(0));
            if (way == Way::REDUCED || way == Way::RATIO) std::fill_n(to + K, padded - K, UNUSED<R>);
            if (node < 0) continue;
            const R* from = nodes + int64_t(node) * K;
            if (way == Way::BINARY) {
                *to = from[1] - from[0];
                if (std::isnan(*to)) note_barred_node(unit, node);
                continue;
            }
            bool possible = false;
            for (int k = 0; k < K; ++k) {
                const bool out = from[k] == -INF<R>;
                possible |= !out;
                to[k] = way == Way::LOGS && out ? R(0) : from[k];
                if (way == Way::LOGS) to[padded + k] = out;
            }
            if (!possible) note_barred_node(unit, node);
        }
    }
    // A node without any state cannot send: the first arc out of it is the one to report.
    void note_barred_node(const Unit& unit, int32_t node) {
        if (a.max_sweeps == 0) return;
        for (int64_t lane = 0; lane < unit.blocks() * W; ++lane) {
            const int32_t edge = plan.edge[unit.first_block * W + lane];
            if (edge < 0) continue;
            if (a.source[edge] != node && a.target[edge] != node) continue;
            __atomic_store_n(&stuck[2], lane * 2 + (a.source[edge] != node), __ATOMIC_RELAXED);
            return;
        }
    }
    R* new_totals(int64_t row) { return totals.get() + row * s.stride + s.stride / 2; }
    void collect_block(int64_t block) {
        const Lanes<R> weight = a.appearance ? ::load(weights.get() + block * W) : splat(R(1));
        const bool shifted = way == Way::BINARY || way == Way::REDUCED;
        const bool silent = !a.start && way != Way::LOGS;  // all messages are biases: they add nothing
        if (silent && !shifted) return;
        alignas(64) R biased[2 * MAX_REDUCED * W];
        if (way == Way::BINARY) std::copy_n(biases.get() + block * 2 * W, 2 * W, biased);
        if (way == Way::REDUCED && !silent) find_biases(s, block, biased);
        for (int side = 0; side < 2; ++side) {
            const int32_t* ends = (side == 0 ? s.target : s.source) + block * W;
            for (int k = 0; k < message_numbers(way); ++k) {
                Lanes<R> value = ::load(messages.get() + ((block * 2 + side) * message_numbers(way) + k) * W);
                if (way != Way::LOGS && form == Form::LINEAR) value = log(value);
                // A bias need not be looked up again where it is all there is to a message.
                const int64_t at = (side * (K - 1) + k) * W;
                if (way == Way::REDUCED && silent) store(biased + at, -value);
                const Lanes<R> bias = shifted ? weight * ::load(biased + at) : Lanes<R>{};
                const Mask<R> out = value == -INF<R>;
                value = weight * finite<R>(value) + bias;
                for (int l = 0; l < W; ++l) {
                    if (!silent) new_totals(ends[l])[k] += value[l];
                    if (shifted) base.get()[ends[l] * (s.stride / 2) + k] += bias[l];
                    if (way == Way::LOGS && out[l]) new_totals(ends[l])[padded + k] += 1;
                }
            }
        }
    }

    // ---- sweeps

    // Visit this thread's tiles, round by round; `number` counts all tiles of the unit.
    template <class Visit> void for_tiles(const Unit& unit, const Team& team, Visit visit) {
        int64_t number = 0;
        for (size_t round = 0; round < unit.rounds.size(); ++round) {
            const auto& tiles = unit.rounds[round];
            for (size_t k = 0; k < tiles.size(); ++k, ++number) {
                if (int(k % team.size) != team.rank) continue;
                const Tile range{tiles[k].first - unit.first_block, tiles[k].last - unit.first_block};
                visit(int(round), int(k), range, number);
            }
            team.wait();
        }
    }
    Kernel<R> choose_kernel() const {
        return a.best ? kernel_for<R, true>(K, way, form) : kernel_for<R, false>(K, way, form);
    }
    void advance_group(const Kernel<R>& kernel, const Unit& unit, int group) {
        const int64_t *rows = unit.group_rows.data() + group;
        kernel.advance(totals.get(), base.get(), rows[0], rows[1], int(s.stride / 2));
    }
    void report(int64_t replica, int32_t graph, R moved, int64_t sweeps) {
        static_cast<R*>(a.residual)[replica * a.graphs + graph] = moved;
        a.sweeps[replica * a.graphs + graph] = sweeps;
    }

    void sweep_graph(const Unit& unit, int64_t replica, const Team& team) {
        const Kernel<R> kernel = choose_kernel();
        Sweep<R> mine = s;
        mine.residual_step = 0;
        int64_t tiles = 0, done = 0;
        for (const auto& round : unit.rounds) tiles += int64_t(round.size());
        R moved = INF<R>;
        while (done < a.max_sweeps && stuck[2] < 0) {
            const int parity = int(done % 2);
            R* rows = residual.get() + parity * tiles * W;
            mine.stuck = &stuck[parity];
            // Before the last sweep, what counts is whether something still moves; how much is told of the last only.
            mine.enough = done + 1 < a.max_sweeps ? R(a.tolerance) : INF<R>;
            for_tiles(unit, team, [&](int round, int tile, Tile range, int64_t number) {
                if (round == 0) advance_group(kernel, unit, tile);
                mine.residual = rows + number * W;
                store(mine.residual, Lanes<R>{});
                kernel.sweep(mine, range.first, range.last);
            });
            ++done;
            Lanes<R> most{};
            for (int64_t t = 0; t < tiles; ++t) most = larger<R>(most, ::load(rows + t * W));
            moved = reduce_max<R>(most);
            if (stuck[parity] >= 0) break;
            if (a.tolerance > 0 && !(moved > R(a.tolerance))) break;
        }
        if (team.rank == 0) report(replica, plan.graphs[unit.first_graph], moved, done);
    }

    void sweep_bundle(const Unit& unit, int64_t replica) {
        const Kernel<R> kernel = choose_kernel();
        const int64_t graphs = unit.last_graph - unit.first_graph, blocks = unit.blocks();
        const int32_t *slot = plan.slot.data() + unit.first_block * W, *names = plan.graphs.data() + unit.first_graph;
        counts.assign(graphs, -1);  // -1: still moving
        for (int64_t g = 0; g < graphs; ++g) report(replica, names[g], INF<R>, 0);
        int64_t moving = graphs;
        s.residual = residual.get(), s.residual_step = W, s.stuck = &stuck[0], s.enough = INF<R>;
        for (int64_t done = 1; done <= a.max_sweeps && moving > 0 && std::max(stuck[0], stuck[2]) < 0; ++done) {
            advance_group(kernel, unit, 0);
            std::fill_n(residual.get(), blocks * W, R(0));
            kernel.sweep(s, 0, blocks);
            if (a.tolerance == 0 && done < a.max_sweeps) continue;
            change.assign(graphs, R(0));
            for (int64_t b = 0; b < blocks; ++b) {
                const uint32_t bits = live.get()[b];
                for (int64_t l = b * W; bits >> (l - b * W); ++l)
                    if (bits >> (l - b * W) & 1) change[slot[l]] = std::max(change[slot[l]], residual.get()[l]);
            }
            bool settled = false;
            for (int64_t g = 0; g < graphs; ++g) {
                if (counts[g] >= 0) continue;
                report(replica, names[g], change[g], done);
                if (a.tolerance > 0 && !(change[g] > R(a.tolerance))) counts[g] = done, --moving, settled = true;
            }
            if (!settled) continue;
            for (int64_t b = 0; b < blocks; ++b)
                for (int l = 0; l < W; ++l)
                    if (live.get()[b] >> l & 1 && counts[slot[b * W + l]] >= 0) live.get()[b] &= ~(1u << l);
        }
    }

    // ---- results

    void write_block(const Unit& unit, int64_t replica, int64_t block) {
        const int32_t* edges = plan.edge.data() + (unit.first_block + block) * W;
        R* out = static_cast<R*>(a.messages) + replica * 2 * a.edges * K;
        alignas(64) R bias[2 * MAX_REDUCED * W];
        if (way == Way::REDUCED) prefetch_tables_after(unit, block), find_biases(s, block, bias);
        for (int side = 0; side < 2; ++side) {
            alignas(64) R logs[MAX_STATES * W];
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
                Lanes<R> values[MAX_STATES];
                for (int k = 0; k < K - 1; ++k) values[k] = a.best ? ::load(from + k * W) : log(::load(from + k * W));
                for (int k = 0; way == Way::REDUCED && k < K - 1; ++k) values[k] += ::load(bias + (side * (K - 1) + k) * W);
                values[K - 1] = Lanes<R>{};
                if (a.best) normalise<R, true>(K, values);
                else normalise<R, false>(K, values);
                for (int k = 0; k < K; ++k) store(logs + k * W, values[k]);
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
