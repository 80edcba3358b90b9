// The backward pass: beliefs at nodes, or gradients of log Z at nodes and tables.
#pragma once
#include "passes.hpp"

// Gradient of the tables of one step. The belief of states (i, j) is left[i] * table[i, j] * right[j], where `left`
// holds the chain's weight divided by the sum of all such products (LINEAR), or `lost` is the log of that sum (LOGS).
template <class R, int D, class Tables>
void pair_gradient(const Block<R>& block, const Tables& tables, Room<R>& room, const typename Tables::Table& table,
                   const Lanes<R>* left, const Lanes<R>* right, Lanes<R> lost, Lanes<R> weight, int64_t step,
                   double* sums) {
    const int64_t states = block.given.states;
    for (int64_t i = 0; i < states; ++i)
        for (int64_t j = 0; j < states; ++j) {
            const int64_t at = i * states + j;
            Lanes<R> value;
            if constexpr (D == LINEAR) value = left[i] * table(at) * right[j];
            else value = exp<R>(left[i] + table(at) + right[j] - lost) * weight;
            if constexpr (Tables::SHARED) sums[at] += double(sum_of<R>(value));
            else room.table.get()[at] = value;
        }
    if constexpr (!Tables::SHARED) block.write_tables(step, room.table.get());
}

// Logs of messages; -inf beyond the end of a chain.
template <class R, int D>
void write_messages(const Block<R>& block, Room<R>& room, const Lanes<R>* messages, void* to) {
    const int64_t states = block.given.states;
    for (int64_t t = 0; t < block.longest; ++t) {
        const Mask<R> live = block.lasts_beyond(t);
        for (int64_t k = t * states; k < (t + 1) * states; ++k)
            room.node.get()[k] =
                live ? (D == LINEAR ? log_or_barred<R>(messages[k]) : messages[k]) : splat(-INF<R>);
    }
    block.write_node(to, room.node.get(), -INF<R>);
}

// False if numbers span too much for LINEAR; nothing was written then, except tables that are written again.
template <class R, int D, class Tables>
bool backward(const Block<R>& block, const Tables& tables, Room<R>& room, const Lanes<R>* messages) {
    const Arguments& given = block.given;
    const int64_t states = given.states, table_size = states * states;
    Lanes<R> *node = room.node.get(), *beta = room.few.get();
    const bool gradient = given.weight != nullptr, pairs = given.edge_result != nullptr;
    const Lanes<R> weight = gradient ? block.read_each(given.weight) : Lanes<R>{};
    block.read_node(node);
    for (int64_t t = 0; t < block.longest; ++t) prepare<R, D>(node + t * states, states);
    for (int64_t k = 0; k < states; ++k) beta[k] = splat(ONE<R, D>);
    for (int64_t t = block.longest - 1; t >= 0; --t) {
        const Mask<R> live = block.lasts_beyond(t);
        const Lanes<R>* behind = messages + t * states;
        Lanes<R>*here = node + t * states, *ahead = room.right.get() + t * states;
        if (!multiply<R, D>(here, beta, ahead, states, live)) return false;
        rescale<R, D>(ahead, states);
        const Lanes<R> sum = total_of<R, D>(behind, beta, states);
        if constexpr (D == LINEAR) {
            // What lies behind and what lies ahead may contradict each other.
            if (any_above<R>(live ? splat(SMALLEST<R>) : Lanes<R>{}, sum)) return false;
            const Lanes<R> scale = live ? inverse<R>(sum) : Lanes<R>{}, factor = gradient ? weight * scale : scale;
            for (int64_t k = 0; k < states; ++k) {
                const Lanes<R> belief = behind[k] * beta[k];
                here[k] = gradient ? belief * factor : log_or_barred<R>(belief * factor);
            }
        } else {
            const Lanes<R> scale = larger<R>(sum, splat(LOWEST<R>));
            for (int64_t k = 0; k < states; ++k) {
                const Lanes<R> belief = live ? behind[k] + beta[k] - scale : splat(-INF<R>);
                here[k] = gradient ? exp<R>(smaller<R>(belief, Lanes<R>{})) * weight : belief;
            }
        }
        if (t == 0) break;
        typename Tables::Table table;
        Lanes<R> top;
        if (!tables.template at<D>(block, t - 1, room.table.get(), table, top)) return false;
        pass<R, D, true>(ahead, table, states, beta);
        const Lanes<R>* before = messages + (t - 1) * states;
        if (D == LINEAR && any_above<R>(live ? splat(SMALLEST<R>) : Lanes<R>{}, least_of<R>(beta, states))) return false;
        if (gradient && pairs) {
            Lanes<R>* left = room.left.get() + (t - 1) * states;
            const Lanes<R> lost = total_of<R, D>(before, beta, states);
            const Lanes<R> counted = live ? weight : Lanes<R>{};
            if constexpr (D == LINEAR) {
                if (any_above<R>(live ? splat(SMALLEST<R>) : Lanes<R>{}, lost)) return false;
                const Lanes<R> factor = counted * inverse<R>(lost);
                for (int64_t k = 0; k < states; ++k) left[k] = before[k] * factor;
            }
            // LINEAR adds to shared sums after the pass: it may still fail.
            if constexpr (!Tables::SHARED || D != LINEAR) {
                double* sums = nullptr;
                if constexpr (Tables::SHARED) sums = room.sums.data() + tables.number(block.replica, t - 1) * table_size;
                pair_gradient<R, D>(block, tables, room, table, D == LINEAR ? left : before, ahead,
                                    larger<R>(lost, splat(LOWEST<R>)), counted, t - 1, sums);
            }
        }
        const Mask<R> ended = ~live;  // so the position before is the last of its chain, or lies beyond it
        for (int64_t k = 0; k < states; ++k) beta[k] = ended ? splat(ONE<R, D>) : beta[k];
    }
    if constexpr (Tables::SHARED && D == LINEAR) {
        const int64_t steps = block.longest - 1, at_once = tables.per_step ? 1 : steps;
        for (int64_t step = 0; gradient && pairs && step < steps; step += at_once) {
            const int64_t first = tables.number(block.replica, step) * table_size;
            add_pairs<R>(room.left.get() + step * states, room.right.get() + (step + 1) * states, states, at_once,
                         tables.linear.data() + first, room.sums.data() + first);
        }
    }
    if (given.node_result) block.write_node(given.node_result, node, gradient ? R(0) : -INF<R>);
    if (given.behind) write_messages<R, D>(block, room, messages, given.behind);
    if (given.ahead) write_messages<R, D>(block, room, room.right.get(), given.ahead);
    return true;
}
