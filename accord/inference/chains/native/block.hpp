// A block of chains, one in each lane: reading potentials and tables, and writing results.
#pragma once
#include "messages.hpp"
#include "team.hpp"

// Mirrored by `_Arguments` in ../_native.py. Strides count numbers, not bytes.
struct Arguments {
    int64_t replicas, chains, length, states;
    const void *node, *edge, *start, *end;
    const int64_t* lengths;  // [chains], null if all are full
    int64_t node_replica, node_chain;  // [length, states] of a chain lie together
    int64_t edge_replica, edge_chain, edge_step;  // [states, states] lie together
    int64_t start_replica, start_chain, end_replica, end_chain;
    int64_t own, best, threads;  // own: every chain and step has its table; else chains share them
    void* messages;  // of the forward pass: [items, length, states, lanes]
    int8_t* domain;  // [items], of those messages
    int64_t* order;  // [chains], sorted by length
    void* log_partition;  // [replicas, chains]
    const void* weight;  // [replicas, chains]; null asks for logs of beliefs
    void *node_result, *edge_result;  // edge_result is null, [tables, states, states], or of every chain and step
    void *behind, *ahead;  // null, or [replicas, chains, length, states]: logs of both messages
    int64_t* labels;  // [replicas, chains, length]
};

template <class R> struct Block {
    static constexpr int W = WIDTH<R>;
    const Arguments& given;
    int64_t replica, longest = 1;
    int used = 0;  // lanes; the others repeat the first chain, and nothing is written from them
    int64_t chain[W], size[W];
    Mask<R> sizes;

    Block(const Arguments& given, int64_t item) : given(given) {
        const int64_t per_replica = (given.chains + W - 1) / W, first = item % per_replica * W;
        replica = item / per_replica;
        used = int(std::min<int64_t>(W, given.chains - first));
        for (int l = 0; l < W; ++l) {
            const int64_t place = first + (l < used ? l : 0);
            chain[l] = given.lengths ? given.order[place] : place;
            size[l] = given.lengths ? given.lengths[chain[l]] : given.length;
            sizes[l] = size[l];
            longest = std::max(longest, size[l]);
        }
    }
    static int64_t items(const Arguments& given) { return given.replicas * ((given.chains + W - 1) / W); }

    Mask<R> lasts_beyond(int64_t position) const { return sizes > typename IntegerOf<R>::type(position); }

    // Potentials [longest * states] with those of start and end, in logs.
    void read_node(Lanes<R>* to) const {
        const R* rows[W];
        const int64_t states = given.states;
        for (int l = 0; l < W; ++l)
            rows[l] = (const R*)given.node + replica * given.node_replica + chain[l] * given.node_chain;
        read(rows, longest * states, to);
        for (int l = 0; l < W; ++l) {
            if (given.start) {
                const R* first = (const R*)given.start + replica * given.start_replica + chain[l] * given.start_chain;
                for (int64_t k = 0; k < states; ++k) to[k][l] += first[k];
            }
            if (given.end) {
                const R* last = (const R*)given.end + replica * given.end_replica + chain[l] * given.end_chain;
                for (int64_t k = 0; k < states; ++k) to[(size[l] - 1) * states + k][l] += last[k];
            }
        }
    }
    // The table of a lane at a step. Chains that have ended repeat their own last table.
    const R* table(int64_t step, int lane) const {
        const int64_t at = std::max<int64_t>(0, std::min(step, size[lane] - 2));
        return (const R*)given.edge + replica * given.edge_replica + chain[lane] * given.edge_chain +
               at * given.edge_step;
    }
    // Tables [states * states] of all lanes.
    void read_tables(int64_t step, Lanes<R>* to) const {
        const R* rows[W];
        for (int l = 0; l < W; ++l) rows[l] = table(step, l);
        read(rows, given.states * given.states, to);
    }
    // Results [length * states] of each chain; `from` has `longest` positions, the rest is `beyond`.
    void write_node(void* to, Lanes<R>* from, R beyond) const {
        R* rows[W];
        const int64_t whole = given.length * given.states, there = longest * given.states;
        for (int l = 0; l < used; ++l) rows[l] = (R*)to + (replica * given.chains + chain[l]) * whole;
        write(rows, there, from, used);
        for (int l = 0; l < used; ++l) std::fill(rows[l] + there, rows[l] + whole, beyond);
    }
    void write_tables(int64_t step, Lanes<R>* from) const {
        R* rows[W];
        const int64_t table = given.states * given.states, steps = given.length - 1;
        for (int l = 0; l < used; ++l)
            rows[l] = (R*)given.edge_result + ((replica * given.chains + chain[l]) * steps + step) * table;
        write(rows, table, from, used);
    }
    // A number for each lane, 0 in unused ones.
    Lanes<R> read_each(const void* from) const {
        Lanes<R> value{};
        for (int l = 0; l < used; ++l) value[l] = ((const R*)from)[replica * given.chains + chain[l]];
        return value;
    }

  private:
    static void read(const R* const* rows, int64_t count, Lanes<R>* to) {
        Lanes<R> columns[W];
        for (int64_t first = 0; first < count; first += W) {
            const R* here[W];
            for (int l = 0; l < W; ++l) here[l] = rows[l] + first;
            const int some = int(std::min<int64_t>(W, count - first));
            read_columns<R>(here, 0, some, columns);
            for (int k = 0; k < some; ++k) to[first + k] = columns[k];
        }
    }
    static void write(R* const* rows, int64_t count, const Lanes<R>* from, int used) {
        Lanes<R> columns[W];
        for (int64_t first = 0; first < count; first += W) {
            const int some = int(std::min<int64_t>(W, count - first));
            for (int k = 0; k < W; ++k) columns[k] = k < some ? from[first + k] : Lanes<R>{};
            transpose<R, W>(columns);
            for (int l = 0; l < used; ++l) __builtin_memcpy(rows[l] + first, &columns[l], some * sizeof(R));
        }
    }
};
