// One synchronous sweep over blocks of edges: both messages of every edge, from the totals of the sweep before.
//
// A block has as many edges as a register has lanes (16 floats or 8 doubles with AVX-512), one in each lane. It reads
// the old totals of its end nodes, replaces its messages in place, and adds them to the new totals, so one pass over
// the tables does a whole sweep.
//
//   table    [states * states][lanes]   see `entry`; exp(potential - max), or logs if those would underflow
//   messages [2][states][lanes]         normalised logs; 0 runs source -> target, 1 target -> source
//   totals   [rows][2][padded]          old and new next to each other: one cache line for small problems
#pragma once
#include "simd.hpp"

constexpr int ON_STACK = 64;  // states; with more, a block's cavities and messages are kept in `scratch`
constexpr int CHUNK = 8;  // columns of a table processed at a time; their sums and inputs take 16 of 32 registers

// Largest span of a table for which exp(potential - max) is used. For any cavities, the best source state alone then
// gives every sum at least exp(-span), and terms that underflow are smaller than float rounding.
template <class R> constexpr R WIDEST = sizeof(R) == 4 ? R(60) : R(600);
// Forbidden pairs break that argument: sums below this are recomputed in log space.
template <class R> constexpr R SMALLEST = sizeof(R) == 4 ? R(1e-20) : R(1e-250);
// Largest span of a table that is kept as ratios, whose exp is finite with room to spare.
template <class R> constexpr R NARROW = sizeof(R) == 4 ? R(30) : R(300);
template <class R> INLINE R exp_or_infinite(R x) { return x > 2 * NARROW<R> ? INF<R> : exp_positive(splat(x))[0]; }

template <class R> struct Sweep {
    int states;
    int padded;              // numbers in a row of totals
    int64_t stride;          // from one row of totals to the next
    const int32_t* source;   // [blocks][lanes]: rows of totals
    const int32_t* target;
    R* tables;
    R* messages;
    R* totals;
    const R* weights;        // [blocks][lanes]: appearance probabilities; null if all are 1
    const R* biases;         // [blocks][2][lanes]: two states only
    const R* potentials;     // [edges][states][states] of the input, from which biases of more states are read
    const int32_t* edges;    // [blocks][lanes]: edges of the input, -1 in empty lanes
    const uint8_t* in_logs;  // [blocks]: tables held as logs
    const uint32_t* live;    // [blocks]: lanes that may change
    R* residual;             // [blocks or 1][lanes]: largest change of a log-message so far, relative: see `relative_to`
    int64_t residual_step;   // 0: one row for all blocks
    R enough;                // a larger change need not be exact: any number above this may be reported
    R widest;                // what changes are relative to is at most this
    R damping;
    int64_t* stuck;          // set to a lane whose message has no possible state
    bool prefetch;           // totals do not fit in the core's own cache
    R* scratch;              // [SCRATCH_ROWS][room][lanes]: of this thread
    int room;                // states, rounded up to whole vectors
};
constexpr int SCRATCH_ROWS = 8;

// Numbers for every state of a block's edges: on the stack if their count is known, otherwise row `n` of the scratch.
template <class R, int ROOM> struct Row {
    Lanes<R> values[ROOM];
    INLINE Row(const Sweep<R>&, int) {}
    INLINE operator Lanes<R>*() { return values; }
};
template <class R> struct Row<R, 0> {
    Lanes<R>* values;
    INLINE Row(const Sweep<R>& s, int n) : values((Lanes<R>*)s.scratch + int64_t(n) * s.room) {}
    INLINE operator Lanes<R>*() { return values; }
};

// A change of a log-message is divided by its largest magnitude, but at least by 1.
template <class R> INLINE Lanes<R> relative_to(Lanes<R> size) { return larger<R>(size, splat(R(1))); }

// Position of entry (i, j) in a block's table, which is stored by chunks of columns, in the order of reading.
INLINE int64_t entry(int states, int i, int j) {
    int chunk = j / CHUNK * CHUNK, width = states - chunk < CHUNK ? states - chunk : CHUNK;
    return int64_t(chunk) * states + i * width + (j - chunk);
}

constexpr int pad(int states) { return states <= 1 ? 1 : 2 * pad((states + 1) / 2); }  // next power of two

// ---- totals -------------------------------------------------------------------------------------------------------

// Rows of one end of a block's edges. P: numbers in half a row if known when compiled, which saves multiplications.
template <class R, int P> INLINE void find_rows(const int32_t* rows, int64_t stride, uint32_t* places) {
    const uint32_t step = uint32_t((P > 0 ? 2 * P : stride) * sizeof(R) / 8);
    store(places, load_as<Places<R>>((const uint32_t*)rows) * step);
}
template <class R, int P>
INLINE void gather_totals(const R* totals, int padded, const uint32_t* places, Lanes<R>* out) {
    constexpr int W = WIDTH<R>;
    if constexpr (P > 0 && P <= W) gather<R, P>(totals, places, out);
    else
        for (int k = 0; k < padded; k += W) gather<R, W>(totals + k, places, out + k);
}

// Add to whole rows, or multiply them; a row may be named more than once. Overwrites the columns.
template <class R, bool MULTIPLY = false>
INLINE void add_totals(R* totals, int count, const uint32_t* places, Lanes<R>* columns) {
    constexpr int W = WIDTH<R>;
    for (int k = 0; k < count; k += W) {
        transpose<R, W>(columns + k);
#pragma GCC unroll 16
        for (int l = 0; l < W; ++l) {
            R* to = row_at(totals + k, places[l]);
            store(to, MULTIPLY ? load(to) * columns[k + l] : load(to) + columns[k + l]);
        }
    }
}

// How many blocks ahead the rows of targets are prefetched: enough to hide memory latency, few enough not to be evicted
// again. If totals do not fit in a core's own cache, sources are sorted and need no prefetch.
constexpr int AHEAD = 6;
template <class R> INLINE void prefetch_totals(const Sweep<R>& s, int64_t block, int64_t last) {
    if (!s.prefetch || block + AHEAD >= last) return;
    const int64_t lines = s.stride * int64_t(sizeof(R));
    const int32_t* rows = s.target + (block + AHEAD) * WIDTH<R>;
    for (int l = 0; l < WIDTH<R>; ++l)
        for (int64_t line = 0; line < lines; line += 64)
            __builtin_prefetch((const char*)(s.totals + rows[l] * s.stride) + line, 1);
}

// ---- sums over states ---------------------------------------------------------------------------------------------

// Process one chunk of a table in both directions: sums over i go to `forward`, sums over j to `backward`.
template <class R, bool MAX, int C>
INLINE void chunk_pass(int states, bool first, const R* table, const Lanes<R>* near, const Lanes<R>* far,
                       Lanes<R>* forward, Lanes<R>* backward) {
    constexpr int W = WIDTH<R>;
    Lanes<R> sum[C], other[C];
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) sum[c] = MAX ? splat(-INF<R>) : Lanes<R>{}, other[c] = far[c];
#pragma GCC unroll 8
    for (int i = 0; i < states; ++i) {
        Lanes<R> mine = near[i], back = first ? (MAX ? splat(-INF<R>) : Lanes<R>{}) : backward[i];
#pragma GCC unroll 8
        for (int c = 0; c < C; ++c) {
            Lanes<R> value = load(table + (i * C + c) * W);
            // Prefetch the same entry of the next block, which is far enough ahead for large tables.
            if (states > CHUNK) __builtin_prefetch(table + (i * C + c) * W + int64_t(states) * states * W, 0, 2);
            if constexpr (MAX) {
                sum[c] = larger<R>(sum[c], value + mine);
                back = larger<R>(back, value + other[c]);
            } else {
                sum[c] += value * mine;
                back += value * other[c];
            }
        }
        backward[i] = back;
    }
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) forward[c] = sum[c];
}

template <class R, int K, bool MAX>
INLINE void table_pass(int states, const R* table, const Lanes<R>* near, const Lanes<R>* far, Lanes<R>* forward,
                       Lanes<R>* backward) {
    if constexpr (K > 0) {
        chunk_pass<R, MAX, K>(K, true, table, near, far, forward, backward);
    } else {
        for (int j = 0; j < states; j += CHUNK) {
            const R* part = table + int64_t(j) * states * WIDTH<R>;
            switch (states - j) {
#define REST(C) case C: chunk_pass<R, MAX, C>(states, j == 0, part, near, far + j, forward + j, backward); break;
                REST(1) REST(2) REST(3) REST(4) REST(5) REST(6) REST(7)
#undef REST
                default: chunk_pass<R, MAX, CHUNK>(states, j == 0, part, near, far + j, forward + j, backward);
            }
        }
    }
}

// log sum_i exp(potential + cavity) in log space: for tables of wide span, and to distinguish a sum that underflowed
// from one that is zero. Slow and rarely used. `near` and `far` are log-cavities here.
template <class R, bool LINEAR>
__attribute__((noinline)) void log_pass(int states, const R* table, const R* near, const R* far, R* forward,
                                        R* backward) {
    constexpr int W = WIDTH<R>;
    for (int direction = 0; direction < 2; ++direction) {
        const R* cavity = direction == 0 ? near : far;
        R* out = direction == 0 ? forward : backward;
        for (int j = 0; j < states; ++j) {
            auto term = [&](int i) {
                Lanes<R> value = load(table + (direction == 0 ? entry(states, i, j) : entry(states, j, i)) * W);
                if constexpr (LINEAR) value = log_or_barred<R>(value);
                return value + load(cavity + i * W);
            };
            Lanes<R> best = splat(-INF<R>), sum{};
            for (int i = 0; i < states; ++i) best = larger<R>(best, term(i));
            Lanes<R> level = best == -INF<R> ? Lanes<R>{} : best;
            for (int i = 0; i < states; ++i) sum += exp<R>(term(i) - level);
            store(out + j * W, level + log_or_barred<R>(sum));
        }
    }
}

template <class R> INLINE Lanes<R> largest(const Lanes<R>* values, int states) {
    Lanes<R> best = values[0];
    for (int k = 1; k < states; ++k) best = larger<R>(best, values[k]);
    return best;
}
template <class R> INLINE Lanes<R> finite(Lanes<R> level) { return level == -INF<R> ? Lanes<R>{} : level; }

// Log-messages that sum to one, or whose best state is 0.
template <class R, bool MAX> INLINE void normalise(int states, Lanes<R>* values) {
    Lanes<R> level = finite<R>(largest<R>(values, states));
    if constexpr (!MAX) {
        Lanes<R> sum{};
        for (int k = 0; k < states; ++k) sum += exp<R>(values[k] - level);
        level += log(larger<R>(sum, splat(std::numeric_limits<R>::min())));
    }
    for (int k = 0; k < states; ++k) values[k] -= level;
}

// Record a lane without a possible state; the lowest one, so that the error does not depend on the order of threads.
template <class R>
__attribute__((noinline)) void report_stuck(const Sweep<R>& s, int64_t block, int side, Lanes<R> possible) {
    for (int l = 0; l < WIDTH<R>; ++l) {
        if (possible[l] != -INF<R>) continue;
        const int64_t lane = (block * WIDTH<R> + l) * 2 + side;
        int64_t seen = __atomic_load_n(s.stuck, __ATOMIC_RELAXED);
        while ((seen < 0 || lane < seen) &&
               !__atomic_compare_exchange_n(s.stuck, &seen, lane, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
        return;
    }
}

// ---- the sweep ----------------------------------------------------------------------------------------------------

// The sweep in logs, for tables of wide span or with forbidden pairs, where messages may be -inf. Totals have a second
// row that counts infinities, since -inf cannot be subtracted from a sum again. Other problems use ratio.hpp and
// binary.hpp, which are several times faster.
template <class R, bool MAX, int ROOM> void sweep_logs(const Sweep<R>& s, int64_t first, int64_t last) {
    constexpr int W = WIDTH<R>;
    const int states = s.states, padded = s.padded;
    R* new_totals = s.totals + s.stride / 2;
    for (int64_t block = first; block < last; ++block) {
        const uint32_t live = s.live[block];
        if (!live) continue;
        prefetch_totals(s, block, last);
        const int32_t* ends[2] = {s.target + block * W, s.source + block * W};
        R* messages = s.messages + block * 2 * states * W;
        const R* table = s.tables + block * states * states * W;

        // Cavity: remove the other end's own message, or its evidence would return to it. cavity[0] is the source's.
        Row<R, ROOM> cavity[2] = {{s, 0}, {s, 1}}, said[2] = {{s, 2}, {s, 3}};
        alignas(64) uint32_t places[2][W];
        for (int side = 0; side < 2; ++side) find_rows<R, 0>(ends[side], s.stride, places[side]);
        for (int side = 0; side < 2; ++side) {
            const R* heard = messages + (1 - side) * states * W;
            Row<R, ROOM> barred(s, 4);
            gather_totals<R, 0>(s.totals, padded, places[1 - side], cavity[side]);
            gather_totals<R, 0>(s.totals + padded, padded, places[1 - side], barred);
            for (int k = 0; k < states; ++k) {
                Lanes<R> value = load(heard + k * W);
                Lanes<R> count = barred[k] - (value == -INF<R> ? splat(R(1)) : Lanes<R>{});
                cavity[side][k] = count > R(0.5) ? splat(-INF<R>) : cavity[side][k] - finite<R>(value);
            }
        }

        bool in_logs = MAX;
        if constexpr (!MAX) {
            R* logs[4] = {(R*)+cavity[0], (R*)+cavity[1], (R*)+said[0], (R*)+said[1]};
            in_logs = s.in_logs[block];
            if (in_logs) {
                log_pass<R, false>(states, table, logs[0], logs[1], logs[2], logs[3]);
            } else {
                Row<R, ROOM> inputs[2] = {{s, 5}, {s, 6}};
                for (int side = 0; side < 2; ++side) {
                    const Lanes<R> level = finite<R>(largest<R>(cavity[side], states));
                    for (int k = 0; k < states; ++k) inputs[side][k] = exp_positive(cavity[side][k] - level);
                }
                table_pass<R, 0, false>(states, table, inputs[0], inputs[1], said[0], said[1]);
                Mask<R> tiny{};
                for (int side = 0; side < 2; ++side)
                    for (int k = 0; k < states; ++k) tiny |= said[side][k] < SMALLEST<R>;
                in_logs = any<R>(tiny);
                if (in_logs)
                    log_pass<R, true>(states, table, logs[0], logs[1], logs[2], logs[3]);
            }
        } else {
            table_pass<R, 0, true>(states, table, cavity[0], cavity[1], said[0], said[1]);
        }

        for (int side = 0; side < 2; ++side) {
            if (in_logs) {
                normalise<R, MAX>(states, said[side]);
                continue;
            }
            Lanes<R> sum = said[side][0];
            for (int k = 1; k < states; ++k) sum += said[side][k];
            const Lanes<R> scale = R(1) / sum;
            for (int k = 0; k < states; ++k) said[side][k] = log_or_barred<R>(said[side][k] * scale);
        }
        if (s.damping != 0) {
            for (int side = 0; side < 2; ++side) {
                for (int k = 0; k < states; ++k) {
                    const Lanes<R> before = load(messages + (side * states + k) * W);
                    said[side][k] = s.damping * before + (1 - s.damping) * said[side][k];
                }
                normalise<R, MAX>(states, said[side]);
            }
        }
        if (live != ALL_LANES<R>) {
            const Mask<R> change = lanes_of<R>(live);
            for (int side = 0; side < 2; ++side)
                for (int k = 0; k < states; ++k)
                    said[side][k] = change ? said[side][k] : load(messages + (side * states + k) * W);
        }

        Lanes<R> moved{};
        for (int side = 0; side < 2; ++side) {
            Lanes<R>* fresh = said[side];
            R* kept = messages + side * states * W;
            Lanes<R> possible = splat(-INF<R>), most{}, size{};
            for (int k = 0; k < states; ++k) {
                Lanes<R> before = load(kept + k * W);
                Lanes<R> step = magnitude<R>(fresh[k] - before);
                step = (before == -INF<R>) & (fresh[k] == -INF<R>) ? Lanes<R>{} : step;
                possible = larger<R>(possible, fresh[k]);
                most = larger<R>(most, step);
                size = larger<R>(size, magnitude<R>(finite<R>(fresh[k])));
                store(kept + k * W, fresh[k]);
            }
            moved = larger<R>(moved, most / relative_to<R>(size));
            if (any<R>(possible == -INF<R>)) report_stuck(s, block, side, possible);

            const Lanes<R> weight = s.weights ? load(s.weights + block * W) : splat(R(1));
            Row<R, ROOM> infinities(s, 7);
            for (int k = 0; k < padded; ++k) {
                const bool used = k < states;
                infinities[k] = used ? (fresh[k] == -INF<R> ? splat(R(1)) : Lanes<R>{}) : Lanes<R>{};
                fresh[k] = used ? weight * finite<R>(fresh[k]) : Lanes<R>{};
            }
            add_totals<R>(new_totals, padded, places[side], fresh);
            add_totals<R>(new_totals + padded, padded, places[side], infinities);
        }
        R* residual = s.residual + block * s.residual_step;
        store(residual, larger<R>(load(residual), moved));
    }
}
