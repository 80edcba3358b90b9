// Messages of a rule: a forward and a backward pass over its automaton, in double precision.
//
// before[k][q]: how likely the automaton is in state q before it reads variable k; after[k][q]: how likely the rest of
// the variables is, from state q. The message to variable k joins both along each label. Every row is rescaled, which
// a message does not depend on.
#pragma once
#include "state.hpp"

// Ways to calculate. A number that is rescaled and still smaller than TINY could underflow in the next product.
struct Linear {
    static constexpr double nothing = 0, TINY = 1e-140;
    static double join(double a, double b) { return a * b; }
    static double add(double a, double b) { return a + b; }
    static double remove(double a, double level) { return a / level; }
    static double enter(double log) { return std::exp(log); }
    static bool lost(double a) { return a > 0 && a < TINY; }
};
struct InLogs {
    static constexpr double nothing = -INF<double>;
    static double join(double a, double b) { return a + b; }
    static double add(double a, double b) {
        if (a < b) std::swap(a, b);
        return b == nothing ? a : a + std::log1p(std::exp(b - a));
    }
    static double remove(double a, double level) { return a - level; }
    static double enter(double log) { return log; }
    static bool lost(double) { return false; }
};
struct Largest : InLogs {
    static double add(double a, double b) { return std::max(a, b); }
};

struct RuleScratch {
    std::vector<double> cavity, before, after, message;
    void reserve(const Graph& graph) {
        int64_t labels = 0, states = 0, message_labels = 0;
        for (int64_t g = 0; g < graph.a.groups; ++g) {
            const RuleGroup& rule = graph.a.rules[g];
            labels = std::max(labels, rule.order * rule.labels);
            states = std::max(states, (rule.order + 1) * rule.states);
            message_labels = std::max(message_labels, rule.labels);
        }
        cavity.resize(labels), before.resize(states), after.resize(states), message.resize(labels);
    }
};

// Divide a row by its largest number; false if a number became so small that products could underflow.
template <class Way> bool rescale(double* row, int64_t count) {
    double level = Way::nothing;
    for (int64_t q = 0; q < count; ++q) level = std::max(level, row[q]);
    if (level == Way::nothing) return true;
    bool good = true;
    for (int64_t q = 0; q < count; ++q) row[q] = Way::remove(row[q], level), good &= !Way::lost(row[q]);
    return good;
}

// Unnormalised messages of all variables [order, labels], from log-cavities; false if precision was lost.
template <class Way>
bool read_rule(const RuleGroup& rule, const double* cavity, double* entered, RuleScratch& s, double* message) {
    const int64_t Q = rule.states, K = rule.labels, n = rule.order;
    bool good = true;
    for (int64_t k = 0; k < n; ++k) {
        double best = -INF<double>;
        for (int64_t x = 0; x < K; ++x) best = std::max(best, cavity[k * K + x]);
        if (best == -INF<double>) best = 0;
        for (int64_t x = 0; x < K; ++x) {
            entered[k * K + x] = Way::enter(cavity[k * K + x] - best);
            good &= !Way::lost(entered[k * K + x]) && (entered[k * K + x] > Way::nothing) == (cavity[k * K + x] > -INF<double>);
        }
    }
    double* before = s.before.data();
    double* after = s.after.data();  // its last row holds the final scores
    std::fill_n(before, (n + 1) * Q, Way::nothing);
    before[0] = Way::enter(0.0);
    for (int64_t k = 0; k < n; ++k) {
        double *now = before + k * Q, *next = now + Q;
        for (int64_t q = 0; q < Q; ++q)
            for (int64_t x = 0; now[q] > Way::nothing && x < K; ++x) {
                const int64_t to = rule.transitions[q * K + x];
                if (to >= 0) next[to] = Way::add(next[to], Way::join(now[q], entered[k * K + x]));
            }
        good &= rescale<Way>(next, Q);
    }
    for (int64_t k = n - 1; k >= 0; --k) {
        double *now = after + k * Q, *next = now + Q;
        for (int64_t q = 0; q < Q; ++q) {
            double sum = Way::nothing;
            for (int64_t x = 0; x < K; ++x) {
                const int64_t to = rule.transitions[q * K + x];
                if (to >= 0) sum = Way::add(sum, Way::join(next[to], entered[k * K + x]));
            }
            now[q] = sum;
        }
        good &= rescale<Way>(now, Q);
        double* told = message + k * K;
        std::fill_n(told, K, Way::nothing);
        for (int64_t q = 0; q < Q; ++q)
            for (int64_t x = 0; before[k * Q + q] > Way::nothing && x < K; ++x) {
                const int64_t to = rule.transitions[q * K + x];
                if (to >= 0) told[x] = Way::add(told[x], Way::join(before[k * Q + q], next[to]));
            }
    }
    return good;
}

// Unnormalised log-messages of all variables of a rule, in s.message [order, labels].
template <class R> void rule_messages(const State<R>& state, int64_t f, RuleScratch& s, std::vector<double>& entered) {
    const RuleGroup& rule = state.graph.rule(f);
    const int64_t first = state.graph.first(f), K = rule.labels, Q = rule.states, n = rule.order;
    for (int64_t k = 0; k < n; ++k) state.cavity(first + k, s.cavity.data() + k * K);
    entered.resize(n * K);
    const R* scores = state.final_scores(f);
    const double weight = state.appearance(f);
    double best = -INF<double>;
    for (int64_t q = 0; q < Q; ++q) best = std::max(best, scores[q] / weight);
    if (best == -INF<double>) best = 0;
    const auto end = [&](auto way) {
        using Way = decltype(way);
        bool good = true;
        for (int64_t q = 0; q < Q; ++q) {
            const double score = scores[q] / weight - best;
            double& to = s.after[n * Q + q] = Way::enter(score);
            good &= !Way::lost(to) && (to > Way::nothing) == (score > -INF<double>);
        }
        return good & read_rule<Way>(rule, s.cavity.data(), entered.data(), s, s.message.data());
    };
    if (state.a.best) end(Largest{});
    else if (end(Linear{}))
        for (int64_t k = 0; k < n * K; ++k) s.message[k] = std::log(s.message[k]);
    else end(InLogs{});
}
