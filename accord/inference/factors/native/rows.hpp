// All messages of one factor, in one pass over its table, with vectors along the table's last axis.
//
// Seen as a matrix, a table has a row for each choice of states of all variables but the last. One pass multiplies it
// by the last variable's cavity, which leaves a table over the other variables, and by the product of the other
// cavities, which gives the last variable's message. The rest is the same for a table of one variable less.
#pragma once
#include "logs.hpp"
#include "tables.hpp"

// Adds ROWS rows to `column`, each times its weight, and returns their products with the cavity, not yet summed. Each
// vector of `column` and `cavity` is loaded once for all rows.
template <class R, bool MAX, int ROWS>
INLINE void multiply_rows(const R* table, int cols, const R* weights, const R* cavity, R* column, Lanes<R>* sums) {
    constexpr int W = WIDTH<R>;
    Lanes<R> sum[ROWS], weight[ROWS];
    for (int i = 0; i < ROWS; ++i) sum[i] = splat(NOTHING<R, MAX>), weight[i] = splat(weights[i]);
    for (int c = 0; c < cols; c += W) {
        const Lanes<R> other = load(cavity + c);
        Lanes<R> total = load(column + c);
        for (int i = 0; i < ROWS; ++i) {
            const Lanes<R> values = load(table + int64_t(i) * cols + c);
            total = gather_term<R, MAX>(total, values, weight[i]);
            sum[i] = gather_term<R, MAX>(sum[i], values, other);
        }
        store(column + c, total);
    }
    for (int i = 0; i < ROWS; ++i) sums[i] = sum[i];
}

// Sum or largest of each of WIDTH vectors: lane i belongs to vector i. Overwrites them. Each step halves their number.
template <class R, bool MAX, int H = 1> INLINE Lanes<R> fold_each(Lanes<R>* vectors) {
    if constexpr (H == WIDTH<R>) return vectors[0];
    else {
#pragma GCC unroll 16
        for (int i = 0; i < WIDTH<R>; i += 2 * H) {
            swap_bit<R, H>(vectors[i], vectors[i + H], std::make_integer_sequence<int, WIDTH<R>>{});
            vectors[i] = MAX ? larger<R>(vectors[i], vectors[i + H]) : vectors[i] + vectors[i + H];
        }
        return fold_each<R, MAX, 2 * H>(vectors);
    }
}
// Calls products(first, count, sums) for WIDTH rows at a time: the vectors whose numbers add up to each number of `row`.
template <class R, bool MAX, class F> INLINE void sum_rows(int64_t rows, R* row, const F& products) {
    constexpr int W = WIDTH<R>;
    for (int64_t first = 0; first < rows; first += W) {
        Lanes<R> sums[W];
        const int count = int(std::min<int64_t>(W, rows - first));
        products(first, count, sums);
        if (count <= 2) {
            for (int i = 0; i < count; ++i) row[first + i] = fold<R, MAX>(sums[i]);
            continue;
        }
        for (int i = count; i < W; ++i) sums[i] = Lanes<R>{};
        store(row + first, fold_each<R, MAX>(sums));
    }
}
// For rows of few vectors: their sums stay in registers, in two parts where they are so few that each would wait for
// the one before.
template <class R, bool MAX, int VECTORS>
void multiply_narrow(const R* table, int64_t rows, int cols, const R* weights, const R* cavity, R* column, R* row) {
    constexpr int W = WIDTH<R>, PARTS = VECTORS <= 4 ? 2 : 1;
    Lanes<R> others[VECTORS], totals[PARTS][VECTORS];
    for (int j = 0; j < VECTORS; ++j) {
        others[j] = load(cavity + j * W);
        for (int part = 0; part < PARTS; ++part) totals[part][j] = splat(NOTHING<R, MAX>);
    }
    sum_rows<R, MAX>(rows, row, [&](int64_t first, int count, Lanes<R>* sums) {
        const auto add = [&](int i, Lanes<R>* total) {
            const R* at = table + (first + i) * cols;
            const Lanes<R> weight = splat(weights[first + i]);
            Lanes<R> sum = splat(NOTHING<R, MAX>);
#pragma GCC unroll 16
            for (int j = 0; j < VECTORS; ++j) {
                const Lanes<R> values = load(at + j * W);
                total[j] = gather_term<R, MAX>(total[j], values, weight);
                sum = gather_term<R, MAX>(sum, values, others[j]);
            }
            sums[i] = sum;
        };
        int i = 0;
        for (; i + PARTS <= count; i += PARTS)
            for (int part = 0; part < PARTS; ++part) add(i + part, totals[part]);
        for (; i < count; ++i) add(i, totals[0]);
    });
    for (int j = 0; j < VECTORS; ++j) {
        for (int part = 1; part < PARTS; ++part)
            totals[0][j] = MAX ? larger<R>(totals[0][j], totals[part][j]) : totals[0][j] + totals[part][j];
        store(column + j * W, totals[0][j]);
    }
}
// column = weights . T and row = T . cavity, in whole vectors: numbers of `cavity` beyond `cols` are NOTHING. Up to
// WIDTH numbers beyond the end of `row` are overwritten.
template <class R, bool MAX>
void multiply(const R* table, int64_t rows, int cols, const R* weights, const R* cavity, R* column, R* row) {
    constexpr int W = WIDTH<R>, TOGETHER = 4, REGISTERS = W * sizeof(R) == 64 ? 32 : 16;
    const int vectors = int(padded<R>(cols) / W);
    switch (2 * vectors + 4 <= REGISTERS ? vectors : 0) {
#define CASE(N) \
    case N: return multiply_narrow<R, MAX, N>(table, rows, cols, weights, cavity, column, row)
        CASE(1);
        CASE(2);
        CASE(3);
        CASE(4);
        CASE(5);
        CASE(6);
        CASE(11);  // 81 states in double precision
#undef CASE
    }
    for (int c = 0; c < cols; c += W) store(column + c, splat(NOTHING<R, MAX>));
    sum_rows<R, MAX>(rows, row, [&](int64_t first, int count, Lanes<R>* sums) {
        int i = 0;
        for (; i + TOGETHER <= count; i += TOGETHER)
            multiply_rows<R, MAX, TOGETHER>(table + (first + i) * cols, cols, weights + first + i, cavity, column, sums + i);
        for (; i < count; ++i)
            multiply_rows<R, MAX, 1>(table + (first + i) * cols, cols, weights + first + i, cavity, column, sums + i);
    });
}

// cavity <- exp(cavity - largest). Returns the largest minus the smallest finite one if that is wanted. In logs: unchanged.
template <class R, bool MAX> R exponentiate(R* cavity, int count, bool wanted) {
    constexpr int W = WIDTH<R>;
    for (int64_t x = count; x < padded<R>(count); ++x) cavity[x] = -INF<R>;
    if (MAX) return 0;
    Lanes<R> most = splat(-INF<R>), least = splat(INF<R>);
    for (int x = 0; x < count; x += W) most = larger<R>(most, load(cavity + x));
    R best = fold<R, true>(most);
    if (best == -INF<R>) best = 0;
    if (wanted)
        for (int x = 0; x < count; x += W) {
            const Lanes<R> values = load(cavity + x);
            least = smaller<R>(least, values == -INF<R> ? splat(best) : values);
        }
    for (int x = 0; x < count; x += W) store(cavity + x, exp<R>(load(cavity + x) - best));
    return wanted ? best + fold<R, true>(-least) : R(0);
}

// Room for the numbers of one factor at a time.
template <class R> struct Scratch {
    Buffer<R> numbers, weights, rows;
    std::vector<R*> cavity, message, weight;
    std::vector<int> size;
    std::vector<double> exact;
    LogScratch logs;

    void reserve(const Graph& graph) {
        int64_t order = 1, states = 1, plain = 1, products = 1, largest = 1;
        for (int64_t f = 0; f < graph.a.factors; ++f) {
            const int64_t begin = graph.first(f), end = graph.first(f + 1);
            int64_t all = 0, alone = 0;
            for (int64_t s = begin; s < end; ++s) {
                const int64_t here = graph.states(s);
                all += padded<R>(here), alone += here, largest = std::max(largest, here);
                // Products of the variables before s, or after s, one variable more at a time.
                int64_t sum = 0;
                for (int64_t t = begin, product = 1; !graph.is_rule(f) && t < s; ++t) sum += product *= graph.states(t);
                for (int64_t t = s + 1, product = 1; !graph.is_rule(f) && t < end; ++t) sum += product *= graph.states(t);
                products = std::max(products, sum);
            }
            order = std::max(order, end - begin), states = std::max(states, all), plain = std::max(plain, alone);
        }
        const auto zeros = [](Buffer<R>& buffer, int64_t count) { std::fill_n(buffer.reserve(count), count, R(0)); };
        zeros(numbers, 2 * states + WIDTH<R>);
        zeros(weights, products + 4 * WIDTH<R>);
        zeros(rows, 2 * products + 4 * WIDTH<R>);
        cavity.resize(order), message.resize(order), weight.resize(order + 1), size.resize(order);
        exact.resize(largest);
        logs.reserve(order, plain, largest);
    }
    void shape(const Graph& graph, int64_t f) {
        R* next = numbers.get();
        for (int i = 0; i < graph.order(f); ++i) {
            size[i] = graph.states(graph.first(f) + i);
            cavity[i] = next, next += padded<R>(size[i]);
            message[i] = next, next += padded<R>(size[i]);
        }
    }
};

// Unnormalised messages to all variables of a factor, from its table and the cavities; `turned`: see Graph.
template <class R, bool MAX> void contract(const R* table, int order, bool turned, Scratch<R>& s) {
    if (order == 2) {
        const int first = turned, last = 1 - first;
        multiply<R, MAX>(table, s.size[first], s.size[last], s.cavity[first], s.cavity[last], s.message[last],
                         s.message[first]);
        return;
    }
    if (order > 1) {
        // weight[i]: products of the first i cavities.
        s.weight[1] = s.cavity[0];
        R* room = s.weights.get();
        int64_t length = s.size[0];
        for (int i = 1; i + 1 < order; ++i) {
            const R* before = s.weight[i];
            R* to = s.weight[i + 1] = room;
            for (int64_t r = 0; r < length; ++r)
                for (int x = 0; x < s.size[i]; ++x)
                    to[r * s.size[i] + x] = MAX ? before[r] + s.cavity[i][x] : before[r] * s.cavity[i][x];
            length *= s.size[i];
            room += length;
        }
        R *row = s.rows.get(), *other = row + padded<R>(length) + WIDTH<R>;
        for (int i = order - 1; i >= 1; --i) {
            multiply<R, MAX>(table, length, s.size[i], s.weight[i], s.cavity[i], s.message[i], row);
            table = row;
            std::swap(row, other);
            if (i > 1) length /= s.size[i - 1];
        }
    }
    std::copy_n(table, s.size[0], s.message[0]);
}
