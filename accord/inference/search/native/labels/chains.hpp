// Rules that became chains of small tables, for searches that change single nodes.
//
// The nodes between two tables of a chain follow from the others, so a search that changes them one by one gets nowhere.
// Here a chain is one function of its own nodes: the best value over the nodes in between, by dynamic programming.
#pragma once
#include <map>

#include "../model/model.hpp"

namespace search {

class Chains {
  public:
    explicit Chains(const Model& m) : m_(m), of_(m.nodes) {
        if (m.between.empty() || !collect()) return;
        joined_.assign(m.num_tables(), 0);
        for (const auto& [t, nodes] : uses_)
            if (!joined_[t] && is_end(nodes)) follow(t);
        for (const auto& [t, nodes] : uses_) active_ = active_ && joined_[t];
        if (!active_) first_.clear(), joined_.clear();
        for (size_t i = 0; i < steps_.size(); ++i) best_.emplace_back(steps_[i].own < 0 ? 0 : m.count[steps_[i].own], 0.0);
        for (int32_t c = 0; c < size(); ++c) visit(c, [&](int32_t v) { of_[v].push_back(c); });
    }

    // Whether a node is in between, so that it follows from others.
    bool follows(int32_t v) const { return !joined_.empty() && m_.between[v]; }
    bool has(int32_t table) const { return !joined_.empty() && joined_[table]; }
    // The chains of a node.
    const std::vector<int32_t>& of(int32_t v) const { return of_[v]; }
    int32_t size() const { return int32_t(first_.size()); }
    double effort() const { return effort_; }

    void clear() {
        for (auto& each : best_) std::fill(each.begin(), each.end(), 0.0);
    }

    // Calls `add` with node, state and change of the chain's best value for that state, since the last call.
    template <class Add>
    void refresh(int32_t chain, const Labels& x, Add add) {
        const int32_t begin = first_[chain], end = last(chain);
        forward(begin, end, x);
        std::vector<double>& after = after_;
        after = potential(steps_[end - 1].next);
        for (int32_t i = end; i-- > begin;) {
            const Step& s = steps_[i];
            const double* table = m_.table(s.table);
            const std::vector<double>& before = before_[i - begin];
            const int32_t kp = states(s.previous), kn = states(s.next);
            if (s.own >= 0)
                for (int32_t state = 0; state < m_.count[s.own]; ++state) {
                    double best = -std::numeric_limits<double>::max();
                    for (int32_t p = 0; p < kp; ++p)
                        for (int32_t n = 0; n < kn; ++n)
                            best = std::max(best, before[p] + after[n] + table[p * s.by_previous + state * s.by_own + n * s.by_next]);
                    add(s.own, state, best - best_[i][state]);
                    best_[i][state] = best;
                }
            sent_.assign(kp, -std::numeric_limits<double>::max());
            const double* row = table + (s.own < 0 ? 0 : x[s.own] * s.by_own);
            for (int32_t p = 0; p < kp; ++p) {
                for (int32_t n = 0; n < kn; ++n)
                    sent_[p] = std::max(sent_[p], row[p * s.by_previous + n * s.by_next] + after[n]);
                if (s.previous >= 0) sent_[p] += m_.unary[m_.at[s.previous] + p];
            }
            after.swap(sent_);
        }
    }

    // The best states of the nodes in between.
    void complete(Labels& x) {
        for (int32_t c = 0; c < size(); ++c) {
            const int32_t begin = first_[c], end = last(c);
            forward(begin, end, x);
            const auto& ended = before_[end - begin];
            if (const int32_t v = steps_[end - 1].next; v >= 0)
                x[v] = int32_t(std::max_element(ended.begin(), ended.begin() + m_.count[v]) - ended.begin());
            for (int32_t i = end; i-- > begin;) {
                const Step& s = steps_[i];
                if (s.previous < 0) continue;
                const double* row = m_.table(s.table) + (s.own < 0 ? 0 : x[s.own] * s.by_own);
                if (s.next >= 0) row += x[s.next] * s.by_next;
                int32_t best = 0;
                const auto value = [&](int32_t p) { return before_[i - begin][p] + row[p * s.by_previous]; };
                for (int32_t p = 1; p < m_.count[s.previous]; ++p)
                    if (value(p) > value(best)) best = p;
                x[s.previous] = best;
            }
        }
    }

    // The nodes of a chain that are not in between.
    template <class Visit>
    void visit(int32_t chain, Visit visit) const {
        for (int32_t i = first_[chain]; i < last(chain); ++i)
            if (steps_[i].own >= 0) visit(steps_[i].own);
    }

  private:
    // One table: the nodes in between before and after it, and its own one; -1: none.
    struct Step {
        int32_t table, previous, own, next;
        int64_t by_previous, by_own, by_next;  // strides
    };
    static constexpr int32_t MOST_STATES = 16;  // of a node in between; beyond, it is changed like any other
    const Model& m_;
    std::map<int32_t, std::vector<std::pair<int32_t, int64_t>>> uses_;  // tables of chains: (node, stride)
    std::vector<std::vector<int32_t>> tables_;                          // of each node in between
    std::vector<Step> steps_;
    std::vector<int32_t> first_;
    std::vector<char> joined_;               // tables of chains
    std::vector<std::vector<int32_t>> of_;   // by node: chains
    std::vector<std::vector<double>> best_, before_;
    std::vector<double> after_, sent_;
    double effort_ = 0;
    bool active_ = true;

    int32_t last(int32_t chain) const { return chain + 1 < size() ? first_[chain + 1] : int32_t(steps_.size()); }
    int32_t states(int32_t v) const { return v < 0 ? 1 : m_.count[v]; }
    std::vector<double> potential(int32_t v) const {
        if (v < 0) return {0.0};
        return {m_.unary.begin() + m_.at[v], m_.unary.begin() + m_.at[v + 1]};
    }

    // The tables of nodes in between; false: they do not form chains.
    bool collect() {
        tables_.resize(m_.nodes);
        const auto use = [&](int32_t t, int32_t v, int64_t stride) {
            uses_[t].emplace_back(v, stride);
            if (m_.between[v]) tables_[v].push_back(t);
        };
        for (int32_t e = 0; e < m_.edges; ++e)
            if (m_.between[m_.source[e]] || m_.between[m_.target[e]])
                use(e, m_.source[e], m_.count[m_.target[e]]), use(e, m_.target[e], 1);
        for (size_t f = 0; f < m_.factors.size(); ++f) {
            const Member* member = m_.members.data() + m_.factors[f].first;
            if (std::none_of(member, member + m_.factors[f].order, [&](const Member& u) { return m_.between[u.node]; }))
                continue;
            for (int32_t i = 0; i < m_.factors[f].order; ++i) use(m_.edges + int32_t(f), member[i].node, member[i].stride);
        }
        for (int32_t v = 0; v < m_.nodes; ++v)
            if (tables_[v].size() > 2 || (m_.between[v] && m_.count[v] > MOST_STATES)) return false;
        for (const auto& [t, nodes] : uses_)
            if (inner(nodes) > 2 || int64_t(nodes.size()) - inner(nodes) > 1) return false;
        return true;
    }
    int64_t inner(const std::vector<std::pair<int32_t, int64_t>>& nodes) const {
        return std::count_if(nodes.begin(), nodes.end(), [&](auto& use) { return m_.between[use.first]; });
    }
    // At most one of its nodes in between leads on to another table.
    bool is_end(const std::vector<std::pair<int32_t, int64_t>>& nodes) const {
        return std::count_if(nodes.begin(), nodes.end(), [&](auto& use) { return tables_[use.first].size() == 2; }) < 2;
    }

    void follow(int32_t t) {
        first_.push_back(int32_t(steps_.size()));
        for (int32_t previous = -2; t >= 0;) {
            joined_[t] = 1;
            const auto& nodes = uses_[t];
            Step step{t, -1, -1, -1, 0, 0, 0};
            if (previous == -2) {  // at an end: the node that leads nowhere
                previous = -1;
                for (auto& [v, stride] : nodes)
                    if (m_.between[v] && tables_[v].size() == 1 && previous < 0 && inner(nodes) == 2) previous = v;
            }
            for (auto& [v, stride] : nodes) {
                if (!m_.between[v])
                    step.own = v, step.by_own = stride;
                else if (v == previous)
                    step.previous = v, step.by_previous = stride;
                else
                    step.next = v, step.by_next = stride;
            }
            steps_.push_back(step);
            effort_ += double(states(step.previous)) * states(step.next) * (states(step.own) + 2.0);
            t = -1, previous = step.next;
            if (previous >= 0)
                for (int32_t other : tables_[previous])
                    if (!joined_[other]) t = other;
        }
    }

    // before_[i]: the best value of the tables before step i, for each state of the node before it.
    void forward(int32_t begin, int32_t end, const Labels& x) {
        if (before_.size() < size_t(end - begin) + 1) before_.resize(end - begin + 1);
        before_[0] = potential(steps_[begin].previous);
        for (int32_t i = begin; i < end; ++i) {
            const Step& s = steps_[i];
            const double* row = m_.table(s.table) + (s.own < 0 ? 0 : x[s.own] * s.by_own);
            auto& after = before_[i - begin + 1];
            after.assign(states(s.next), -std::numeric_limits<double>::max());
            for (int32_t n = 0; n < states(s.next); ++n) {
                for (int32_t p = 0; p < states(s.previous); ++p)
                    after[n] = std::max(after[n], before_[i - begin][p] + row[p * s.by_previous + n * s.by_next]);
                if (s.next >= 0) after[n] += m_.unary[m_.at[s.next] + n];
            }
        }
    }
};

}  // namespace search
