// New messages of one factor from the present ones: all of them, or a single one.
#pragma once
#include "rows.hpp"
#include "rules.hpp"

// How far a log-message moves, relative to its largest finite magnitude (at least 1).
template <class R> R change(const R* old, const R* now, int count) {
    constexpr int W = WIDTH<R>;
    Lanes<R> most{}, size = splat(R(1));
    for (int x = 0; x < count; x += W) {
        const Lanes<R> before = load_first(old + x, count - x), after = load_first(now + x, count - x);
        most = larger<R>(most, before == after ? Lanes<R>{} : magnitude<R>(after - before));
        size = larger<R>(size, after == -INF<R> ? Lanes<R>{} : magnitude<R>(after));
    }
    return fold<R, true>(most) / fold<R, true>(size);
}

// Mix an old message into a new one, and normalise.
template <class R> void damp(const R* old, R* now, int count, double damping, bool best) {
    constexpr int W = WIDTH<R>;
    const R share = R(damping), rest = R(1 - damping);
    Lanes<R> most = splat(-INF<R>), sum{};
    each_vector<R>(count, [&](int x, auto inside) {
        const Lanes<R> mixed = share * load_first(old + x, count - x) + rest * load_first(now + x, count - x);
        store_first<R>(now + x, mixed, count - x);
        most = larger<R>(most, keep<R>(mixed, inside, -INF<R>));
    });
    R level = fold<R, true>(most);
    if (!best) {
        each_vector<R>(count, [&](int x, auto inside) {
            sum += keep<R>(exp<R>(load_first(now + x, count - x) - level), inside, R(0));
        });
        level += R(std::log(fold<R, false>(sum)));
    }
    for (int x = 0; x < count; x += W) store_first<R>(now + x, load_first(now + x, count - x) - level, count - x);
}

template <class R, bool MAX> struct Engine {
    const State<R>& state;
    const Tables<R>& tables;
    const Graph& graph;
    Scratch<R> scratch;
    RuleScratch rules;
    std::vector<double> entered;
    int64_t stuck = -1;

    Engine(const State<R>& state, const Tables<R>& tables) : state(state), tables(tables), graph(state.graph) {
        scratch.reserve(graph);
        rules.reserve(graph);
        entered.reserve(rules.cavity.size());
    }

    // Normalised logs of an unnormalised message; `safe`: a 0 means that a state is impossible. False if none is left.
    bool finish(int64_t f, int i, bool safe) {
        constexpr int W = WIDTH<R>;
        R* m = scratch.message[i];
        const int count = scratch.size[i];
        for (int64_t x = count; x < padded<R>(count); ++x) m[x] = NOTHING<R, MAX>;
        Lanes<R> all = splat(NOTHING<R, MAX>);
        bool small = false;
        for (int x = 0; x < count; x += W) {
            const Lanes<R> values = load(m + x);
            all = MAX ? larger<R>(all, values) : all + values;
            if (!MAX && !safe)
                for (int l = 0; l < W && x + l < count; ++l) small |= values[l] < SAFE_SUM<R>;
        }
        if (small) return finish_in_logs(f, i);
        const R level = fold<R, MAX>(all);
        if (level == NOTHING<R, MAX>) return refuse(f, i);
        if (MAX) {
            for (int x = 0; x < count; x += W) store(m + x, load(m + x) - level);
        } else {
            const R shift = R(std::log(level));
            for (int x = 0; x < count; x += W) store(m + x, log_or_barred<R>(load(m + x)) - shift);
        }
        return true;
    }
    bool finish_in_logs(int64_t f, int i) {
        if (!message_in_logs(state, f, i, scratch.logs, scratch.exact.data())) return refuse(f, i);
        return settle(i, scratch.exact.data());
    }
    bool settle(int i, double* logs) {
        normalise(logs, scratch.size[i], MAX);
        for (int x = 0; x < scratch.size[i]; ++x) scratch.message[i][x] = R(logs[x]);
        return true;
    }
    bool refuse(int64_t f, int i) {
        stuck = graph.first(f) + i;
        return false;
    }

    // New messages of all variables, in scratch.message. False if one has no possible state.
    bool compute(int64_t f) {
        scratch.shape(graph, f);
        const int order = graph.order(f);
        if (graph.is_rule(f)) return compute_rule(f, 0, order);
        R span = MAX ? 0 : tables.span_of(f);
        for (int i = 0; i < order; ++i) {
            state.cavity(graph.first(f) + i, scratch.cavity[i]);
            span += exponentiate<R, MAX>(scratch.cavity[i], scratch.size[i], span > R(0));
        }
        contract<R, MAX>(tables.table(f), order, graph.turned[f], scratch);
        for (int i = 0; i < order; ++i)
            if (!finish(f, i, span < SAFE_SPAN<R>)) return false;
        return true;
    }
    bool compute_rule(int64_t f, int begin, int end) {
        rule_messages(state, f, rules, entered);
        const int64_t K = graph.rule(f).labels;
        for (int i = begin; i < end; ++i) {
            double* m = rules.message.data() + i * K;
            if (*std::max_element(m, m + K) == -INF<double>) return refuse(f, i);
            settle(i, m);
        }
        return true;
    }
    // The new message of one variable, in scratch.message[i].
    bool compute(int64_t f, int i) {
        scratch.shape(graph, f);
        if (graph.is_rule(f)) return compute_rule(f, i, i + 1);
        const int order = graph.order(f);
        R span = MAX ? 0 : tables.span_of(f);
        for (int j = 0; j < order; ++j)
            if (j != i) {
                state.cavity(graph.first(f) + j, scratch.cavity[j]);
                span += exponentiate<R, MAX>(scratch.cavity[j], scratch.size[j], span > R(0));
            }
        contract_one(tables.table(f), i, order, graph.turned[f]);
        return finish(f, i, span < SAFE_SPAN<R>);
    }

  private:
    // Products of the cavities of variables begin .. end - 1; the last one's state changes fastest.
    const R* outer(int begin, int end, R*& room, int64_t& length) {
        length = 1;
        if (begin == end) {
            room[0] = MAX ? R(0) : R(1);
            room += WIDTH<R>;
            return room - WIDTH<R>;
        }
        const R* now = scratch.cavity[begin];
        length = scratch.size[begin];
        for (int j = begin + 1; j < end; ++j) {
            const int size = scratch.size[j];
            for (int64_t r = 0; r < length; ++r)
                for (int x = 0; x < size; ++x)
                    room[r * size + x] = MAX ? now[r] + scratch.cavity[j][x] : now[r] * scratch.cavity[j][x];
            now = room, length *= size, room += length;
        }
        return now;
    }
    void contract_one(const R* table, int i, int order, bool turned) {
        constexpr int W = WIDTH<R>;
        R* room = scratch.weights.get();
        int64_t rows, cols;
        const int size = scratch.size[i];
        // Variables whose axes come before that of i, and after it.
        const int here = turned ? 1 - i : i, earlier = turned ? 1 : 0, later = turned ? 0 : i + 1;
        const R* before = outer(earlier, here ? earlier + here : earlier, room, rows);
        const R* after = outer(later, here + 1 < order ? later + order - 1 - here : later, room, cols);
        R* m = scratch.message[i];
        for (int x = 0; x < size; x += W) store(m + x, splat(NOTHING<R, MAX>));
        for (int64_t r = 0; r < rows; ++r) {
            const R* at = table + r * size * cols;
            if (here == order - 1) {
                const Lanes<R> weight = splat(before[r]);
                for (int x = 0; x < size; x += W) store(m + x, gather_term<R, MAX>(load(m + x), load(at + x), weight));
                continue;
            }
            for (int x = 0; x < size; ++x, at += cols) {
                Lanes<R> sum = splat(NOTHING<R, MAX>);
                int64_t c = 0;
                for (; c + W <= cols; c += W) sum = gather_term<R, MAX>(sum, load(at + c), load(after + c));
                R one = fold<R, MAX>(sum);
                for (; c < cols; ++c) one = MAX ? std::max(one, at[c] + after[c]) : one + at[c] * after[c];
                m[x] = MAX ? std::max(m[x], one + before[r]) : m[x] + one * before[r];
            }
        }
    }
};
