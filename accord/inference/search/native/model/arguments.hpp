// What Python passes, and connected components.
#pragma once
#include <numeric>

#include "model.hpp"

namespace search {

// Mirrored in _native.py. States of node v are numbered at[v] to at[v + 1]; the nodes of factor f are
// scope[scope_at[f]] to scope[scope_at[f + 1]], and its table, where the last node's state changes fastest, begins at
// tables[table_at[f]]. Factors may share a table.
struct Arguments {
    int64_t nodes, factors;
    const int64_t *at, *scope_at, *scope, *table_at;
    const double *unary, *tables;  // -inf: forbidden
    const int64_t* start;  // [nodes]: labels from which the search begins, -1 for none; null: none at all
    int64_t replica, own;  // nodes of a replica; those after the first `own` ones were added to express rules
    int64_t distinct;      // not 0: all factors have two nodes, and no two of them the same
    double budget;   // seconds
    double used;     // seconds of the budget that passed before; apart, because what is tried depends on the budget
    double work;     // instead of turns until the budget ends: one turn of that much work for each node; 0: turns
    double most;     // seconds of work of such a turn, at most
    double patience; // seconds of work of the further turns of a component in which nothing allowed was found by then
    int64_t threads; // more than 1: another thread searches for labels too
    int64_t ways;    // which ways are open, as bits: see Way
    uint64_t seed;
    const volatile int32_t* stop;  // not 0: end as soon as possible
    int (*later)(int64_t*);        // writes [nodes] labels to go on from, like `start`; 0: it has none. May be null
    int64_t* labels;     // [nodes]: state, counted from the node's first; -1 where no labelling was found
    int64_t* component;  // [nodes]
    double *score, *bound;      // [components]; room for one for each node
    int32_t *method, *proof;    // [components]: see Method
    int32_t* infeasible;        // [components]: proved
    int64_t components;

    const int64_t* begin(int64_t f) const { return scope + scope_at[f]; }
    const int64_t* end(int64_t f) const { return scope + scope_at[f + 1]; }
    int64_t order(int64_t f) const { return scope_at[f + 1] - scope_at[f]; }
    int64_t states(int64_t v) const { return at[v + 1] - at[v]; }
};

// Sets of nodes that are joined step by step; the least node stands for its set.
class Sets {
  public:
    explicit Sets(int64_t nodes) : parent_(nodes) { std::iota(parent_.begin(), parent_.end(), 0); }
    int32_t root(int32_t v) {
        while (parent_[v] != v) v = parent_[v] = parent_[parent_[v]];
        return v;
    }
    void join(int32_t a, int32_t b) {
        a = root(a), b = root(b);
        if (a != b) parent_[std::max(a, b)] = std::min(a, b);
    }

  private:
    std::vector<int32_t> parent_;
};

// Items 0 to size, grouped by number: those of group g are items[first[g]] to items[first[g + 1]], in order.
struct Groups {
    std::vector<int32_t> items, first;

    template <class Which>
    Groups(int64_t size, int64_t count, Which which) : first(count + 1, 0) {
        int64_t held = 0;
        for (int64_t i = 0; i < size; ++i)
            if (which(i) >= 0) ++first[which(i) + 1], ++held;
        for (int64_t g = 0; g < count; ++g) first[g + 1] += first[g];
        items.resize(held);
        std::vector<int32_t> next(first.begin(), first.end());
        for (int64_t i = 0; i < size; ++i)
            if (which(i) >= 0) items[next[which(i)]++] = int32_t(i);
    }
    const int32_t* begin(int64_t g) const { return items.data() + first[g]; }
    const int32_t* end(int64_t g) const { return items.data() + first[g + 1]; }
};

}  // namespace search
