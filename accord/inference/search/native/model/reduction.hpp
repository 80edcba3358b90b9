// A field without what is certain: states that cannot be part of an allowed labelling, nodes that have one state left,
// and factors whose nodes all belong to another factor.
#pragma once
#include <deque>

#include "arguments.hpp"

namespace search {

class Reduction {
  public:
    explicit Reduction(const Arguments& a)
        : a_(a), alive(a.nodes ? a.at[a.nodes] : 0), left(a.nodes), unary(a.unary, a.unary + alive.size()),
          host(a.factors), sets_(a.nodes), dead_(a.nodes, 0) {
        for (int64_t f = 0; f < a.factors; ++f) {
            for (const int64_t* v = a.begin(f); v != a.end(f); ++v) sets_.join(int32_t(*a.begin(f)), int32_t(*v));
            if (a.order(f) > 1) continue;
            const int64_t v = *a.begin(f);
            for (int64_t i = 0; i < a.states(v); ++i) unary[a.at[v] + i] += a.tables[a.table_at[f] + i];
        }
        for (int64_t v = 0; v < a.nodes; ++v) {
            for (int64_t s = a.at[v]; s < a.at[v + 1]; ++s) left[v] += alive[s] = unary[s] >= FORBIDDEN;
            if (!left[v]) dead_[sets_.root(int32_t(v))] = 1;
        }
        narrow();
        absorb();
        number();
    }

  private:
    const Arguments& a_;

  public:
    std::vector<char> alive;         // [states of all nodes]
    std::vector<int32_t> left;       // [nodes]: how many states are alive
    std::vector<double> unary;       // with the factors that depend on one node only
    std::vector<int32_t> host;       // [factors]: the factor whose table it is added to, or itself; -1: added to `unary`
    int32_t components = 0;          // numbered in arguments.component
    std::vector<char> contradictory; // [components]: without allowed labellings

    // The nodes of a factor that have a choice; in order where there are more than two.
    void members(int64_t f, std::vector<int32_t>& found) const {
        found.clear();
        for (const int64_t* v = a_.begin(f); v != a_.end(f); ++v)
            if (left[*v] > 1) found.push_back(int32_t(*v));
        if (found.size() > 2) std::sort(found.begin(), found.end());
    }

    // table += the factor's values; `scope` holds its members and maybe others, and the last state changes fastest.
    void add(int64_t f, const std::vector<int32_t>& scope, double* table) {
        const double* values = a_.tables + a_.table_at[f];
        int64_t stride = 1;
        shifts_.clear(), shifts_at_.assign(scope.size(), -1);
        for (const int64_t* v = a_.end(f); v-- != a_.begin(f); stride *= a_.states(*v)) {
            if (left[*v] == 1) {
                values += stride * (std::find(&alive[a_.at[*v]], &alive[a_.at[*v]] + a_.states(*v), 1) - &alive[a_.at[*v]]);
                continue;
            }
            shifts_at_[std::find(scope.begin(), scope.end(), int32_t(*v)) - scope.begin()] = int64_t(shifts_.size());
            for (int64_t i = 0; i < a_.states(*v); ++i)
                if (alive[a_.at[*v] + i]) shifts_.push_back(i * stride);
        }
        for (size_t d = 0; d < scope.size(); ++d) {
            if (shifts_at_[d] >= 0) continue;
            shifts_at_[d] = int64_t(shifts_.size());
            shifts_.resize(shifts_.size() + left[scope[d]], 0);
        }
        spread(scope, 0, values, table);
    }

  private:
    Sets sets_;
    std::vector<char> dead_;  // by the root of a set of nodes
    std::vector<int64_t> shifts_, shifts_at_;

    double* spread(const std::vector<int32_t>& scope, size_t d, const double* values, double* out) {
        const int64_t* shifts = shifts_.data() + shifts_at_[d];
        const int32_t count = left[scope[d]];
        if (d + 1 == scope.size()) {
            for (int32_t i = 0; i < count; ++i) *out++ += values[shifts[i]];
            return out;
        }
        for (int32_t i = 0; i < count; ++i) out = spread(scope, d + 1, values + shifts[i], out);
        return out;
    }

    bool forbids(int64_t f) const {
        int64_t size = 1;
        for (const int64_t* v = a_.begin(f); v != a_.end(f); ++v) size *= a_.states(*v);
        const double* table = a_.tables + a_.table_at[f];
        return std::any_of(table, table + size, [](double value) { return value < FORBIDDEN; });
    }

    // Removes states that are in no allowed combination of some factor (arc consistency).
    void narrow() {
        std::vector<int32_t> barred;
        for (int64_t f = 0; f < a_.factors; ++f)
            if (a_.order(f) > 1 && forbids(f)) barred.push_back(int32_t(f));
        if (barred.empty()) return;
        std::vector<std::pair<int32_t, int32_t>> uses;  // (node, place in `barred`)
        for (size_t i = 0; i < barred.size(); ++i)
            for (const int64_t* v = a_.begin(barred[i]); v != a_.end(barred[i]); ++v) uses.emplace_back(*v, i);
        const Groups around(int64_t(uses.size()), a_.nodes, [&](int64_t i) { return uses[i].first; });
        std::deque<int32_t> waiting(barred.size());
        std::iota(waiting.begin(), waiting.end(), 0);
        std::vector<char> queued(barred.size(), 1), supported;
        while (!waiting.empty()) {
            const int32_t i = waiting.front(), f = barred[i];
            waiting.pop_front(), queued[i] = 0;
            if (dead_[sets_.root(int32_t(*a_.begin(f)))]) continue;
            const double* table = a_.tables + a_.table_at[f];
            supported.clear();
            for (const int64_t* v = a_.begin(f); v != a_.end(f); ++v) supported.resize(supported.size() + a_.states(*v), 0);
            support(f, 0, table, supported.data());
            const char* kept = supported.data();
            for (const int64_t* v = a_.begin(f); v != a_.end(f); kept += a_.states(*v++)) {
                bool changed = false;
                for (int64_t s = 0; s < a_.states(*v); ++s)
                    if (alive[a_.at[*v] + s] && !kept[s]) alive[a_.at[*v] + s] = 0, --left[*v], changed = true;
                if (!left[*v]) dead_[sets_.root(int32_t(*v))] = 1;
                if (!changed) continue;
                for (const int32_t* u = around.begin(*v); u != around.end(*v); ++u)
                    if (const int32_t j = uses[*u].second; !queued[j]) queued[j] = 1, waiting.push_back(j);
            }
        }
    }

    // Marks the states of nodes d and later that are in an allowed combination with those before; whether there are any.
    bool support(int64_t f, int64_t d, const double*& table, char* supported) const {
        const int64_t v = a_.begin(f)[d], states = a_.states(v);
        const char* possible = &alive[a_.at[v]];
        bool any = false;
        if (d + 1 == a_.order(f)) {
            for (int64_t i = 0; i < states; ++i)
                if (possible[i] && table[i] >= FORBIDDEN) supported[i] = 1, any = true;
            table += states;
            return any;
        }
        int64_t below = 1;
        for (int64_t e = d + 1; e < a_.order(f); ++e) below *= a_.states(a_.begin(f)[e]);
        for (int64_t i = 0; i < states; ++i) {
            if (!possible[i]) {
                table += below;
            } else if (support(f, d + 1, table, supported + states)) {
                supported[i] = 1, any = true;
            }
        }
        return any;
    }

    // Which table each factor is added to.
    void absorb() {
        std::vector<std::vector<int32_t>> scopes(a_.distinct ? 0 : a_.factors);
        std::vector<int32_t> found, one{0};
        std::vector<int32_t> large;
        for (int64_t f = 0; f < a_.factors; ++f) {
            host[f] = -1;
            if (dead_[sets_.root(int32_t(*a_.begin(f)))] || a_.order(f) == 1) continue;
            members(f, found);
            if (found.size() < 2) {
                // A constant counts at any of its nodes, which has one state left.
                const int64_t v = found.empty() ? *a_.begin(f) : found[0];
                std::vector<double> values(left[v], 0.0);
                if (found.empty())
                    values[0] = constant(f);
                else
                    add(f, found, values.data());
                for (int64_t s = a_.at[v], i = 0; s < a_.at[v + 1]; ++s)
                    if (alive[s]) unary[s] += values[i++];
                continue;
            }
            host[f] = int32_t(f);
            if (a_.distinct) continue;
            std::sort(found.begin(), found.end());
            scopes[f] = found, large.push_back(int32_t(f));
        }
        if (a_.distinct) return;
        // Largest first, so that hosts are settled before their guests.
        std::stable_sort(large.begin(), large.end(),
                         [&](int32_t f, int32_t g) { return scopes[f].size() > scopes[g].size(); });
        std::vector<std::vector<int32_t>> hosts(a_.nodes);  // of each node
        for (int32_t f : large) {
            const auto& scope = scopes[f];
            const int32_t rare = *std::min_element(
                scope.begin(), scope.end(), [&](int32_t u, int32_t v) { return hosts[u].size() < hosts[v].size(); });
            for (int32_t g : hosts[rare])
                if (std::includes(scopes[g].begin(), scopes[g].end(), scope.begin(), scope.end())) {
                    host[f] = g;
                    break;
                }
            if (host[f] == f)
                for (int32_t v : scope) hosts[v].push_back(f);
        }
    }

    double constant(int64_t f) const {
        int64_t place = 0;
        for (const int64_t* v = a_.begin(f); v != a_.end(f); ++v)
            place = place * a_.states(*v) + (std::find(&alive[a_.at[*v]], &alive[a_.at[*v]] + a_.states(*v), 1) - &alive[a_.at[*v]]);
        return a_.tables[a_.table_at[f] + place];
    }

    // Components of what is left; where there is a contradiction, those of the whole field.
    void number() {
        Sets joined(a_.nodes);
        std::vector<int32_t> found;
        for (int64_t v = 0; v < a_.nodes; ++v)
            if (dead_[sets_.root(int32_t(v))]) joined.join(int32_t(v), sets_.root(int32_t(v)));
        for (int64_t f = 0; f < a_.factors; ++f) {
            if (host[f] != f) continue;
            members(f, found);
            for (int32_t v : found) joined.join(found[0], v);
        }
        for (int64_t v = 0; v < a_.nodes; ++v) {
            const int32_t root = joined.root(int32_t(v));
            if (root == v) contradictory.push_back(dead_[sets_.root(int32_t(v))]);
            a_.component[v] = root == v ? components++ : a_.component[root];
        }
    }
};

}  // namespace search
