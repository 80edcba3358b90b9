// In which order nodes are eliminated, and which keep their labels because tables would become too large.
#pragma once
#include <iterator>

#include "../model/model.hpp"

namespace search {

// In which order nodes are eliminated, and the nodes around each at that moment.
struct Plan {
    Labels order;                              // nodes that are free
    std::vector<std::vector<int32_t>> around;  // by position: neighbours when eliminated, earliest eliminated first
    double work = 0;                           // entries of all tables
    double effort = 0;                         // of making the plan, in operations
    double largest = 0;                        // entries of the largest one
    int32_t fixed = 0;                         // nodes that were left out
};

class Planner {
  public:
    Planner(const Model& m, const Clock& clock) : m_(m), clock_(clock), links_(m.nodes), key_(m.nodes), slot_(m.nodes), place_(m.nodes) {}

    // Eliminate candidates while tables have at most `limit` entries.
    // The next node is the one with the smallest table or, with `fill`, with the fewest new links; ties at random.
    // With `whole`, it gives up as soon as a node would have to be left out, or tables need more work than that.
    Plan make(const Labels& candidates, double limit, bool fill, Random& random, double whole = 0) {
        Plan plan;
        fill_ = fill;
        for (auto& bucket : buckets_) bucket.clear();
        std::fill(slot_.begin(), slot_.end(), -1);
        for (int32_t v : candidates) slot_[v] = 0, place_[v] = -1;
        size_t left = candidates.size() - peel(candidates, limit, plan), lowest = 0;
        for (int32_t v : candidates) {
            if (place_[v] >= 0) continue;
            links_[v].clear();
            for (const int32_t* u = m_.near_begin(v); u != m_.near_end(v); ++u)
                if (slot_[*u] >= 0) links_[v].push_back(*u);
            std::sort(links_[v].begin(), links_[v].end());
        }
        for (int32_t v : candidates)
            if (place_[v] < 0) push(v);
        for (int64_t step = 1; left; ++step) {
            if ((step & 255) == 0 && clock_.late()) {  // the others keep their labels
                plan.fixed += int32_t(left);
                break;
            }
            while (buckets_[lowest].empty()) ++lowest;
            auto& bucket = buckets_[lowest];
            const int32_t v = bucket[random.below(uint32_t(bucket.size()))];
            const double entries = std::exp2(bits(v));
            if (whole > 0 && (entries > limit || plan.work > whole)) {
                plan.fixed = int32_t(left);
                return plan;
            }
            if (entries > limit) {
                const int32_t hub = drop(lowest, random);
                pull(hub), --left, ++plan.fixed;
                const auto around = links_[hub];
                for (int32_t u : around) unlink(u, hub);
                for (int32_t u : around) lowest = std::min(lowest, push(u));
                continue;
            }
            plan.work += entries, plan.largest = std::max(plan.largest, entries);
            pull(v), --left;
            place_[v] = int32_t(plan.order.size());
            plan.order.push_back(v);
            plan.around.push_back(links_[v]);
            const auto& around = plan.around.back();
            for (int32_t u : around) unlink(u, v), join(u, around);
            for (int32_t u : around) lowest = std::min(lowest, push(u));
        }
        return arrange(plan);
    }

    // Eliminate all nodes in a given order; gives up as above.
    Plan follow(const Labels& order, double limit, double whole) {
        Plan plan;
        std::fill(slot_.begin(), slot_.end(), 0);
        for (int32_t v : order) {
            links_[v].assign(m_.near_begin(v), m_.near_end(v));
            std::sort(links_[v].begin(), links_[v].end());
        }
        for (int32_t v : order) {
            const double entries = std::exp2(bits(v));
            plan.work += entries, plan.largest = std::max(plan.largest, entries);
            if (plan.work > whole || entries > limit || clock_.late()) {
                plan.fixed = 1;
                return plan;
            }
            place_[v] = int32_t(plan.order.size());
            plan.order.push_back(v);
            plan.around.push_back(links_[v]);
            for (int32_t u : plan.around.back()) unlink(u, v), join(u, plan.around.back());
        }
        return arrange(plan);
    }

  private:
    // Eliminates trees from their leaves, which takes the same time for every node, however many neighbours it has.
    size_t peel(const Labels& candidates, double limit, Plan& plan) {
        for (int32_t v : candidates) {
            key_[v] = 0;  // neighbours that are left
            for (const int32_t* u = m_.near_begin(v); u != m_.near_end(v); ++u) key_[v] += slot_[*u] >= 0;
        }
        Labels leaves;
        for (int32_t v : candidates)
            if (key_[v] <= 1) leaves.push_back(v);
        for (size_t next = 0; next < leaves.size(); ++next) {
            const int32_t v = leaves[next];
            int32_t parent = -1;
            for (const int32_t* u = m_.near_begin(v); u != m_.near_end(v) && parent < 0; ++u)
                if (slot_[*u] >= 0) parent = *u;
            const double entries = double(m_.count[v]) * (parent < 0 ? 1 : m_.count[parent]);
            if (entries > limit) continue;
            plan.work += entries, plan.largest = std::max(plan.largest, entries);
            slot_[v] = -1;
            place_[v] = int32_t(plan.order.size());
            plan.order.push_back(v);
            plan.around.emplace_back();
            if (parent < 0) continue;
            plan.around.back().push_back(parent);
            if (--key_[parent] == 1) leaves.push_back(parent);
        }
        return plan.order.size();
    }

    // Nodes around each in the order of elimination, without those that were left out later.
    Plan& arrange(Plan& plan) {
        for (const auto& around : plan.around) plan.effort += 100 + 5.0 * double(around.size() * around.size());
        for (auto& around : plan.around) {
            around.erase(std::remove_if(around.begin(), around.end(), [&](int32_t u) { return place_[u] < 0; }),
                         around.end());
            std::sort(around.begin(), around.end(), [&](int32_t a, int32_t b) { return place_[a] < place_[b]; });
        }
        return plan;
    }

    const Model& m_;
    const Clock& clock_;
    std::vector<std::vector<int32_t>> links_;
    std::vector<int32_t> key_, slot_, place_, merged_;
    std::vector<std::vector<int32_t>> buckets_ = std::vector<std::vector<int32_t>>(1025);
    bool fill_ = false;

    double bits(int32_t v) const {
        double sum = std::log2(double(m_.count[v]));
        for (int32_t u : links_[v]) sum += m_.count[u] == 2 ? 1.0 : std::log2(double(m_.count[u]));
        return std::min(sum, 1000.0);
    }
    int32_t cost(int32_t v) const {
        if (!fill_ || links_[v].size() > 40) return std::min<int32_t>(1024, int32_t(2 * bits(v)) + (fill_ ? 800 : 0));
        int32_t missing = 0;
        for (size_t i = 0; i < links_[v].size(); ++i)
            for (size_t j = 0; j < i; ++j)
                missing += !std::binary_search(links_[links_[v][i]].begin(), links_[links_[v][i]].end(), links_[v][j]);
        return std::min(missing, 800);
    }
    size_t push(int32_t v) {
        const int32_t key = cost(v);
        if (key_[v] == key && slot_[v] > 0) return key;
        if (slot_[v] > 0) pull(v);
        key_[v] = key;
        buckets_[key].push_back(v);
        slot_[v] = int32_t(buckets_[key].size());
        return key;
    }
    void pull(int32_t v) {
        auto& bucket = buckets_[key_[v]];
        const int32_t last = bucket.back();
        bucket[slot_[v] - 1] = last, slot_[last] = slot_[v];
        bucket.pop_back();
        slot_[v] = 0;
    }
    void unlink(int32_t from, int32_t v) {
        auto& links = links_[from];
        const auto found = std::lower_bound(links.begin(), links.end(), v);
        if (found != links.end() && *found == v) links.erase(found);
    }
    void join(int32_t v, const std::vector<int32_t>& around) {
        merged_.clear();
        std::set_union(links_[v].begin(), links_[v].end(), around.begin(), around.end(), std::back_inserter(merged_));
        const auto self = std::lower_bound(merged_.begin(), merged_.end(), v);
        if (self != merged_.end() && *self == v) merged_.erase(self);
        links_[v].swap(merged_);
    }
    // Which node to leave out when every table is too large: of a few random ones, that with the most links.
    int32_t drop(size_t lowest, Random& random) {
        int32_t found = -1;
        size_t most = 0;
        for (int tries = 0; tries < 8; ++tries) {
            const auto& bucket = buckets_[lowest];
            const int32_t v = bucket[random.below(uint32_t(bucket.size()))];
            for (int32_t u : links_[v])
                if (found < 0 || links_[u].size() > most) found = u, most = links_[u].size();
            if (found < 0 || links_[v].size() > most) found = v, most = links_[v].size();
        }
        return found;
    }
};

}  // namespace search
