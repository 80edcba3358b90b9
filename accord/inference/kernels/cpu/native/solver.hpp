// Solves one unit of a plan for one replica: loads it into blocks, sweeps until it converges, and writes the result.
#pragma once
#include "hubs.hpp"

template <class R> class Solver : public Storage<R> {
  public:
    using Storage<R>::Storage, Storage<R>::W, Storage<R>::quickest;

    // All members of a team call this together. After the `last` call nothing more is solved, so everything but the
    // messages is freed before they are copied to the output. False, for all members, if memory ran out.
    bool solve(const Unit& unit, int64_t replica, const Team& team, std::atomic<int64_t>& stuck_arc, bool last) {
        if (!setup(unit, replica, team)) return false;
        if (unit.one_graph()) sweep_graph(unit, replica, team);
        else sweep_bundle(unit, replica);
        team.wait();
        write_totals(unit, replica, team);
        team.wait();
        if (last && team.rank == 0) release_all_but_messages();
        const int64_t lane = std::max({stuck[0], stuck[1], stuck[2]});
        if (lane >= 0) {
            const int64_t edge = plan.edge[unit.first_block * W + lane / 2];
            stuck_arc.store(lane % 2 ? a.edges + edge : edge, std::memory_order_relaxed);
        } else {
            for (int64_t b = team.begin(unit.blocks()); b < team.end(unit.blocks()); ++b)
                write_block(unit, replica, b, team.rank);
        }
        team.wait();
        return true;
    }

  protected:
    using Base = Storage<R>;
    using Base::a, Base::plan, Base::K, Base::way, Base::form, Base::padded, Base::s, Base::stuck, Base::found_barred,
        Base::found_wide, Base::found_far, Base::multiplying, Base::spans, Base::tables, Base::messages, Base::weights,
        Base::biases, Base::base, Base::totals, Base::residual, Base::live, Base::choose_if_fits, Base::load,
        Base::message_numbers, Base::write_block;
    std::vector<int64_t> counts;
    std::vector<R> change;

    // ---- set-up

    // Try the quickest way first; loading finds out whether the values allow it.
    bool setup(const Unit& unit, int64_t replica, const Team& team) {
        if (team.rank == 0) {
            stuck[0] = stuck[1] = stuck[2] = -1;
            choose_if_fits(unit, quickest(K, unit.one_graph()), a.best ? Form::MAX : Form::LINEAR);
        }
        if (!load(unit, replica, team)) return false;
        while (found_barred || found_wide) {
            team.wait();
            if (team.rank == 0) {
                if (way == Way::BINARY && !found_barred) choose_if_fits(unit, Way::BINARY, Form::LOGS);
                else choose_if_fits(unit, way == Way::REDUCED && !found_barred ? Way::RATIO : Way::LOGS, form);
            }
            if (!load(unit, replica, team)) return false;
        }
        collect(unit, replica, team);
        if (multiplying) multiply_if_near(unit, team);
        return true;
    }
    void release_all_but_messages() {
        tables.release(), totals.release(), base.release(), spans.release();
        return_freed(a.edges);
    }
    // Node potentials in rows, and the totals that the first sweep starts from.
    void collect(const Unit& unit, int64_t replica, const Team& team) {
        for_tiles(unit, team, [&](int round, int tile, Tile range, int64_t) {
            if (round == 0) {
                load_rows(unit, replica, tile);
                for (int64_t row = unit.group_rows[tile]; row < unit.group_rows[tile + 1]; ++row) {
                    std::copy_n(base.get() + row * (s.stride / 2), s.stride / 2, new_totals(row));
                    if (multiplying) reach(row) = potential_span(new_totals(row));
                }
            }
            for (int64_t b = range.first; b < range.last; ++b) {
                collect_block(b);
                if (multiplying) add_spans(b);
            }
        });
        for_hubs(unit, team, [&](const Hub& hub, double* sums) {
            load_row(unit, replica, hub.row);
            const R* potentials = base.get() + hub.row * (s.stride / 2);
            std::copy_n(potentials, message_numbers(way), sums);
            if (way == Way::BINARY || way == Way::REDUCED) add_biases_to_hub(s, hub, sums);
            for (int k = 0; k < message_numbers(way); ++k) base.get()[hub.row * (s.stride / 2) + k] = R(sums[k]);
            if (a.start || way == Way::LOGS) sum_hub(hub, sums);
        });
    }
    // Visit this thread's hubs, with their row of `hub_base`, and wait for the others.
    template <class Visit> void for_hubs(const Unit& unit, const Team& team, Visit visit) {
        for (size_t h = team.rank; h < unit.hubs.size(); h += team.size)
            visit(unit.hubs[h], Base::hub_base.data() + h * K);
        if (!unit.hubs.empty()) team.wait();
    }
    // The new totals of a hub, in double precision until they are complete.
    void sum_hub(const Hub& hub, const double* sums) {
        for (int k = 0; k < message_numbers(way); ++k) {
            const double sum = sum_to_hub<R>(hub, [&](int64_t block, int side) {
                const Lanes<R> value = finite<R>(log_message(block, side, k));
                return a.appearance ? value * ::load(weights.get() + block * W) : value;
            });
            new_totals(hub.row)[k] = R(sums[k] + sum);
        }
    }

    // ---- products

    // Bound on the difference between the totals of a node's states, in logs; stored in the place of old totals.
    R& reach(int64_t row) { return totals.get()[row * s.stride]; }
    R potential_span(const R* logs) const {
        R span = std::abs(logs[K - 1]);  // not 0 only if it was -inf
        for (int k = 0; k < K - 1; ++k) span = std::max(span, std::abs(logs[k]));
        return span;
    }
    void add_spans(int64_t block) {
        for (int side = 0; side < 2; ++side) {
            const int32_t* ends = (side == 0 ? s.target : s.source) + block * W;
            for (int l = 0; l < W; ++l) reach(ends[l]) += R(spans.get()[block * W + l]) / 4;
        }
    }
    // Convert totals and potentials to products, if none can overflow.
    void multiply_if_near(const Unit& unit, const Team& team) {
        const int64_t first = team.begin(unit.rows()), last = team.end(unit.rows());
        for (int64_t row = first; row < last; ++row)
            if (!(reach(row) <= FAR<R>)) found_far = true;
        team.wait();
        if (found_far) return;
        if (team.rank == 0) form = Form::PRODUCT;
        const auto exps = [](Lanes<R> x) { return exp_positive(x); };
        replace(base.get() + first * padded, (last - first) * padded, exps);
        replace(totals.get() + first * s.stride, (last - first) * s.stride, exps);
        team.wait();
    }
    template <class F> static void replace(R* numbers, int64_t count, F by) {
        for (; count >= W; numbers += W, count -= W) store(numbers, by(::load(numbers)));
        alignas(64) R rest[W] = {};
        std::copy_n(numbers, count, rest);
        store(rest, by(::load(rest)));
        std::copy_n(rest, count, numbers);
    }

    // ---- potentials and messages to start from

    void load_rows(const Unit& unit, int64_t replica, int group) {
        for (int64_t row = unit.group_rows[group]; row < unit.group_rows[group + 1]; ++row)
            load_row(unit, replica, row);
    }
    void load_row(const Unit& unit, int64_t replica, int64_t row) {
        const int64_t width = s.stride / 2;
        const int32_t node = plan.row_node[unit.first_row + row];
        R* to = base.get() + row * width;
        std::fill_n(to, width, R(0));
        if (way == Way::REDUCED || way == Way::RATIO) std::fill_n(to + K, padded - K, UNUSED<R>);
        if (node < 0) return;
        const R* from = static_cast<const R*>(a.node) + (replica * a.nodes + node) * K;
        if (way == Way::BINARY) {
            *to = from[1] - from[0];
            if (std::isnan(*to)) note_barred_node(unit, node);
            return;
        }
        bool possible = false;
        const R level = multiplying && from[K - 1] > -INF<R> ? from[K - 1] : R(0);
        for (int k = 0; k < K; ++k) {
            const bool out = from[k] == -INF<R>;
            possible |= !out;
            to[k] = way == Way::LOGS && out ? R(0) : from[k] - level;
            if (way == Way::LOGS) to[padded + k] = out;
        }
        if (!possible) note_barred_node(unit, node);
    }
    // A node without any possible state cannot send: report the first arc that leaves it.
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
        const bool silent = !a.start && way != Way::LOGS;  // messages and biases together add nothing
        if (way == Way::BINARY || way == Way::REDUCED) add_biases(block, silent);
        if (!silent) hear_block(block);
    }
    void add_biases(int64_t block, bool silent) {
        alignas(64) R biased[2 * MAX_REDUCED * W];
        if (way == Way::BINARY) std::copy_n(biases.get() + block * 2 * W, 2 * W, biased);
        else if (!silent) find_biases(s, block, biased);
        for (int side = 0; side < 2; ++side) {
            const int32_t* ends = (side == 0 ? s.target : s.source) + block * W;
            for (int k = 0; k < K - 1; ++k) {
                Lanes<R> bias = ::load(biased + (side * (K - 1) + k) * W);
                // Without messages to start from, a message is minus its bias, so it need not be read again.
                if (way == Way::REDUCED && silent) bias = -log_message(block, side, k);
                if (a.appearance) bias *= ::load(weights.get() + block * W);
                for (int l = 0; l < W; ++l) {
                    base.get()[ends[l] * (s.stride / 2) + k] += bias[l];
                    if (!silent) new_totals(ends[l])[k] += bias[l];
                }
            }
        }
    }
    Lanes<R> log_message(int64_t block, int side, int k) const {
        const Lanes<R> value = ::load(messages.get() + ((block * 2 + side) * message_numbers(way) + k) * W);
        return way != Way::LOGS && form == Form::LINEAR ? log(value) : value;
    }
    // Add the messages of a block to the new totals.
    void hear_block(int64_t block) {
        for (int side = 0; side < 2; ++side) {
            const int32_t* ends = (side == 0 ? s.target : s.source) + block * W;
            for (int k = 0; k < message_numbers(way); ++k) {
                Lanes<R> value = log_message(block, side, k);
                const Mask<R> out = value == -INF<R>;
                value = finite<R>(value);
                if (a.appearance) value *= ::load(weights.get() + block * W);
                for (int l = 0; l < W; ++l) {
                    new_totals(ends[l])[k] += value[l];
                    if (way == Way::LOGS && out[l]) new_totals(ends[l])[padded + k] += 1;
                }
            }
        }
    }
    // Node beliefs, up to a constant for each node. Nodes without edges have no row: their output is their potentials.
    void write_totals(const Unit& unit, int64_t replica, const Team& team) {
        if (!unit.one_graph()) {  // graphs that converged earlier added nothing in the last sweep
            if (form == Form::PRODUCT) {
                form = Form::LINEAR;
                replace(base.get(), unit.rows() * padded, [](Lanes<R> x) { return log(x); });
            }
            for (int64_t row = 0; row < unit.rows(); ++row)
                std::copy_n(base.get() + row * (s.stride / 2), s.stride / 2, new_totals(row));
            for (int64_t b = 0; b < unit.blocks(); ++b) hear_block(b);
        }
        R* out = static_cast<R*>(a.totals) + replica * a.nodes * K;
        const int64_t first = team.begin(unit.rows()), last = team.end(unit.rows());
        if (form == Form::PRODUCT)
            replace(totals.get() + first * s.stride, (last - first) * s.stride, [](Lanes<R> x) { return log(x); });
        for (int64_t row = first; row < last; ++row) {
            const int32_t node = plan.row_node[unit.first_row + row];
            if (node < 0) continue;
            const R* sum = new_totals(row);
            R* to = out + int64_t(node) * K;
            if (way == Way::BINARY) {
                to[0] = std::min(-*sum, R(0)), to[1] = std::min(*sum, R(0));  // never +inf, even if the sum is
                continue;
            }
            for (int k = 0; k < K; ++k) to[k] = way == Way::LOGS && sum[padded + k] > 0 ? -INF<R> : sum[k];
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
        mine.residual_step = 0, mine.scratch = Base::scratch_of(team.rank);
        int64_t tiles = 0, done = 0;
        for (const auto& round : unit.rounds) tiles += int64_t(round.size());
        R moved = INF<R>;
        while (done < a.max_sweeps && stuck[2] < 0) {
            const int parity = int(done % 2);
            R* rows = residual.get() + parity * tiles * W;
            mine.stuck = &stuck[parity];
            // Before the last sweep it matters only whether any message changes by more than the tolerance. The exact
            // change is reported only for the last sweep.
            mine.enough = done + 1 < a.max_sweeps ? R(a.tolerance) : INF<R>;
            for_tiles(unit, team, [&](int round, int tile, Tile range, int64_t number) {
                if (round == 0) advance_group(kernel, unit, tile);
                mine.residual = rows + number * W;
                store(mine.residual, Lanes<R>{});
                kernel.sweep(mine, range.first, range.last);
            });
            if (form != Form::PRODUCT)  // which has small totals only
                for_hubs(unit, team, [&](const Hub& hub, const double* sums) { sum_hub(hub, sums); });
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
        counts.assign(graphs, -1);  // -1: not yet converged
        for (int64_t g = 0; g < graphs; ++g) report(replica, names[g], INF<R>, 0);
        int64_t moving = graphs;
        s.residual = residual.get(), s.residual_step = W, s.stuck = &stuck[0];
        for (int64_t done = 1; done <= a.max_sweeps && moving > 0 && std::max(stuck[0], stuck[2]) < 0; ++done) {
            // As with one graph: the exact change is reported only for a graph's final sweep.
            s.enough = done < a.max_sweeps ? R(a.tolerance) : INF<R>;
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
};
