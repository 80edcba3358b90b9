// The best labels of some nodes given all others, by eliminating them one by one.
//
// Eliminating a node makes a table over its neighbours at that moment. Where even the cheapest such table would be too
// large, a node with many neighbours is left out instead: it keeps its label. So the same code solves a field exactly
// (nothing was left out) and moves large blocks of a field that is too wide for that.
#pragma once
#include <utility>

#include "plan.hpp"

namespace search {

// table += values, which is indexed with the given strides. The table has the first `axes` axes.
inline void add(double* table, const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides, size_t axes,
                const double* values) {
    std::vector<int64_t> offsets;
    size_t inner = 0;
    int64_t block = 1, entries = 1;
    for (size_t d = 0; d < axes; ++d) entries *= sizes[d];
    bool plain = true;  // the innermost axes are stored in the same order
    while (inner < axes && (plain && strides[inner] == block ? true : block * sizes[inner] <= 512)) {
        plain = plain && strides[inner] == block;
        block *= sizes[inner++];
    }
    if (!plain) {
        offsets.assign(block, 0);
        int64_t have = 1;
        for (size_t d = 0; d < inner; ++d) {
            for (int64_t s = 1; s < sizes[d]; ++s)
                for (int64_t i = 0; i < have; ++i) offsets[s * have + i] = offsets[i] + s * strides[d];
            have *= sizes[d];
        }
    }
    std::vector<int64_t> at(axes, 0);
    int64_t base = 0;
    double* out = table;
    const int64_t blocks = entries / block;
    for (int64_t b = 0; b < blocks; ++b, out += block) {
        const double* from = values + base;
        if (plain)
            for (int64_t i = 0; i < block; ++i) out[i] += from[i];
        else
            for (int64_t i = 0; i < block; ++i) out[i] += from[offsets[i]];
        for (size_t d = inner; d < axes; ++d) {
            base += strides[d];
            if (++at[d] < sizes[d]) break;
            base -= strides[d] * sizes[d], at[d] = 0;
        }
    }
}

class Eliminator {
  public:
    explicit Eliminator(const Model& m) : m_(m), place_(m.nodes, -1) {}

    // The best labels of the plan's nodes given x elsewhere; written to x. `noise` breaks ties at random.
    // Returns false where time ran out before the end.
    bool solve(const Plan& plan, Labels& x, Random& random, double noise, double deadline, const Clock& clock) {
        const size_t size = plan.order.size();
        clock.add(3 * plan.work + 300.0 * double(size));
        choices_.assign(size, {});
        arrived_.assign(size, {});
        for (size_t p = 0; p < size; ++p) place_[plan.order[p]] = int32_t(p);
        bool done = true;
        for (size_t p = 0; p < size && done; ++p) {
            if (plan.largest > 1e4 || (p & 1023) == 0) done = !clock.past(deadline);
            if (done) reduce(plan, p, x, random, noise);
        }
        if (done)
            for (size_t p = size; p-- > 0;) {
                int64_t index = 0, stride = 1;
                for (int32_t u : plan.around[p]) index += stride * x[u], stride *= m_.count[u];
                x[plan.order[p]] = chosen(p, index);
            }
        for (int32_t v : plan.order) place_[v] = -1;
        return done;
    }

  private:
    struct Message {
        std::vector<int32_t> scope;
        std::vector<double> values;
    };
    // Something that is added to a node's table, once that has the axes it depends on.
    struct Addend {
        std::vector<int64_t> strides;
        size_t axes;
        const double* values;
    };
    const Model& m_;
    std::vector<int32_t> place_;
    std::vector<Addend> parts_;
    std::vector<std::vector<Message>> arrived_;  // by position: tables of nodes eliminated before
    std::vector<std::vector<uint8_t>> choices_;  // by position: best state for each state of the nodes around
    std::vector<double> table_;

    int32_t chosen(size_t p, int64_t index) const {
        const auto& bytes = choices_[p];
        if (wide_of(p)) return bytes[2 * index] | bytes[2 * index + 1] << 8;
        return bytes[index];
    }
    std::vector<uint8_t> wide_;
    bool wide_of(size_t p) const { return p < wide_.size() && wide_[p]; }

    void reduce(const Plan& plan, size_t p, const Labels& x, Random& random, double noise) {
        const int32_t v = plan.order[p], k = m_.count[v];
        const auto& around = plan.around[p];
        std::vector<double> own(m_.unary.begin() + m_.at[v], m_.unary.begin() + m_.at[v] + k);
        if (noise > 0)
            for (auto& value : own) value += noise * random.uniform();
        std::vector<int64_t> sizes{k};
        for (int32_t u : around) sizes.push_back(m_.count[u]);
        int64_t entries = 1;
        for (int64_t each : sizes) entries *= each;
        std::vector<const Arc*> to(around.size(), nullptr);
        for (const Arc* a = m_.begin(v); a != m_.end(v); ++a) {
            const double* table = m_.tables.data() + a->table;
            if (place_[a->other] < 0) {
                for (int32_t i = 0; i < k; ++i) own[i] += table[int64_t(i) * a->own + int64_t(x[a->other]) * a->far];
            } else if (place_[a->other] > int32_t(p)) {
                to[std::find(around.begin(), around.end(), a->other) - around.begin()] = a;
            }
        }
        // What else depends on the node: factors, and tables of nodes that were eliminated before.
        parts_.clear();
        for (const int32_t* s = m_.slots_begin(v); s != m_.slots_end(v); ++s) take_factor(plan, p, *s, x);
        for (auto& message : arrived_[p]) {
            Addend part{std::vector<int64_t>(sizes.size(), 0), 0, message.values.data()};
            int64_t stride = 1;
            size_t d = 0;
            for (int32_t u : message.scope) {
                while (d > 0 ? around[d - 1] != u : v != u) ++d;
                part.strides[d] = stride, stride *= m_.count[u], part.axes = d + 1;
            }
            parts_.push_back(std::move(part));
        }
        const auto add_parts = [&](size_t axes) {  // that depend on the last of so many axes
            for (const Addend& part : parts_)
                if (part.axes == axes) add(table_.data(), sizes, part.strides, axes, part.values);
        };
        // Axis by axis: the table so far is repeated for every state of the next node, plus what depends on that node.
        table_.resize(entries);
        std::copy(own.begin(), own.end(), table_.begin());
        int64_t have = k;
        add_parts(1);
        for (size_t d = 0; d < around.size(); ++d) {
            const int64_t states = sizes[d + 1];
            for (int64_t s = states; s-- > 0;) {
                double* out = table_.data() + s * have;
                if (!to[d]) {
                    if (s) std::copy(table_.data(), table_.data() + have, out);
                    continue;
                }
                const double* row = m_.tables.data() + to[d]->table + s * to[d]->far;
                for (int32_t j = 0; j < k; ++j) own[j] = row[int64_t(j) * to[d]->own];
                spread(table_.data(), own.data(), out, have, k);
            }
            have *= states;
            add_parts(d + 2);
        }
        finish(plan, p, entries / k, k);
        arrived_[p].clear(), arrived_[p].shrink_to_fit();
    }

    // A factor counts where the first of its nodes is eliminated. Nodes outside the plan keep their states.
    void take_factor(const Plan& plan, size_t p, int32_t slot, const Labels& x) {
        const Factor& f = m_.factors[m_.factor_of[slot]];
        const auto& around = plan.around[p];
        Addend part{std::vector<int64_t>(around.size() + 1, 0), 1, m_.tables.data() + f.table};
        for (int32_t i = f.first; i < f.first + f.order; ++i) {
            const Member& u = m_.members[i];
            if (place_[u.node] < 0)
                part.values += x[u.node] * u.stride;
            else if (place_[u.node] < int32_t(p))
                return;
            else {
                const size_t d = i == slot ? 0 : 1 + (std::find(around.begin(), around.end(), u.node) - around.begin());
                part.strides[d] = u.stride, part.axes = std::max(part.axes, d + 1);
            }
        }
        parts_.push_back(std::move(part));
    }

    // out = table + row, repeated.
    static void spread(const double* table, const double* row, double* out, int64_t size, int32_t k) {
        if (k == 2) {
            const double a = row[0], b = row[1];
            for (int64_t i = 0; i < size; i += 2) out[i] = table[i] + a, out[i + 1] = table[i + 1] + b;
            return;
        }
        for (int64_t i = 0; i < size; i += k)
            for (int32_t j = 0; j < k; ++j) out[i + j] = table[i + j] + row[j];
    }

    void finish(const Plan& plan, size_t p, int64_t rest, int32_t k) {
        const auto& around = plan.around[p];
        Message message{around, std::vector<double>(rest)};
        if (wide_.size() < choices_.size()) wide_.resize(choices_.size());
        wide_[p] = k > 256;
        auto& choices = choices_[p];
        choices.resize(wide_[p] ? 2 * rest : rest);
        const double* t = table_.data();
        if (k == 2) {
            for (int64_t i = 0; i < rest; ++i) {
                const double a = t[2 * i], b = t[2 * i + 1];
                message.values[i] = std::max(a, b), choices[i] = b > a;
            }
        } else {
            for (int64_t i = 0; i < rest; ++i, t += k) {
                int32_t best = 0;
                for (int32_t j = 1; j < k; ++j)
                    if (t[j] > t[best]) best = j;
                message.values[i] = t[best];
                if (wide_[p])
                    choices[2 * i] = uint8_t(best), choices[2 * i + 1] = uint8_t(best >> 8);
                else
                    choices[i] = uint8_t(best);
            }
        }
        if (!around.empty()) arrived_[place_[around[0]]].push_back(std::move(message));
    }
};

}  // namespace search
