// Belief propagation on one process's part of a graph: a problem that stays loaded while other processes are asked for
// the totals of their nodes between sweeps. Called from Python with plain pointers. See
// docs/adr/0025-one-graph-many-processes.md.
//
// Nodes from `own` on are ghosts: they belong to other processes, which send their totals. What is added up for a ghost
// here is not used. Totals travel as [states] logs, up to a constant for each node, or as [2][states] finite parts and
// numbers of infinities, if anything is forbidden anywhere. All ways of storing totals convert to that without rounding.
#include <exception>
#include <system_error>

#include "solver.hpp"

// What Python is told; mirrored in _native.py.
enum Status { DONE, OUT_OF_MEMORY, NO_THREADS, OUT_OF_RANGE };

template <class R> class PartSolver : public Solver<R> {
  public:
    PartSolver(const Arguments& a, const Plan& plan, std::vector<int32_t> row_of)
        : Solver<R>(a, plan), unit(plan.units[0]), row_of(std::move(row_of)) {
        this->only_sums = true;
    }
    // False if memory ran out.
    bool load() {
        std::atomic<bool> good{true};
        with_team([&](const Team& team) {
            if (!this->setup(unit, 0, team)) good = false;
        });
        return good;
    }
    // The arcs between own nodes, or those to and from ghosts; these come second and end the sweep.
    void sweep(bool outer, double enough) {
        const Kernel<R> kernel = this->choose_kernel();
        const size_t begin = outer ? unit.inner_rounds : 0, end = outer ? unit.rounds.size() : unit.inner_rounds;
        const int inner_groups = unit.groups / 2;
        int64_t before = 0;
        for (size_t round = 0; round < begin; ++round) before += int64_t(unit.rounds[round].size());
        with_team([&](const Team& team) {
            Sweep<R> mine = this->s;
            mine.residual_step = 0, mine.scratch = this->scratch_of(team.rank);
            mine.stuck = &this->stuck[0], mine.enough = R(enough);
            int64_t number = before;
            for (size_t round = begin; round < end; ++round) {
                const auto& tiles = unit.rounds[round];
                for (int k = 0; k < int(tiles.size()); ++k, ++number) {
                    mine.residual = this->residual.get() + number * PartSolver::W;
                    if (k % team.size != team.rank) continue;
                    store(mine.residual, Lanes<R>{});
                    if (round == 0 && k >= inner_groups) continue;  // ghosts have no edges among themselves
                    if (round == begin) this->advance_group(kernel, unit, outer ? inner_groups + k : k);
                    kernel.sweep(mine, tiles[k].first - unit.first_block, tiles[k].last - unit.first_block);
                }
                team.wait();
            }
            if (outer) this->for_hubs(unit, team, [&](const Hub& hub, const double* sums) { this->sum_hub(hub, sums); });
        });
    }
    double moved() const {
        Lanes<R> most{};
        int64_t tiles = 0;
        for (const auto& round : unit.rounds) tiles += int64_t(round.size());
        for (int64_t t = 0; t < tiles; ++t) most = larger<R>(most, ::load(this->residual.get() + t * PartSolver::W));
        return double(reduce_max<R>(most));
    }
    int64_t stuck_arc() const {
        const int64_t lane = std::max({this->stuck[0], this->stuck[1], this->stuck[2]});
        if (lane < 0) return -1;
        const int64_t edge = this->plan.edge[unit.first_block * PartSolver::W + lane / 2];
        return lane % 2 ? this->a.edges + edge : edge;
    }
    void read(const int64_t* nodes, int64_t count, R* values, bool counted) {
        const int K = this->K, width = counted ? 2 * K : K;
        for (int64_t n = 0; n < count; ++n) {
            const R* sum = this->new_totals(row_of[nodes[n]]);
            R* to = values + n * width;
            if (this->way == Way::BINARY) to[0] = std::min(-*sum, R(0)), to[1] = std::min(*sum, R(0));
            else std::copy_n(sum, K, to);
            if (!counted) continue;
            for (int k = 0; k < K; ++k) {
                const bool logs = this->way == Way::LOGS, out = !logs && to[k] == -INF<R>;
                to[K + k] = logs ? sum[this->padded + k] : R(out);
                if (out) to[k] = 0;
            }
        }
    }
    void write(int64_t first, int64_t count, const R* values, bool counted) {
        const int K = this->K, width = counted ? 2 * K : K;
        for (int64_t n = 0; n < count; ++n) {
            if (row_of[first + n] < 0) continue;  // a ghost without an edge is not used
            R* sum = this->new_totals(row_of[first + n]);
            const R* from = values + n * width;
            const auto value = [&](int k) { return counted && from[K + k] > 0 ? -INF<R> : from[k]; };
            if (this->way == Way::BINARY) {
                *sum = value(1) - value(0);
            } else {
                const bool logs = this->way == Way::LOGS;
                for (int k = 0; k < K; ++k) sum[k] = logs ? from[k] : value(k);
                for (int k = 0; logs && k < K; ++k) sum[this->padded + k] = counted ? from[K + k] : R(0);
            }
        }
    }
    void write_messages() {
        with_team([&](const Team& team) {
            for (int64_t b = team.begin(unit.blocks()); b < team.end(unit.blocks()); ++b)
                this->write_block(unit, 0, b, team.rank);
        });
    }
    void write_totals() {
        with_team([&](const Team& team) { Solver<R>::write_totals(unit, 0, team); });
    }
    // After that, only messages can be written.
    void end_sweeps() { this->release_all_but_messages(); }

  private:
    const Unit& unit;
    const std::vector<int32_t> row_of;  // [nodes]: row of totals, or -1

    template <class Work> void with_team(const Work& work) {
        const int threads = int(std::max<int64_t>(1, this->a.threads));
        Barrier barrier(threads);
        in_parallel(threads, [&](int rank) { work(Team{rank, threads, threads > 1 ? &barrier : nullptr}); });
    }
};

template <class R> struct Part {
    Arguments a;
    Plan plan;
    std::unique_ptr<PartSolver<R>> solver;
};

// Every edge names existing nodes, of which one at least is not a ghost.
inline bool in_range(const Arguments& a, int64_t own) {
    const uint64_t nodes = a.nodes;
    bool good = true;
    for (int64_t e = 0; e < a.edges; ++e)
        good &= (uint64_t(a.source[e]) < nodes) & (uint64_t(a.target[e]) < nodes) &
                ((a.source[e] < own) | (a.target[e] < own));
    return good;
}

template <class Work> int guarded(const Work& work) try {
    return work();
} catch (const std::system_error&) {
    return NO_THREADS;
} catch (const std::exception&) {
    return OUT_OF_MEMORY;
}

template <class R> int open_part(Arguments& given, int64_t own, void** opened) {
    return guarded([&] {
        if (!in_range(given, own)) return OUT_OF_RANGE;
        auto part = std::make_unique<Part<R>>();
        Arguments& a = part->a = given;
        const int threads = int(std::max<int64_t>(1, a.threads)), K = int(a.states);
        constexpr int64_t each = sizeof(R);
        const int64_t edge_bytes = (K * K + 4 * K) * each;
        const int64_t row_bytes = 2 * Solver<R>::padded_states(K, Solver<R>::quickest(K, true)) * each;
        const Sizes sizes{a.nodes, a.edges, 1, 1, WIDTH<R>, threads, edge_bytes, row_bytes, own};
        part->plan = std::move(Planner(sizes, a.source, a.target, nullptr).plan);
        return_freed(a.edges);
        std::vector<int32_t> row_of(a.nodes, -1);
        for (size_t row = 0; row < part->plan.row_node.size(); ++row)
            if (part->plan.row_node[row] >= 0) row_of[part->plan.row_node[row]] = int32_t(row);
        part->solver = std::make_unique<PartSolver<R>>(a, part->plan, std::move(row_of));
        if (!part->solver->load()) return OUT_OF_MEMORY;
        given.stuck = part->solver->stuck_arc();
        *opened = part.release();
        return DONE;
    });
}

#define ENTRY_POINTS(R, NAME)                                                                                         \
    extern "C" int accord_part_open_##NAME(Arguments* a, int64_t own, void** part) {                                  \
        return open_part<R>(*a, own, part);                                                                           \
    }                                                                                                                 \
    extern "C" int accord_part_sweep_##NAME(void* part, int64_t outer, double enough, double* moved, int64_t* stuck) { \
        return guarded([&] {                                                                                          \
            auto& solver = *static_cast<Part<R>*>(part)->solver;                                                      \
            solver.sweep(outer, enough);                                                                              \
            *moved = solver.moved(), *stuck = solver.stuck_arc();                                                     \
            return DONE;                                                                                              \
        });                                                                                                           \
    }                                                                                                                 \
    extern "C" void accord_part_read_##NAME(void* part, const int64_t* nodes, int64_t count, R* to, int64_t counted) { \
        static_cast<Part<R>*>(part)->solver->read(nodes, count, to, counted);                                         \
    }                                                                                                                 \
    extern "C" void accord_part_write_##NAME(void* part, int64_t first, int64_t count, const R* from, int64_t counted) { \
        static_cast<Part<R>*>(part)->solver->write(first, count, from, counted);                                      \
    }                                                                                                                 \
    extern "C" int accord_part_messages_##NAME(void* part, void* to) {                                                \
        static_cast<Part<R>*>(part)->a.messages = to;                                                                 \
        return guarded([&] { return static_cast<Part<R>*>(part)->solver->write_messages(), DONE; });                  \
    }                                                                                                                 \
    extern "C" int accord_part_totals_##NAME(void* part, void* to) {                                                  \
        static_cast<Part<R>*>(part)->a.totals = to;                                                                   \
        return guarded([&] { return static_cast<Part<R>*>(part)->solver->write_totals(), DONE; });                    \
    }                                                                                                                 \
    extern "C" void accord_part_end_##NAME(void* part) { static_cast<Part<R>*>(part)->solver->end_sweeps(); }         \
    extern "C" void accord_part_close_##NAME(void* part) { delete static_cast<Part<R>*>(part); }

ENTRY_POINTS(float, float32)
ENTRY_POINTS(double, float64)
