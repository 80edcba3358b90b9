// A labelling with the score of every state of every node given its neighbours, and the searches that change single
// nodes: greedy improvement, simulated annealing and tabu search.
#pragma once
#include <array>

#include "chains.hpp"

namespace search {

class Labelling {
  public:
    explicit Labelling(const Model& m) : m_(m), chains_(m), local_(m.size()) {
        for (int32_t v = 0; v < m.nodes; ++v)
            if (!chains_.follows(v)) free_.push_back(v);
    }

    Labels x;
    double score = 0;

    void set(const Labels& labels) {
        x = labels;
        local_ = m_.unary;
        chains_.complete(x), chains_.clear();
        for (int32_t v = 0; v < m_.nodes; ++v)
            for (const Arc* a = m_.begin(v); a != m_.end(v) && !chains_.follows(v); ++a) shift(*a, -1, x[v]);
        for (size_t i = 0; i < m_.factors.size(); ++i) {
            const Factor& f = m_.factors[i];
            if (chains_.has(m_.edges + int32_t(i))) continue;
            const double* here = m_.tables.data() + m_.entry(f, x);
            for (int32_t i = f.first; i < f.first + f.order; ++i) {
                const Member& u = m_.members[i];
                const double* row = here - x[u.node] * u.stride;
                for (int32_t j = 0; j < u.count; ++j) local_[m_.at[u.node] + j] += row[j * u.stride];
            }
        }
        for (int32_t c = 0; c < chains_.size(); ++c) refresh(c);
        score = m_.score(x);
    }

    // Whether a node follows from others, so that changes leave it out.
    bool follows(int32_t v) const { return chains_.follows(v); }

    void draw(Random& random) {
        Labels labels(m_.nodes);
        for (int32_t v = 0; v < m_.nodes; ++v) labels[v] = int32_t(random.below(m_.count[v]));
        set(labels);
    }

    const double* local(int32_t v) const { return local_.data() + m_.at[v]; }

    void change(int32_t v, int32_t state) {
        const double* own = local(v);
        score += own[state] - own[x[v]];
        for (const Arc* a = m_.begin(v); a != m_.end(v); ++a) shift(*a, x[v], state);
        for (const int32_t* s = m_.slots_begin(v); s != m_.slots_end(v); ++s) shift(*s, x[v], state);
        x[v] = state;
        for (int32_t c : chains_.of(v)) refresh(c);
    }

    // Single nodes change while that raises the score by more than rounding.
    void improve(Random& random) {
        const double least = 1e-12 * (m_.scale + 1e-300);
        std::vector<int32_t> waiting = free_;
        std::vector<char> queued(m_.nodes, 1);
        for (int32_t v = int32_t(free_.size()) - 1; v > 0; --v) std::swap(waiting[v], waiting[random.below(v + 1)]);
        int64_t changes = 0, limit = 1000 + 100 * int64_t(m_.nodes);
        for (size_t next = 0; next < waiting.size() && changes < limit; ++next) {
            const int32_t v = waiting[next];
            queued[v] = 0;
            const int32_t best = peak(v);
            if (local(v)[best] <= local(v)[x[v]] + least) continue;
            change(v, best), ++changes;
            const auto wake = [&](int32_t u) {
                if (!queued[u]) queued[u] = 1, waiting.push_back(u);
            };
            for (const int32_t* u = m_.near_begin(v); u != m_.near_end(v); ++u) wake(*u);
            for (int32_t c : chains_.of(v)) chains_.visit(c, wake);
        }
        chains_.complete(x);
    }

    // Simulated annealing: `sweeps` visits of all nodes at temperatures that fall from `hot` to `cold` by equal factors.
    void anneal(Random& random, int sweeps, double hot, double cold, double deadline, const Clock& clock) {
        const double factor = sweeps > 1 ? std::pow(cold / hot, 1.0 / (sweeps - 1)) : 1;
        double temperature = hot;
        int64_t until_look = 0;
        for (int sweep = 0; sweep < sweeps; ++sweep, temperature *= factor) {
            if ((until_look -= m_.size()) < 0) {
                if (clock.past(deadline)) temperature = cold, sweep = std::max(sweep, sweeps - 1);
                until_look = 100000;
            }
            clock.add(12.0 * m_.nodes + 3.0 * double(m_.size()) + chains_.effort());
            uint64_t bits = random.next();
            for (int32_t v : free_) {
                bits = bits * 6364136223846793005ull + 1442695040888963407ull;
                const double* own = local(v);
                if (m_.count[v] == 2) {
                    const double gain = own[1 - x[v]] - own[x[v]];
                    if (gain >= 0 || gain > -temperature * noise().exponential[bits >> 52]) change(v, 1 - x[v]);
                    continue;
                }
                // The best state of scores with Gumbel noise is a sample from their distribution.
                int32_t best = 0;
                double highest = -1e300;
                for (int32_t i = 0; i < m_.count[v]; ++i) {
                    bits = bits * 6364136223846793005ull + 1442695040888963407ull;
                    const double value = own[i] + temperature * noise().gumbel[bits >> 52];
                    if (value > highest) highest = value, best = i;
                }
                if (best != x[v]) change(v, best);
            }
        }
        chains_.complete(x);
        score = m_.score(x);  // without the rounding errors of many changes
    }

    // Tabu search: the best change of a node that has not changed lately, even if it lowers the score. The best
    // labelling on the way is the result. Stops after `patience` steps without a better one.
    void tabu(Random& random, int64_t patience, double deadline, const Clock& clock) {
        std::vector<int64_t> barred(m_.size(), 0);
        Labels best = x;
        double highest = score;
        const double least = 1e-9 * (m_.scale + 1e-300);
        int64_t since = 0;
        for (int64_t step = 1; since < patience; ++step, ++since) {
            if ((step & 63) == 0 && clock.past(deadline)) break;
            clock.add(1.5 * double(m_.size()));
            double most = -1e300;
            int32_t node = -1, state = 0;
            uint32_t equals = 1;
            for (int32_t v : free_) {
                const double* own = local(v);
                const int64_t* until = barred.data() + m_.at[v];
                const double here = own[x[v]];
                for (int32_t i = 0; i < m_.count[v]; ++i) {
                    const double gain = own[i] - here;
                    if (gain < most || i == x[v]) continue;
                    if (until[i] > step && score + gain <= highest + least) continue;
                    if (gain > most) {
                        most = gain, node = v, state = i, equals = 1;
                    } else if (random.below(++equals) == 0) {
                        node = v, state = i;
                    }
                }
            }
            if (node < 0) continue;
            const int32_t old = x[node];
            change(node, state);
            barred[m_.at[node] + old] = step + 5 + m_.nodes / 50 + random.below(10);
            if (score > highest + least) highest = score, best = x, since = 0;
        }
        set(best);
    }

  private:
    const Model& m_;
    Chains chains_;
    std::vector<int32_t> free_;  // nodes that may be changed
    std::vector<double> local_;

    void refresh(int32_t chain) {
        chains_.refresh(chain, x, [&](int32_t v, int32_t state, double change) { local_[m_.at[v] + state] += change; });
    }

    struct Noise {
        std::array<double, 4096> exponential, gumbel;
        Noise() {
            for (int i = 0; i < 4096; ++i) {
                exponential[i] = -std::log((i + 0.5) / 4096);
                gumbel[i] = -std::log(exponential[i]);
            }
        }
    };
    static const Noise& noise() {
        static const Noise values;
        return values;
    }

    int32_t peak(int32_t v) const {
        const double* own = local(v);
        return int32_t(std::max_element(own, own + m_.count[v]) - own);
    }

    // A node of a factor changes from one state to another, which changes the scores of the others' states.
    void shift(int32_t slot, int32_t from, int32_t to) {
        const Factor& f = m_.factors[m_.factor_of[slot]];
        const double* before = m_.tables.data() + m_.entry(f, x);
        const int64_t step = m_.members[slot].stride * (to - from);
        for (int32_t i = f.first; i < f.first + f.order; ++i) {
            if (i == slot) continue;
            const Member& u = m_.members[i];
            const double* row = before - x[u.node] * u.stride;
            double* rows = local_.data() + m_.at[u.node];
            for (int32_t j = 0; j < u.count; ++j, row += u.stride) rows[j] += row[step] - row[0];
        }
    }

    // The node at the near end of an arc changes from one state to another; -1: it had none.
    void shift(const Arc& a, int32_t from, int32_t to) {
        double* rows = local_.data() + m_.at[a.other];
        const double* after = m_.tables.data() + a.table + int64_t(to) * a.own;
        const double* before = from < 0 ? nullptr : m_.tables.data() + a.table + int64_t(from) * a.own;
        const int32_t k = m_.count[a.other];
        if (before) {
            for (int32_t j = 0; j < k; ++j) rows[j] += after[int64_t(j) * a.far] - before[int64_t(j) * a.far];
        } else {
            for (int32_t j = 0; j < k; ++j) rows[j] += after[int64_t(j) * a.far];
        }
    }
};

}  // namespace search
