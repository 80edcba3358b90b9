// One unit of a plan, for one replica: into blocks, sweeps until it has settled, and out again.
#pragma once
#include <cmath>

#include "plan.hpp"
#include "ratio.hpp"
#include "sweep.hpp"
#include "team.hpp"

extern "C" struct Arguments {
    int64_t replicas, nodes, edges, states, graphs;
    const int64_t *source, *target, *graph;  // [edges]
    const void* node;                        // [replicas, nodes, states]
    const void* edge;                        // [replicas, edges, states, states]
    const void* appearance;                  // [appearance_replicas, edges], or null where all are 1
    const void* start;                       // [replicas, 2 edges, states], or null
    void* messages;                          // [replicas, 2 edges, states]
    void* residual;                          // [replicas, graphs]
    int64_t* sweeps;                         // [replicas, graphs]
    int64_t appearance_replicas, max_sweeps, best, threads;
    double damping, tolerance;
    int64_t stuck;  // out: an arc that has no state left, or -1
};

template <class R> using Kernel = void (*)(const Sweep<R>&, int64_t, int64_t, int);

template <class R, bool MAX> Kernel<R> kernel_for(int states, bool barred, bool ratios) {
    if (ratios) return sweep_ratios<R, MAX>;
    if (barred) return sweep_blocks<R, 0, MAX, true>;
    switch (states) {
        case 3: return sweep_blocks<R, 3, MAX, false>;
        case 4: return sweep_blocks<R, 4, MAX, false>;
        case 5: return sweep_blocks<R, 5, MAX, false>;
        case 6: return sweep_blocks<R, 6, MAX, false>;
        case 7: return sweep_blocks<R, 7, MAX, false>;
        case 8: return sweep_blocks<R, 8, MAX, false>;
        default: return sweep_blocks<R, 0, MAX, false>;
    }
}

// Memory for one unit and one replica at a time, and what is done with it.
template <class R> class Solver {
  public:
    static constexpr int W = WIDTH<R>;
    Solver(const Arguments& arguments, const Plan& plan) : a(arguments), plan(plan), K(int(arguments.states)) {}

    static int padded_states(int states, bool barred) {
        if (states == 2 && !barred) return 1;
        if (states >= 3 && states <= 8 && !barred) return pad(states);
        return (states + W - 1) / W * W;
    }

    void reserve(const Unit& unit) {
        const int64_t blocks = unit.blocks(), rows = unit.rows();
        tables.reserve(blocks * K * K * W);
        messages.reserve(blocks * 2 * K * W);
        if (a.appearance) weights.reserve(blocks * W);
        if (K == 2) biases.reserve(blocks * 2 * W);
        in_logs.reserve(blocks);
        live.reserve(blocks);
        // Rows with counts of infinities are rare; their room is made when they are needed.
        base.reserve(rows * padded_states(K, false));
        totals.reserve(2 * rows * padded_states(K, false));
        int64_t tiles = 0;
        for (const auto& round : unit.rounds) tiles += int64_t(round.size());
        residual.reserve(std::max(2 * tiles, blocks) * W);
        zeros.assign(K * K, R(0));
    }

    // All of a team call this together; the result is the same for every member.
    void solve(const Unit& unit, int64_t replica, const Team& team, std::atomic<int64_t>& stuck_arc) {
        setup(unit, replica, team);
        const bool many = unit.last_graph - unit.first_graph > 1;
        if (many) sweep_bundle(unit, replica);
        else sweep_graph(unit, replica, team);
        team.wait();
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
    std::atomic<bool> found_barred{false};
    bool barred = false, ratios = false;
    int padded = 0;
    // Lanes without a state left: found in even sweeps, in odd sweeps (a fast thread may be one sweep ahead of a slow
    // one, which must not see what comes next), and before the first.
    int64_t stuck[3] = {-1, -1, -1};
    Sweep<R> s{};

    // ---- set-up

    void setup(const Unit& unit, int64_t replica, const Team& team) {
        if (team.rank == 0) {
            found_barred = false;
            stuck[0] = stuck[1] = stuck[2] = -1;
            barred = false, ratios = K == 2;
        }
        team.wait();
        load(unit, replica, team);
        team.wait();
        if (team.rank == 0) {
            barred = found_barred;
            padded = padded_states(K, barred);
            const int64_t width = barred ? 2 * padded : padded;
            base.reserve(unit.rows() * width);
            totals.reserve(2 * unit.rows() * width);
            s.states = K, s.padded = padded, s.stride = 2 * width;
            s.source = plan.source.data() + unit.first_block * W, s.target = plan.target.data() + unit.first_block * W;
            s.tables = tables.get(), s.messages = messages.get(), s.totals = totals.get();
            s.weights = a.appearance ? weights.get() : nullptr, s.biases = biases.get();
            s.in_logs = in_logs.get(), s.live = live.get();
            s.damping = R(a.damping);
            s.prefetch = unit.rows() * s.stride * int64_t(sizeof(R)) > OWN_CACHE;
        }
        team.wait();
        if (ratios && barred) {  // forbidden pairs have no finite log-ratio: take the general path
            team.wait();
            if (team.rank == 0) ratios = false;
            team.wait();
            load(unit, replica, team);
            team.wait();
        }
        collect(unit, replica, team);
    }

    void load(const Unit& unit, int64_t replica, const Team& team) {
        bool any_barred = false;
        for (int64_t b = team.begin(unit.blocks()); b < team.end(unit.blocks()); ++b) {
            const int32_t* edges = plan.edge.data() + (unit.first_block + b) * W;
            live.get()[b] = plan.live[unit.first_block + b];
            if (a.appearance) {
                const R* from = static_cast<const R*>(a.appearance);
                if (a.appearance_replicas > 1) from += replica * a.edges;
                for (int l = 0; l < W; ++l) weights.get()[b * W + l] = edges[l] < 0 ? R(1) : from[edges[l]];
            }
            any_barred |= load_table(replica, b, edges);
            any_barred |= load_messages(replica, b, edges);
        }
        if (any_barred) found_barred = true;
    }

    // Tables of a block's edges, lane by lane, ready for the sweep. True where an entry is -inf.
    bool load_table(int64_t replica, int64_t block, const int32_t* edges) {
        const R* tables_in = static_cast<const R*>(a.edge) + replica * a.edges * K * K;
        const R* rows[W];
        for (int l = 0; l < W; ++l) rows[l] = edges[l] < 0 ? zeros.data() : tables_in + int64_t(edges[l]) * K * K;
        R* table = tables.get() + block * (ratios ? 1 : K * K) * W;
        if (ratios) return load_ratio(block, rows, table);
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
        int n = 0;
        for (; n + W <= K * K; n += W) {
            Lanes<R> square[W];
            for (int l = 0; l < W; ++l) square[l] = ::load(rows[l] + n);
            transpose<R, W>(square);
            for (int k = 0; k < W; ++k) put(square[k]);
        }
        for (; n < K * K; ++n) {
            Lanes<R> value{};
            for (int l = 0; l < W; ++l) value[l] = rows[l][n];
            put(value);
        }
        if (!a.best) {
            const bool wide = any<R>(high - low > WIDEST<R>);
            in_logs.get()[block] = wide;
            const Lanes<R> level = finite<R>(high);
            for (int n = 0; n < K * K; ++n) {
                const Lanes<R> value = ::load(table + n * W) - level;
                store(table + n * W, wide ? value : exp<R>(value));
            }
        }
        return any<R>(forbidden);
    }
    bool load_ratio(int64_t block, const R* const* rows, R* table) {
        Lanes<R> p[4];
        for (int n = 0; n < 4; ++n)
            for (int l = 0; l < W; ++l) p[n][l] = rows[l][n];
        Mask<R> forbidden{};
        for (int n = 0; n < 4; ++n) {
            forbidden |= p[n] == -INF<R>;
            if (a.appearance) p[n] /= ::load(weights.get() + block * W);
        }
        const Lanes<R> half = ((p[0] - p[1]) + (p[3] - p[2])) / R(2);
        in_logs.get()[block] = any<R>(magnitude<R>(half) > WIDEST<R> / 2);
        const bool plain = !a.best && !in_logs.get()[block];
        store(table, plain ? with_sign<R>(exp_positive(-magnitude<R>(half)), half) : half);
        store(biases.get() + block * 2 * W, ((p[1] - p[0]) + (p[3] - p[2])) / R(2));
        store(biases.get() + (block * 2 + 1) * W, ((p[2] - p[0]) + (p[3] - p[1])) / R(2));
        return any<R>(forbidden);
    }

    bool load_messages(int64_t replica, int64_t block, const int32_t* edges) {
        const R* from = static_cast<const R*>(a.start) + (a.start ? replica * 2 * a.edges * K : 0);
        Mask<R> forbidden{};
        for (int side = 0; side < 2; ++side) {
            Lanes<R> values[MAX_STATES];
            for (int k = 0; k < K; ++k) {
                values[k] = Lanes<R>{};
                for (int l = 0; a.start && l < W; ++l)
                    if (edges[l] >= 0) values[k][l] = from[(side * a.edges + edges[l]) * K + k];
                forbidden |= values[k] == -INF<R>;
            }
            if (ratios) {
                const Lanes<R> bias = ::load(biases.get() + (block * 2 + side) * W);
                store(messages.get() + (block * 2 + side) * W, values[1] - values[0] - bias);
                continue;
            }
            if (a.best) normalise<R, true>(K, values);
            else normalise<R, false>(K, values);
            for (int k = 0; k < K; ++k) store(messages.get() + ((block * 2 + side) * K + k) * W, values[k]);
        }
        return any<R>(forbidden);
    }

    // Node potentials in rows, and the totals that the first sweep starts from.
    void collect(const Unit& unit, int64_t replica, const Team& team) {
        for_tiles(unit, team, [&](int round, int tile, Tile range, int64_t) {
            if (round == 0) {
                load_rows(unit, replica, tile);
                reset_totals(unit, tile, 0);
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
            if (node < 0) continue;
            const R* from = nodes + int64_t(node) * K;
            if (ratios) {
                *to = from[1] - from[0];
                if (std::isnan(*to)) note_barred_node(unit, node);
                continue;
            }
            bool possible = false;
            for (int k = 0; k < K; ++k) {
                const bool out = from[k] == -INF<R>;
                possible |= !out;
                to[k] = barred && out ? R(0) : from[k];
                if (barred) to[padded + k] = out;
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
    void reset_totals(const Unit& unit, int group, int parity) {
        const int64_t width = s.stride / 2;
        for (int64_t row = unit.group_rows[group]; row < unit.group_rows[group + 1]; ++row)
            std::copy_n(base.get() + row * width, width, totals.get() + row * s.stride + parity * width);
    }
    void collect_block(int64_t block) {
        const Lanes<R> weight = a.appearance ? ::load(weights.get() + block * W) : splat(R(1));
        for (int side = 0; side < 2; ++side) {
            const int32_t* ends = (side == 0 ? s.target : s.source) + block * W;
            for (int k = 0; k < (ratios ? 1 : K); ++k) {
                Lanes<R> value = ::load(messages.get() + ((block * 2 + side) * (ratios ? 1 : K) + k) * W);
                const Lanes<R> bias = ratios ? weight * ::load(biases.get() + (block * 2 + side) * W) : Lanes<R>{};
                const Mask<R> out = value == -INF<R>;
                value = weight * finite<R>(value) + bias;
                for (int l = 0; l < W; ++l) {
                    totals.get()[ends[l] * s.stride + k] += value[l];
                    if (ratios) base.get()[ends[l]] += bias[l];
                    if (barred && out[l]) totals.get()[ends[l] * s.stride + padded + k] += 1;
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
    Kernel<R> kernel() const {
        return a.best ? kernel_for<R, true>(K, barred, ratios) : kernel_for<R, false>(K, barred, ratios);
    }
    void report(int64_t replica, int32_t graph, R moved, int64_t sweeps) {
        static_cast<R*>(a.residual)[replica * a.graphs + graph] = moved;
        a.sweeps[replica * a.graphs + graph] = sweeps;
    }

    void sweep_graph(const Unit& unit, int64_t replica, const Team& team) {
        const Kernel<R> run = kernel();
        Sweep<R> mine = s;
        mine.residual_step = 0;
        int64_t tiles = 0, done = 0;
        for (const auto& round : unit.rounds) tiles += int64_t(round.size());
        R moved = INF<R>;
        while (done < a.max_sweeps && stuck[2] < 0) {
            const int parity = int(done % 2);
            R* rows = residual.get() + parity * tiles * W;
            mine.stuck = &stuck[parity];
            for_tiles(unit, team, [&](int round, int tile, Tile range, int64_t number) {
                if (round == 0) reset_totals(unit, tile, 1 - parity);
                mine.residual = rows + number * W;
                store(mine.residual, Lanes<R>{});
                run(mine, range.first, range.last, parity);
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
        const Kernel<R> run = kernel();
        const int64_t graphs = unit.last_graph - unit.first_graph, blocks = unit.blocks();
        const int32_t *slot = plan.slot.data() + unit.first_block * W, *names = plan.graphs.data() + unit.first_graph;
        counts.assign(graphs, -1);  // -1: still moving
        for (int64_t g = 0; g < graphs; ++g) report(replica, names[g], INF<R>, 0);
        int64_t moving = graphs;
        s.residual = residual.get(), s.residual_step = W, s.stuck = &stuck[0];
        for (int64_t done = 1; done <= a.max_sweeps && moving > 0 && std::max(stuck[0], stuck[2]) < 0; ++done) {
            const int parity = int((done - 1) % 2);
            reset_totals(unit, 0, 1 - parity);
            std::fill_n(residual.get(), blocks * W, R(0));
            run(s, 0, blocks, parity);
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
        for (int side = 0; side < 2; ++side) {
            alignas(64) R pair[2 * W];
            const R* from = messages.get() + (block * 2 + side) * K * W;
            if (ratios) {
                const Lanes<R> zero{};
                const int64_t place = (block * 2 + side) * W;
                const Lanes<R> ratio = ::load(messages.get() + place) + ::load(biases.get() + place);
                const Lanes<R> rest = a.best ? zero : log(splat(R(1)) + exp_positive(-magnitude<R>(ratio)));
                store(pair, zero - larger<R>(ratio, zero) - rest);
                store(pair + W, zero - larger<R>(-ratio, zero) - rest);
                from = pair;
            }
            for (int l = 0; l < W; ++l) {
                if (edges[l] < 0) continue;
                R* to = out + (side * a.edges + edges[l]) * K;
                for (int k = 0; k < K; ++k) to[k] = from[k * W + l];
            }
        }
    }
};
