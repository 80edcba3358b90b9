// One connected field in double precision, without padding: every node has its own number of states.
//
// Forbidden pairs hold a large finite penalty, so that no arithmetic meets infinities. The penalty exceeds the largest
// possible difference between two allowed labellings. So a labelling is allowed if and only if its score is at least
// `floor`, and an upper bound below `floor` proves that no labelling is allowed.
#pragma once
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace search {

using Labels = std::vector<int32_t>;

// Time as an amount of work, about a nanosecond for each operation. What is tried in which order depends on it alone, so a
// search that ends before the real time is up gives the same result on every machine.
class Clock {
  public:
    explicit Clock(double budget, const volatile int32_t* stop = nullptr) : budget_(budget), stop_(stop) {}
    void add(double operations) const { work_ += operations; }
    double seconds() const { return 1e-9 * work_; }
    double elapsed() const {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
    }
    bool late() const { return late_ || (late_ = elapsed() > budget_ || (stop_ && *stop_)); }
    bool past(double deadline) const { return seconds() > deadline || late(); }

  private:
    std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
    double budget_;
    const volatile int32_t* stop_;  // set by another thread: the caller was interrupted
    mutable double work_ = 0;
    mutable bool late_ = false;
};

// xoshiro256++ (Blackman and Vigna 2019).
struct Random {
    uint64_t s[4];
    explicit Random(uint64_t seed) {
        for (auto& word : s) {
            uint64_t z = (seed += 0x9E3779B97F4A7C15ull);
            z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
            z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
            word = z ^ (z >> 31);
        }
    }
    static uint64_t turn(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
    uint64_t next() {
        const uint64_t result = turn(s[0] + s[3], 23) + s[0], t = s[1] << 17;
        s[2] ^= s[0], s[3] ^= s[1], s[1] ^= s[2], s[0] ^= s[3], s[2] ^= t, s[3] = turn(s[3], 45);
        return result;
    }
    uint32_t below(uint32_t n) { return uint32_t((uint64_t(uint32_t(next() >> 32)) * n) >> 32); }
    double uniform() { return double(next() >> 11) * 0x1p-53; }
};

// One end of an edge, seen from the node it belongs to.
struct Arc {
    int32_t other, edge;
    int64_t table;                // where the table begins
    int32_t own, far;             // strides of the own and the other state
    bool forward;                 // the node is the edge's source
};

struct Model {
    int32_t nodes = 0, edges = 0;
    std::vector<int32_t> count;          // states of a node
    std::vector<int64_t> at;             // [nodes + 1]: where the states of a node begin
    std::vector<double> unary, tables;   // tables[table_at[e] + source state * count[target] + target state]
    std::vector<int32_t> source, target;
    std::vector<int64_t> table_at;
    std::vector<double> low;             // lowest allowed value of each table
    std::vector<int32_t> first;          // [nodes + 1]: where the arcs of a node begin
    std::vector<Arc> arcs;
    double floor = -1e300;               // least score of an allowed labelling
    double penalty = 0;                  // of a forbidden pair; 0: there are none
    double wall = 1;                     // more than any change of score between allowed labellings
    double scale = 0;                    // typical change of score when a node changes its state
    int32_t most = 1;                    // largest number of states

    int64_t size() const { return at[nodes]; }
    const Arc* begin(int32_t v) const { return arcs.data() + first[v]; }
    const Arc* end(int32_t v) const { return arcs.data() + first[v + 1]; }
    int32_t degree(int32_t v) const { return first[v + 1] - first[v]; }
    double pair(int32_t e, const Labels& x) const {
        return tables[table_at[e] + int64_t(x[source[e]]) * count[target[e]] + x[target[e]]];
    }

    double score(const Labels& x) const {
        double total = 0;
        for (int32_t v = 0; v < nodes; ++v) total += unary[at[v] + x[v]];
        for (int32_t e = 0; e < edges; ++e) total += pair(e, x);
        return total;
    }

    // Arcs of all nodes, from the ends of the edges.
    void link() {
        first.assign(nodes + 1, 0);
        for (int32_t e = 0; e < edges; ++e) ++first[source[e] + 1], ++first[target[e] + 1];
        for (int32_t v = 0; v < nodes; ++v) first[v + 1] += first[v];
        arcs.resize(2 * size_t(edges));
        std::vector<int32_t> next(first.begin(), first.end() - 1);
        for (int32_t e = 0; e < edges; ++e) {
            const int32_t s = source[e], t = target[e];
            arcs[next[s]++] = {t, e, table_at[e], count[t], 1, true};
            arcs[next[t]++] = {s, e, table_at[e], 1, count[t], false};
        }
        most = nodes ? *std::max_element(count.begin(), count.end()) : 1;
    }

    bool barred(int32_t e, double value) const { return penalty > 0 && value < low[e] - 0.5 * penalty; }

    // Replace -inf in tables by the lowest allowed value less the penalty, and find `floor` and `scale`.
    void settle() {
        double range = 0, least = 0, last = 0;
        std::vector<double> squares(nodes, 0.0);
        bool some = false;
        const auto look = [&](const double* values, int64_t size) {
            double low = 1e300, high = -1e300;
            for (int64_t i = 0; i < size; ++i) {
                if (values[i] < -1.7e308) {
                    some = true;
                    continue;
                }
                low = std::min(low, values[i]), high = std::max(high, values[i]);
            }
            if (high < low) low = high = 0;  // nothing is allowed
            least += low, range += high - low, last = low;
            return high - low;
        };
        for (int32_t v = 0; v < nodes; ++v) {
            const double each = look(unary.data() + at[v], count[v]);
            squares[v] += each * each;
        }
        for (int32_t e = 0; e < edges; ++e) {
            const double each = look(tables.data() + table_at[e], int64_t(count[source[e]]) * count[target[e]]);
            squares[source[e]] += each * each, squares[target[e]] += each * each;
            low.push_back(last);
        }
        scale = 0;
        for (double each : squares) scale += std::sqrt(each) / nodes;
        wall = range + std::max(1.0, 1e-6 * (range + std::fabs(least)));
        if (!some) return;
        penalty = wall;
        floor = least - 1e-9 * (range + std::fabs(least) + 1);
        wall += penalty;
        if (scale == 0) scale = 1;
        for (int32_t e = 0; e < edges; ++e) {
            double* table = tables.data() + table_at[e];
            for (int64_t i = int64_t(count[source[e]]) * count[target[e]]; i-- > 0;)
                if (table[i] < -1.7e308) table[i] = low[e] - penalty;
        }
    }

    bool allowed(double score) const { return penalty == 0 || score >= floor; }
};

}  // namespace search
