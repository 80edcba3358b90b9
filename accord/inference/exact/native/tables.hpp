// Tables over several nodes, of which the first one's state changes fastest: adding smaller ones, and reducing to them.
#pragma once
#include <cmath>

#include "graph.hpp"

namespace exact {

constexpr int MAX_AXES = 64;
constexpr double SAFE = 1e-280;  // sums of probabilities below this are computed again in logs

// How a table and a smaller one, whose entries lie at strides along the table's axes (0: not along it), correspond.
struct Walk {
    int axes = 0;
    int64_t size[MAX_AXES], stride[MAX_AXES];

    void push(int64_t states, int64_t step) {
        if (axes && step == stride[axes - 1] * size[axes - 1]) {
            size[axes - 1] *= states;  // both tables run on, or the smaller one stays where it is
        } else {
            size[axes] = states, stride[axes++] = step;
        }
    }
};

// Calls run(place in the table, place in the smaller one, entries, stride) for every run along the first axis.
template <class Run>
void follow(const Walk& walk, Run run) {
    int64_t at[MAX_AXES] = {}, large = 0, small = 0;
    if (!walk.axes) return run(0, 0, 1, 0);
    while (true) {
        run(large, small, walk.size[0], walk.stride[0]);
        large += walk.size[0];
        int d = 1;
        for (; d < walk.axes; ++d) {
            small += walk.stride[d];
            if (++at[d] < walk.size[d]) break;
            small -= walk.stride[d] * walk.size[d], at[d] = 0;
        }
        if (d >= walk.axes) return;
    }
}

inline void add(double* table, const Walk& walk, const double* values) {
    follow(walk, [&](int64_t large, int64_t small, int64_t count, int64_t stride) {
        double* out = table + large;
        const double* from = values + small;
        if (stride == 1)
            for (int64_t i = 0; i < count; ++i) out[i] += from[i];
        else if (stride == 0)
            for (int64_t i = 0; i < count; ++i) out[i] += *from;
        else
            for (int64_t i = 0; i < count; ++i) out[i] += from[i * stride];
    });
}

// Largest entries of a table, reduced to the smaller one. `out` holds -inf before.
inline void reduce_max(const double* table, const Walk& walk, double* out) {
    follow(walk, [&](int64_t large, int64_t small, int64_t count, int64_t stride) {
        for (int64_t i = 0; i < count; ++i) {
            double& best = out[small + i * stride];
            if (table[large + i] > best) best = table[large + i];
        }
    });
}

// Sums of a table's entries. `out` holds 0 before.
inline void reduce_sum(const double* table, const Walk& walk, double* out) {
    follow(walk, [&](int64_t large, int64_t small, int64_t count, int64_t stride) {
        double* to = out + small;
        const double* from = table + large;
        if (stride == 0) {
            double sum = 0;
            for (int64_t i = 0; i < count; ++i) sum += from[i];
            *to += sum;
        } else {
            for (int64_t i = 0; i < count; ++i) to[i * stride] += from[i];
        }
    });
}

// Log of the sum of exp(values), with the largest value taken out.
inline double log_sum(const double* values, int64_t count) {
    double peak = values[0];
    for (int64_t i = 1; i < count; ++i) peak = std::max(peak, values[i]);
    if (peak == -INFINITE) return peak;
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += std::exp(values[i] - peak);
    return peak + std::log(sum);
}

inline double largest(const double* values, int64_t count) {
    double peak = values[0];
    for (int64_t i = 1; i < count; ++i) peak = std::max(peak, values[i]);
    return peak;
}

// Reduces a table of log-beliefs to marginals. Exponentials are taken once, and axes that are of no more use are dropped.
class Marginals {
  public:
    // The largest entry of `table` is about 0.
    void begin(const double* table, int64_t entries, bool maximise) {
        table_ = table, whole_ = left_ = entries, maximise_ = maximise;
        values_.resize(entries);
        if (maximise) std::copy(table, table + entries, values_.begin());
        else
            for (int64_t i = 0; i < entries; ++i) values_[i] = std::exp(table[i]);
    }

    // Reduces the last axis, which has so many states.
    void drop(int64_t states) {
        left_ /= states;
        for (int64_t s = 1; s < states; ++s) {
            const double* from = values_.data() + s * left_;
            if (maximise_)
                for (int64_t i = 0; i < left_; ++i) values_[i] = std::max(values_[i], from[i]);
            else
                for (int64_t i = 0; i < left_; ++i) values_[i] += from[i];
        }
    }

    // Reduces the axes that are left to those of a smaller table.
    void reduce(Walk walk, double* out, int64_t entries) {
        std::fill(out, out + entries, maximise_ ? -INFINITE : 0.0);
        if (maximise_) return reduce_max(values_.data(), walk, out);
        reduce_sum(values_.data(), walk, out);
        bool safe = true;
        for (int64_t i = 0; i < entries; ++i) safe = safe && out[i] > SAFE;
        if (safe) {
            for (int64_t i = 0; i < entries; ++i) out[i] = std::log(out[i]);
            return;
        }
        // Too small for exponentials of the whole table: again in logs, with each sum's largest term taken out.
        if (left_ < whole_) walk.push(whole_ / left_, 0);
        peak_.assign(entries, -INFINITE);
        reduce_max(table_, walk, peak_.data());
        std::fill(out, out + entries, 0.0);
        follow(walk, [&](int64_t large, int64_t small, int64_t count, int64_t stride) {
            for (int64_t i = 0; i < count; ++i) {
                const double peak = peak_[small + i * stride];
                if (peak > -INFINITE) out[small + i * stride] += std::exp(table_[large + i] - peak);
            }
        });
        for (int64_t i = 0; i < entries; ++i) out[i] = peak_[i] == -INFINITE ? -INFINITE : peak_[i] + std::log(out[i]);
    }

  private:
    const double* table_ = nullptr;
    int64_t whole_ = 0, left_ = 0;  // entries of the table, and without the axes that were dropped
    bool maximise_ = false;
    std::vector<double> values_, peak_;
};

}  // namespace exact
