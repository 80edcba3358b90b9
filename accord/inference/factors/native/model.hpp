// A factor graph as Python passes it, and where messages start and end.
#pragma once
#include "../../kernels/cpu/native/simd.hpp"
#include "../../kernels/cpu/native/team.hpp"

extern "C" struct RuleGroup {
    int64_t factors, order, states, labels;  // states of the automaton, labels that it reads
    const int64_t* transitions;              // [states, labels]: -1 forbids a label
    const void* final;                       // [final_replicas, final_factors, states]
    int64_t final_replicas, final_factors;
};

extern "C" struct Arguments {
    int64_t replicas, nodes, factors, tabled, entries, graphs, groups;  // the first `tabled` factors have tables
    const int64_t *at, *scope_at, *scope, *table_at, *graph;
    const void* unary;       // [replicas, at[nodes]]
    const void* tables;      // [table_replicas, entries]
    const void* appearance;  // [appearance_replicas, factors], or null if all are 1
    const void* start;       // [replicas, messages], or null
    const RuleGroup* rules;  // [groups]: the other factors, in this order
    void* messages;          // [replicas, messages]
    void* totals;            // [replicas, at[nodes]]
    void* residual;          // [replicas, graphs]
    int64_t* sweeps;         // [replicas, graphs]
    int64_t table_replicas, appearance_replicas, max_sweeps, best, schedule, threads;
    double damping, tolerance;
    int64_t stuck;  // output: a slot whose message has no possible state, or -1
};

constexpr int64_t MAX_NUMBERED = int64_t(1) << 31;  // slots, factors and variables are numbered in 32 bits

// A slot is one variable of one factor; a message runs from the factor to the variable.
struct Graph {
    const Arguments& a;
    const int64_t slots;
    std::vector<int32_t> factor_of;   // [slots]
    std::vector<int64_t> message_at;  // [slots + 1]: where messages begin in the arrays of Python
    std::vector<int64_t> into_at;     // [nodes + 1]
    std::vector<int32_t> into;        // slots at a variable: into[into_at[v]] to into[into_at[v + 1]]
    std::vector<int32_t> group_of;    // [factors - tabled]: which group of rules a factor belongs to
    std::vector<int64_t> group_at;    // [groups + 1]: the first factor of each group
    std::vector<uint8_t> turned;      // [factors]: whether a table of pairs is stored with its axes exchanged

    explicit Graph(const Arguments& a) : a(a), slots(a.scope_at[a.factors]) {
        factor_of.resize(slots), message_at.resize(slots + 1), into_at.assign(a.nodes + 1, 0), into.resize(slots);
        for (int64_t f = 0; f < a.factors; ++f)
            for (int64_t s = a.scope_at[f]; s < a.scope_at[f + 1]; ++s) factor_of[s] = int32_t(f);
        for (int64_t s = 0; s < slots; ++s) {
            message_at[s + 1] = message_at[s] + states(int32_t(s));
            ++into_at[a.scope[s] + 1];
        }
        for (int64_t v = 0; v < a.nodes; ++v) into_at[v + 1] += into_at[v];
        std::vector<int64_t> next(into_at.begin(), into_at.end() - 1);
        for (int64_t s = 0; s < slots; ++s) into[next[a.scope[s]]++] = int32_t(s);
        // Vectors run along the last axis, so that is the longer one.
        turned.resize(a.factors);
        for (int64_t f = 0; f < a.tabled; ++f) turned[f] = order(f) == 2 && states(first(f)) > states(first(f) + 1);
        group_at.assign(1, a.tabled);
        for (int64_t g = 0; g < a.groups; ++g) {
            group_at.push_back(group_at.back() + a.rules[g].factors);
            group_of.insert(group_of.end(), a.rules[g].factors, int32_t(g));
        }
    }
    int variable(int64_t slot) const { return int(a.scope[slot]); }
    int variable_states(int64_t v) const { return int(a.at[v + 1] - a.at[v]); }
    int states(int64_t slot) const { return variable_states(a.scope[slot]); }
    int64_t first(int64_t f) const { return a.scope_at[f]; }
    int order(int64_t f) const { return int(a.scope_at[f + 1] - a.scope_at[f]); }
    // The slot that an axis of a table as it is stored belongs to, and the states along it.
    int64_t axis_slot(int64_t f, int axis) const { return first(f) + (turned[f] ? 1 - axis : axis); }
    int axis_states(int64_t f, int axis) const { return states(axis_slot(f, axis)); }
    int64_t entries(int64_t f) const {
        int64_t count = 1;
        for (int64_t s = first(f); s < first(f + 1); ++s) count *= states(s);
        return count;
    }
    int64_t graph(int64_t f) const { return a.graph[a.scope[first(f)]]; }
    bool is_rule(int64_t f) const { return f >= a.tabled; }
    const RuleGroup& rule(int64_t f) const { return a.rules[group_of[f - a.tabled]]; }
};

// Whether all numbers are places that exist. A field was checked when it was built, but its tensors may have changed.
inline bool in_range(const Arguments& a) {
    if (a.at[0] != 0 || a.scope_at[0] != 0) return false;
    for (int64_t v = 0; v < a.nodes; ++v)
        if (a.at[v + 1] <= a.at[v] || uint64_t(a.graph[v]) >= uint64_t(a.graphs)) return false;
    int64_t rules = a.tabled, group = 0;
    for (int64_t f = 0; f < a.factors; ++f) {
        if (a.scope_at[f + 1] <= a.scope_at[f]) return false;
        int64_t entries = 1;
        for (int64_t s = a.scope_at[f]; s < a.scope_at[f + 1]; ++s) {
            const int64_t v = a.scope[s];
            if (uint64_t(v) >= uint64_t(a.nodes) || a.graph[v] != a.graph[a.scope[a.scope_at[f]]]) return false;
            const int64_t states = a.at[v + 1] - a.at[v];
            if (f < a.tabled && (entries > a.entries / states)) return false;
            if (f < a.tabled) entries *= states;
        }
        if (f < a.tabled) {
            if (a.table_at[f] < 0 || a.table_at[f] > a.entries - entries) return false;
            continue;
        }
        while (group < a.groups && f >= rules + a.rules[group].factors) rules += a.rules[group++].factors;
        if (group == a.groups || a.scope_at[f + 1] - a.scope_at[f] != a.rules[group].order) return false;
        for (int64_t s = a.scope_at[f]; s < a.scope_at[f + 1]; ++s)
            if (a.at[a.scope[s] + 1] - a.at[a.scope[s]] != a.rules[group].labels) return false;
    }
    for (int64_t g = 0; g < a.groups; ++g)
        for (int64_t k = 0; k < a.rules[g].states * a.rules[g].labels; ++k)
            if (a.rules[g].transitions[k] < -1 || a.rules[g].transitions[k] >= a.rules[g].states) return false;
    return true;
}
