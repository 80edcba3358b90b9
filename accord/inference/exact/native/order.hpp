// The order in which nodes are eliminated. Finding the best is NP-hard: several are made, and the cheapest wins.
#pragma once
#include <cmath>
#include <queue>

#include "dissect.hpp"

namespace exact {

constexpr int TURNS = 60;       // orders that are tried, at most
constexpr int32_t SMALL = 500;  // nodes

// What a clique costs: entries of its table, or operations of Gaussian elimination.
enum class Price { table, square };

struct Options {
    Price price = Price::table;
    double limit = INFINITE;  // cliques that cost more are of no use
    double budget = INFINITE; // orders that cost more in all are of no use
    double weight = 1;        // time to process a unit of cost, in steps of planning
    uint64_t seed = 0;
};

struct Planned {
    Nodes order;    // all nodes, unless one is too big
    Nodes too_big;  // where not empty: every order that was tried meets a clique beyond the limit; the smallest
};

class Planner {
  public:
    Planner(const Graph& graph, const std::vector<double>& bits, Options options)
        : graph_(graph), bits_(bits), options_(options), random_(options.seed * 2 + 1) {}

    Planned plan() {
        links_.resize(graph_.size());
        Nodes left(graph_.size()), core;
        for (int32_t v = 0; v < graph_.size(); ++v) left[v] = int32_t(graph_.degree(v));
        peel(left);
        for (int32_t v = 0; v < graph_.size(); ++v)
            if (left[v] > 0) core.push_back(v);
        if (!core.empty()) shorten(core, left);
        // Each connected component of what remains has an order of its own.
        Nodes local(graph_.size(), -1), members;
        for (int32_t start : core) {
            if (left[start] <= 0 || local[start] >= 0) continue;
            members.assign(1, start);
            local[start] = 0;
            for (size_t next = 0; next < members.size(); ++next)
                for (int32_t u : links_[members[next]])
                    if (local[u] < 0) local[u] = int32_t(members.size()), members.push_back(u);
            component(members, local);
        }
        return std::move(planned_);
    }

  private:
    const Graph& graph_;
    const std::vector<double>& bits_;
    const Options options_;
    uint64_t random_;
    std::vector<Nodes> links_;  // of nodes outside trees
    Planned planned_;
    double smallest_ = INFINITE;  // cost of planned_.too_big
    Nodes met_;                   // the smallest clique beyond the limit that orders of this component met
    double met_price_ = INFINITE;
    double steps_ = 0;  // taken for this component

    uint32_t draw() {
        random_ ^= random_ << 13, random_ ^= random_ >> 7, random_ ^= random_ << 17;
        return uint32_t(random_ >> 32);
    }
    double cost(double bits) const { return options_.price == Price::table ? std::exp2(bits) : bits * bits; }

    void meet(double cost, Nodes clique) {
        if (cost < met_price_) met_price_ = cost, met_ = std::move(clique);
    }
    void refuse() {
        if (met_price_ < smallest_) smallest_ = met_price_, planned_.too_big = met_;
    }

    // Trees, from their leaves. Leaves `left` at 0 for what was eliminated.
    void peel(Nodes& left) {
        Nodes leaves;
        std::vector<char> gone(graph_.size(), 0);
        for (int32_t v = 0; v < graph_.size(); ++v)
            if (left[v] <= 1) leaves.push_back(v);
        for (size_t next = 0; next < leaves.size(); ++next) {
            const int32_t v = leaves[next];
            gone[v] = 1, left[v] = 0;
            planned_.order.push_back(v);
            double bits = bits_[v];
            int32_t parent = -1;
            for (const int32_t* u = graph_.begin(v); u != graph_.end(v); ++u)
                if (!gone[*u]) parent = *u, bits += bits_[*u];
            if (cost(bits) > options_.limit) meet(cost(bits), parent < 0 ? Nodes{v} : Nodes{v, parent});
            if (parent >= 0 && --left[parent] == 1) leaves.push_back(parent);
        }
        refuse();
    }

    // Nodes with one or two neighbours. Doing them first never makes the widest clique wider, loops apart.
    void shorten(const Nodes& core, Nodes& left) {
        for (int32_t v : core)
            for (const int32_t* u = graph_.begin(v); u != graph_.end(v); ++u)
                if (left[*u] > 0) links_[v].push_back(*u);
        Nodes ready;
        for (int32_t v : core)
            if (links_[v].size() <= 2) ready.push_back(v);
        for (size_t next = 0; next < ready.size(); ++next) {
            const int32_t v = ready[next];
            if (left[v] <= 0) continue;
            const Nodes around = links_[v];
            double bits = bits_[v];
            for (int32_t u : around) bits += bits_[u];
            if (cost(bits) > options_.limit) continue;
            left[v] = 0;
            planned_.order.push_back(v);
            for (int32_t u : around) remove(links_[u], v);
            if (around.size() == 2) insert(links_[around[0]], around[1]), insert(links_[around[1]], around[0]);
            for (int32_t u : around)
                if (links_[u].size() <= 2) ready.push_back(u);
            Nodes().swap(links_[v]);
        }
    }

    static void remove(Nodes& row, int32_t v) {
        const auto found = std::lower_bound(row.begin(), row.end(), v);
        if (found != row.end() && *found == v) row.erase(found);
    }
    static void insert(Nodes& row, int32_t v) {
        const auto found = std::lower_bound(row.begin(), row.end(), v);
        if (found == row.end() || *found != v) row.insert(found, v);
    }

    // The best of several orders for one component.
    void component(const Nodes& members, const Nodes& local) {
        std::vector<std::pair<int32_t, int32_t>> pairs;
        std::vector<double> bits;
        for (int32_t v : members) {
            bits.push_back(bits_[v]);
            for (int32_t u : links_[v])
                if (u > v) pairs.push_back({local[v], local[u]});
        }
        const Graph graph = make_graph(int32_t(members.size()), pairs);
        Nodes best;
        double price = options_.budget;
        steps_ = 0, met_price_ = INFINITE, met_.clear();
        const auto consider = [&](const Nodes& order, double found) {
            if (order.size() == members.size() && found < price) price = found, best = order;
        };
        double found = 0;
        Nodes order = greedy(graph, bits, 0, price, found, members);
        consider(order, found);
        for (int turn = 0; turn < TURNS && worth(price); ++turn) {
            if (turn == 0) {
                order = order_by_levels(graph), found = priced(graph, bits, order, price, members);
            } else if (turn == 1) {
                order = order_by_dissection(graph), found = priced(graph, bits, order, price, members);
            } else {
                order = greedy(graph, bits, 1 + (turn + 1) % 3, price, found, members);
            }
            consider(order, found);
        }
        if (best.empty()) {
            if (met_.empty()) meet(options_.budget, members);
            refuse();
        }
        for (int32_t v : best) planned_.order.push_back(members[v]);
    }

    // Whether another order may save more time than it takes to make it.
    bool worth(double price) const {
        if (price == options_.budget) return steps_ < 3e8;
        return steps_ < 1e5 || steps_ < 0.1 * options_.weight * price;
    }

    double priced(const Graph& graph, const std::vector<double>& bits, const Nodes& order, double best, const Nodes& members) {
        double total = 0;
        Tree tree;
        steps_ += 50.0 * graph.size();
        const bool whole = make_tree(graph, order, tree, [&](int32_t p, const int32_t* first, const int32_t* last) {
            double sum = bits[order[p]];
            for (const int32_t* q = first; q != last; ++q) sum += bits[order[*q]];
            steps_ += 10.0 * double(last - first);
            total += cost(sum);
            if (cost(sum) > options_.limit) {
                Nodes clique{members[order[p]]};
                for (const int32_t* q = first; q != last; ++q) clique.push_back(members[order[*q]]);
                meet(cost(sum), clique);
            }
            return cost(sum) <= options_.limit && total < best;
        });
        return whole ? total : INFINITE;
    }

    // Eliminates, at each step, the node with the smallest clique (kind 0), the fewest new links (1), of those the
    // smallest clique (2), or the new links of least weight (3). Ties are broken at random.
    Nodes greedy(const Graph& graph, const std::vector<double>& bits, int kind, double best, double& total, const Nodes& members) {
        struct Item {
            double cost;
            uint32_t tie;
            int32_t node;
            bool operator<(const Item& other) const {
                return cost != other.cost ? cost > other.cost : tie > other.tie;
            }
        };
        const int32_t size = graph.size();
        std::vector<Nodes> links(size);
        for (int32_t v = 0; v < size; ++v) links[v].assign(graph.begin(v), graph.end(v));
        std::vector<double> current(size), clique(size);
        std::vector<int32_t> mark(size, -1);
        int32_t stamp = 0;
        const auto rate = [&](int32_t v) {
            clique[v] = bits[v];
            for (int32_t u : links[v]) clique[v] += bits[u];
            steps_ += 4.0 * double(links[v].size());
            if (kind == 0 || links[v].size() > 64) return clique[v] + (kind ? 1e6 : 0);
            double missing = 0;
            ++stamp;
            for (int32_t u : links[v]) mark[u] = stamp;
            for (int32_t u : links[v]) {
                double present = 0, all = 0;
                if (kind == 3) {
                    for (int32_t w : links[u])
                        if (mark[w] == stamp) present += bits[w];
                    all = clique[v] - bits[v] - bits[u];
                    missing += bits[u] * (all - present);
                } else {
                    for (int32_t w : links[u]) present += mark[w] == stamp;
                    missing += double(links[v].size()) - 1 - present;
                }
                steps_ += 2.0 * double(links[u].size());
            }
            return kind == 2 ? missing + 1e-4 * clique[v] : missing;
        };
        std::vector<Item> items;
        for (int32_t v = 0; v < size; ++v) current[v] = rate(v), items.push_back({current[v], draw(), v});
        std::priority_queue<Item> queue(std::less<Item>(), std::move(items));
        std::vector<char> gone(size, 0);
        Nodes order, merged;
        total = 0;
        while (!queue.empty()) {
            const Item item = queue.top();
            queue.pop();
            const int32_t v = item.node;
            if (gone[v] || item.cost != current[v]) continue;
            if (options_.price == Price::square && 4 * links[v].size() > size_t(size) - order.size()) {
                // What is left is nearly complete: its order hardly matters, and links would take long to count.
                for (int32_t u = 0; u < size; ++u)
                    if (!gone[u]) order.push_back(u);
                total = priced(graph, bits, order, best, members);
                return order;
            }
            const double price = cost(clique[v]);
            total += price;
            if (price > options_.limit) {
                Nodes wide{members[v]};
                for (int32_t u : links[v]) wide.push_back(members[u]);
                meet(price, wide);
            }
            if (price > options_.limit || total >= best) return {};
            gone[v] = 1;
            order.push_back(v);
            steps_ += 50;
            const Nodes around = std::move(links[v]);
            for (int32_t u : around) {
                merged.clear();
                std::set_union(links[u].begin(), links[u].end(), around.begin(), around.end(), std::back_inserter(merged));
                links[u].clear();
                for (int32_t w : merged)
                    if (w != u && w != v) links[u].push_back(w);
                steps_ += 4.0 * double(merged.size());
            }
            // New links also change how many are missing one step further on; small graphs can afford to count again.
            Nodes touched = around;
            if (kind && size <= SMALL) {
                ++stamp;
                for (int32_t u : around) mark[u] = stamp;
                for (int32_t u : around)
                    for (int32_t w : links[u])
                        if (mark[w] != stamp) mark[w] = stamp, touched.push_back(w);
            }
            for (int32_t u : touched) {
                const double changed = rate(u);
                if (changed != current[u]) current[u] = changed, queue.push({changed, draw(), u});
            }
        }
        return order;
    }
};

}  // namespace exact
