// Hubs: nodes with so many edges that a total added up in single precision would be mostly rounding.
//
// A sweep adds messages to totals one by one, and a sum of 100,000 messages of about one nat loses what two large groups
// of neighbours that disagree leave over. So after each sweep the totals of hubs are computed again from the messages,
// in double precision. Only graphs that are split into tiles can have hubs.
#pragma once
#include "storage.hpp"

// The sum over all messages to a hub, in double precision; `value(block, side)` is the number to add for each lane.
template <class R, class Value> double sum_to_hub(const Hub& hub, const Value& value) {
    constexpr int W = WIDTH<R>;
    Vec<double, W> sum{};
    for (const HubArcs& arcs : hub.arcs) {
        const Lanes<R> each = lanes_of<R>(arcs.lanes) ? value(arcs.block, arcs.side) : Lanes<R>{};
        sum += __builtin_convertvector(each, Vec<double, W>);
    }
    double total = 0;
    for (int l = 0; l < W; ++l) total += sum[l];
    return total;
}

// Biases of all messages to a hub, added to `sums` [states - 1]; for tables that are stored without their biases.
template <class R> void add_biases_to_hub(const Sweep<R>& s, const Hub& hub, double* sums) {
    constexpr int W = WIDTH<R>;
    const int rest = s.states - 1;
    alignas(64) R biased[2 * MAX_REDUCED * W];
    for (const HubArcs& arcs : hub.arcs) {
        if (s.states == 2) std::copy_n(s.biases + int64_t(arcs.block) * 2 * W, 2 * W, biased);
        else find_biases(s, arcs.block, biased);
        for (int l = 0; l < W; ++l) {
            if (!(arcs.lanes >> l & 1)) continue;
            const double weight = s.weights ? double(s.weights[int64_t(arcs.block) * W + l]) : 1.0;
            for (int k = 0; k < rest; ++k) sums[k] += weight * double(biased[(arcs.side * rest + k) * W + l]);
        }
    }
}
