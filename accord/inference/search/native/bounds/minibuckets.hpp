// A tighter bound from elimination with tables of limited size (mini-buckets, Dechter and Rish 2003).
//
// Eliminating a node exactly would need one table over all its neighbours. Here its functions are split into groups whose
// tables are small enough, and the node may take a different state in each group, which can only raise the maximum. Before
// that, the groups' max-marginals of the node are made equal (Ihler et al. 2012), and the potentials are those that
// tree-reweighted passes leave, so that the groups agree as far as possible.
//
// The tables also guide a complete search. Nodes are labelled in the reverse order; the bound given the labels so far
// follows from the tables of the next node's groups, and only states whose bound exceeds the best score are tried.
#pragma once
#include <memory>

#include "../elimination/elimination.hpp"
#include "trws.hpp"

namespace search {

class MiniBuckets {
  public:
    explicit MiniBuckets(const Model& m) : m_(m), place_(m.nodes) {}

    double root = std::numeric_limits<double>::infinity();  // the bound, once it is known

    // An upper bound with tables of at most `limit` entries; +inf if time ran out.
    double bound(Dual& dual, const Labels& order, double limit, double deadline, const Clock& clock) {
        order_ = order;
        functions_.clear(), functions_.resize(m_.nodes), sent_.assign(m_.nodes, {});
        own_.resize(m_.size());
        for (int32_t p = 0; p < m_.nodes; ++p) place_[order[p]] = p;
        for (int32_t e = 0; e < m_.edges; ++e) {
            const int32_t s = m_.source[e], t = m_.target[e];
            std::vector<double> left = dual.rest(e);
            if (place_[s] > place_[t]) {  // scopes begin with the node that is eliminated first
                store({{t, s}, std::move(left)});
                continue;
            }
            std::vector<double> turned(left.size());
            for (int32_t i = 0; i < m_.count[s]; ++i)
                for (int32_t j = 0; j < m_.count[t]; ++j) turned[int64_t(j) * m_.count[s] + i] = left[int64_t(i) * m_.count[t] + j];
            store({{s, t}, std::move(turned)});
        }
        for (const Factor& f : m_.factors) {
            const std::vector<double> left = dual.rest(f);
            std::vector<std::pair<int32_t, int64_t>> axes;  // node, stride
            for (int32_t i = f.first; i < f.first + f.order; ++i)
                axes.emplace_back(m_.members[i].node, m_.members[i].stride);
            std::sort(axes.begin(), axes.end(), [&](auto& a, auto& b) { return place_[a.first] < place_[b.first]; });
            Function turned{{}, std::vector<double>(left.size(), 0.0)};
            std::vector<int64_t> sizes, strides;
            for (auto& [v, stride] : axes)
                turned.scope.push_back(v), sizes.push_back(m_.count[v]), strides.push_back(stride);
            add(turned.values.data(), sizes, strides, sizes.size(), left.data());
            store(std::move(turned));
        }
        double total = 0;
        for (int32_t p = 0; p < m_.nodes; ++p) {
            if (clock.past(deadline)) return std::numeric_limits<double>::infinity();
            const int32_t v = order[p];
            std::copy_n(dual.totals(v), m_.count[v], own_.begin() + m_.at[v]);
            for (const auto& f : functions_[p]) clock.add(500 + 6.0 * double(f->values.size()));
            total += eliminate(p, limit, clock);
        }
        return root = total;
    }

    // True: no labelling is better than `best`, which may have been improved, by more than `gap`.
    bool prove(Labels& best, double& score, double gap, double deadline, const Clock& clock) {
        std::vector<Level> levels(m_.nodes);
        Labels x(m_.nodes, 0);
        int32_t p = m_.nodes - 1;
        levels[p].bound = root;
        open(p, x, levels[p], score + gap, clock);
        for (int64_t step = 1;; ++step) {
            if ((step & 255) == 0 && clock.past(deadline)) return false;
            Level& level = levels[p];
            if (level.next == level.states.size() || level.states[level.next].first <= score + gap) {
                if (++p == m_.nodes) return true;
                continue;
            }
            const auto [bound, state] = level.states[level.next++];
            x[order_[p]] = state;
            if (p == 0) {
                const double found = m_.score(x);
                if (m_.allowed(found) && found > score) score = found, best = x;
                continue;
            }
            levels[--p].bound = bound;
            open(p, x, levels[p], score + gap, clock);
        }
    }

  private:
    // Tables are indexed with the first node of the scope fastest.
    struct Function {
        std::vector<int32_t> scope;
        std::vector<double> values;
    };
    struct Group {
        std::vector<int32_t> scope;
        std::vector<const Function*> parts;
        double entries;
    };
    const Model& m_;
    std::vector<int32_t> place_;
    Labels order_;
    std::vector<double> own_;                                        // potentials of nodes
    std::vector<std::vector<std::unique_ptr<Function>>> functions_;  // by the place of the first node of their scope
    std::vector<std::vector<const Function*>> sent_;                 // by the place of the node that was eliminated
    std::vector<std::unique_ptr<Function>> constants_;

    const Function* store(Function&& function) {
        auto& home = function.scope.empty() ? constants_ : functions_[place_[function.scope[0]]];
        home.push_back(std::make_unique<Function>(std::move(function)));
        return home.back().get();
    }

    // One node of the search: its states, best bound first.
    struct Level {
        double bound = 0;
        size_t next = 0;
        std::vector<std::pair<double, int32_t>> states;
    };

    void open(int32_t p, const Labels& x, Level& level, double least, const Clock& clock) const {
        const int32_t v = order_[p];
        const auto place = [&](const Function& f, size_t from) {
            int64_t index = 0, stride = from ? m_.count[v] : 1;
            for (size_t d = from; d < f.scope.size(); ++d) index += stride * x[f.scope[d]], stride *= m_.count[f.scope[d]];
            return index;
        };
        double base = level.bound;
        for (const Function* f : sent_[p]) base -= f->values[place(*f, 0)];
        level.next = 0, level.states.clear();
        double values[64];
        std::vector<double> many;
        double* sums = values;
        if (m_.count[v] > 64) many.resize(m_.count[v]), sums = many.data();
        for (int32_t i = 0; i < m_.count[v]; ++i) sums[i] = base + own_[m_.at[v] + i];
        for (const auto& f : functions_[p]) {
            const double* row = f->values.data() + place(*f, 1);
            for (int32_t i = 0; i < m_.count[v]; ++i) sums[i] += row[i];
            clock.add(60 + 5.0 * double(f->scope.size()));
        }
        for (int32_t i = 0; i < m_.count[v]; ++i)
            if (sums[i] > least) level.states.emplace_back(sums[i], i);
        std::sort(level.states.begin(), level.states.end(), [](auto& a, auto& b) { return a.first > b.first; });
    }

    double entries(const std::vector<int32_t>& scope) const {
        double product = 1;
        for (int32_t v : scope) product *= m_.count[v];
        return product;
    }
    std::vector<int32_t> merged(const std::vector<int32_t>& a, const std::vector<int32_t>& b) const {
        std::vector<int32_t> both;
        std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both),
                       [&](int32_t u, int32_t w) { return place_[u] < place_[w]; });
        return both;
    }

    // Returns the constant that is left when nothing else is in a group's scope.
    double eliminate(int32_t p, double limit, const Clock& clock) {
        const int32_t v = order_[p], k = m_.count[v];
        const double* own = own_.data() + m_.at[v];
        auto& functions = functions_[p];
        std::stable_sort(functions.begin(), functions.end(),
                         [](const auto& a, const auto& b) { return a->values.size() > b->values.size(); });
        std::vector<Group> groups;
        for (const auto& held : functions) {
            const Function& f = *held;
            bool placed = false;
            for (Group& g : groups) {
                auto both = merged(g.scope, f.scope);
                const double size = entries(both);
                if (size > std::max(limit, g.entries)) continue;
                g.scope = std::move(both), g.entries = size, g.parts.push_back(&f), placed = true;
                break;
            }
            if (!placed) groups.push_back({f.scope, {&f}, entries(f.scope)});
        }
        if (groups.empty()) groups.push_back({{v}, {}, double(k)});
        std::vector<std::vector<double>> tables, peaks;
        std::vector<double> mean(k, 0.0);
        for (const Group& g : groups) {
            if (clock.late()) return std::numeric_limits<double>::infinity();
            std::vector<int64_t> sizes;
            for (int32_t u : g.scope) sizes.push_back(m_.count[u]);
            std::vector<double> table(size_t(g.entries), 0.0);
            for (const Function* f : g.parts) {
                std::vector<int64_t> strides(sizes.size(), 0);
                int64_t stride = 1;
                size_t d = 0;
                for (int32_t u : f->scope) {
                    while (g.scope[d] != u) ++d;
                    strides[d] = stride, stride *= m_.count[u];
                }
                add(table.data(), sizes, strides, sizes.size(), f->values.data());
            }
            std::vector<double> peak(k, -std::numeric_limits<double>::max());
            for (size_t i = 0; i < table.size(); i += k)
                for (int32_t j = 0; j < k; ++j) peak[j] = std::max(peak[j], table[i + j]);
            tables.push_back(std::move(table)), peaks.push_back(std::move(peak));
        }
        // mean: what each group's max-marginal becomes; the parts that are added sum up to `own`.
        for (int32_t j = 0; j < k; ++j) {
            double sum = own[j];
            for (const auto& peak : peaks) sum += peak[j];
            mean[j] = sum / double(groups.size());
        }
        double constant = 0;
        for (size_t g = 0; g < groups.size(); ++g) {
            const auto& scope = groups[g].scope;
            std::vector<double> shift(k);
            for (int32_t j = 0; j < k; ++j) shift[j] = mean[j] - peaks[g][j];
            const auto& table = tables[g];
            Function sent{{scope.begin() + 1, scope.end()}, std::vector<double>(table.size() / k)};
            for (size_t i = 0; i < sent.values.size(); ++i) {
                double best = table[i * k] + shift[0];
                for (int32_t j = 1; j < k; ++j) best = std::max(best, table[i * k + j] + shift[j]);
                sent.values[i] = best;
            }
            if (sent.scope.empty()) constant += sent.values[0];
            sent_[p].push_back(store(std::move(sent)));
        }
        return constant;
    }
};

}  // namespace search
