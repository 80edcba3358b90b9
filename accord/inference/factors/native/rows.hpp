// All messages of one factor, in one pass over its table, with vectors along the table's last axis.
//
// Seen as a matrix, a table has a row for each choice of states of all variables but the last. One pass multiplies it
// by the last variable's cavity, which leaves a table over the other variables, and by the product of the other
// cavities, which gives the last variable's message. The rest is the same for a table of one variable less.
#pragma once
#include "logs.hpp"
#include "tables.hpp"

// column = weights . T and row = T . cavity, in whole vectors: numbers of `cavity` beyond `cols` are NOTHING.
template <class R, bool MAX>
void multiply(const R* table, int64_t rows, int cols, const R* weights, const R* cavity, R* column, R* row) {
    constexpr int W = WIDTH<R>;
    constexpr int TOGETHER = 4;  // rows: each vector of `column` and `cavity` is loaded once for all of them
    const Lanes<R> none = splat(NOTHING<R, MAX>);
    for (int c = 0; c < cols; c += W) store(column + c, none);
    int64_t r = 0;
    for (; r + TOGETHER <= rows; r += TOGETHER) {
        const R* at = table + r * cols;
        Lanes<R> sum[TOGETHER], weight[TOGETHER];
        for (int i = 0; i < TOGETHER; ++i) sum[i] = none, weight[i] = splat(weights[r + i]);
        for (int c = 0; c < cols; c += W) {
            const Lanes<R> other = load(cavity + c);
            Lanes<R> total = load(column + c);
            for (int i = 0; i < TOGETHER; ++i) {
                const Lanes<R> values = load(at + int64_t(i) * cols + c);
                total = gather_term<R, MAX>(total, values, weight[i]);
                sum[i] = gather_term<R, MAX>(sum[i], values, other);
            }
            store(column + c, total);
        }
        for (int i = 0; i < TOGETHER; ++i) row[r + i] = MAX ? reduce_max<R>(sum[i]) : reduce_sum<R>(sum[i]);
    }
    for (; r < rows; ++r) {
        const R* at = table + r * cols;
        Lanes<R> sum = none;
        const Lanes<R> weight = splat(weights[r]);
        for (int c = 0; c < cols; c += W) {
            const Lanes<R> values = load(at + c);
            store(column + c, gather_term<R, MAX>(load(column + c), values, weight));
            sum = gather_term<R, MAX>(sum, values, load(cavity + c));
        }
        row[r] = MAX ? reduce_max<R>(sum) : reduce_sum<R>(sum);
    }
}

// cavity <- exp(cavity - largest), and what the smallest finite one was, relative to the largest. In logs: unchanged.
template <class R, bool MAX> R exponentiate(R* cavity, int count) {
    constexpr int W = WIDTH<R>;
    for (int64_t x = count; x < padded<R>(count); ++x) cavity[x] = -INF<R>;
    if (MAX) return 0;
    Lanes<R> most = splat(-INF<R>), least = splat(INF<R>);
    for (int x = 0; x < count; x += W) {
        const Lanes<R> values = load(cavity + x);
        most = larger<R>(most, values);
        least = smaller<R>(least, values == -INF<R> ? splat(INF<R>) : values);
    }
    R best = reduce_max<R>(most), worst = -reduce_max<R>(-least);
    if (best == -INF<R>) best = worst = 0;
    for (int x = 0; x < count; x += W) store(cavity + x, exp<R>(load(cavity + x) - best));
    return best - worst;
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

// Unnormalised messages to all variables of a factor, from its table and the cavities.
template <class R, bool MAX> void contract(const R* table, int order, Scratch<R>& s) {
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
