// Which states the allowed combinations of a factor still use (compact tables, Demeulenaere et al. 2016).
//
// The allowed combinations are numbered, and every state of every node has a bit for each: whether the combination uses
// it. The combinations that are left are those whose states are all possible.
#pragma once
#include "../model/model.hpp"

namespace search {

class Support {
  public:
    explicit Support(const Model& m) : m_(m), words_(m.factors.size(), 0), at_(m.members.size()) {
        for (size_t f = 0; f < m.factors.size(); ++f) note(int32_t(f));
    }

    static bool fits(const Model& m) {
        double words = 0;
        for (const Factor& f : m.factors)
            for (int32_t s = f.first; s < f.first + f.order; ++s) words += double(f.size) / 64 * m.members[s].count;
        return words <= MOST_WORDS;
    }

    bool constrains(int32_t f) const { return words_[f] > 0; }
    double effort(int32_t f) const {
        const Factor& factor = m_.factors[f];
        double states = 0;
        for (int32_t s = factor.first; s < factor.first + factor.order; ++s) states += m_.members[s].count;
        return 2 * states * words_[f];
    }

    // The combinations of states that `has` says are possible.
    template <class Has>
    void refresh(int32_t f, Has has) {
        const Factor& factor = m_.factors[f];
        current_ = f;
        left_.assign(words_[f], ~uint64_t(0));
        for (int32_t s = factor.first; s < factor.first + factor.order; ++s) {
            any_.assign(words_[f], 0);
            for (int32_t i = 0; i < m_.members[s].count; ++i)
                if (has(m_.members[s].node, i))
                    for (int32_t w = 0; w < words_[f]; ++w) any_[w] |= mask(s, i)[w];
            for (int32_t w = 0; w < words_[f]; ++w) left_[w] &= any_[w];
        }
    }
    // Whether one of them uses a state of the node at a slot.
    bool holds(int32_t slot, int32_t state) const {
        const uint64_t* bits = mask(slot, state);
        for (int32_t w = 0; w < words_[current_]; ++w)
            if (left_[w] & bits[w]) return true;
        return false;
    }

  private:
    static constexpr double MOST_WORDS = 2e7;  // 160 MB
    const Model& m_;
    std::vector<int32_t> words_;  // by factor; 0: nothing is forbidden
    std::vector<int64_t> at_;     // by slot: where the bits of its states begin
    std::vector<uint64_t> masks_, left_, any_;
    int32_t current_ = 0;

    const uint64_t* mask(int32_t slot, int32_t state) const {
        return masks_.data() + at_[slot] + int64_t(state) * words_[m_.factor_of[slot]];
    }

    void note(int32_t f) {
        const Factor& factor = m_.factors[f];
        const double* table = m_.tables.data() + factor.table;
        std::vector<int64_t> allowed;
        for (int64_t i = 0; i < factor.size; ++i)
            if (!m_.barred(m_.edges + f, table[i])) allowed.push_back(i);
        if (int64_t(allowed.size()) == factor.size) return;
        words_[f] = int32_t(allowed.size() / 64 + 1);
        for (int32_t s = factor.first; s < factor.first + factor.order; ++s) {
            const Member& u = m_.members[s];
            at_[s] = int64_t(masks_.size());
            masks_.resize(masks_.size() + size_t(u.count) * words_[f], 0);
            for (size_t i = 0; i < allowed.size(); ++i) {
                const int64_t state = allowed[i] / u.stride % u.count;
                masks_[at_[s] + state * words_[f] + int64_t(i / 64)] |= uint64_t(1) << (i % 64);
            }
        }
    }
};

}  // namespace search
