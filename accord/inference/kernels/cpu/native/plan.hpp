// Assigns every edge to a lane of a block, and decides what threads may work on at the same time.
//
// The edges of one graph, or of several small graphs, form a unit. A unit is solved completely before its memory is
// used again, so small graphs stay in cache. The nodes of a large graph are split into groups, and its edges into
// tiles, one for each pair of groups. Tiles without a common group use different totals. Threads process such tiles in
// rounds, as in a round-robin tournament, so they need neither locks nor private buffers, and every node adds up its
// messages in the same order for any number of threads: results are the same to the bit.
//
// If some nodes belong to other processes (distributed/propagation/native/parts.cpp), they have groups of their own. Edges to them
// come in rounds after all others, so that those others can be processed before the totals of such nodes are known.
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "team.hpp"

// An allocator that does not initialise, for numbers that are written before they are read.
template <class T> struct Unset : std::allocator<T> {
    template <class U> struct rebind { using other = Unset<U>; };
    template <class U> void construct(U*) noexcept {}
    template <class U, class... A> void construct(U* at, A&&... from) { ::new (at) U(std::forward<A>(from)...); }
};
template <class T> using List = std::vector<T, Unset<T>>;

struct Tile {
    int64_t first, last;  // blocks
};

struct HubArcs {
    int32_t block;  // counted from the beginning of the unit
    int32_t side;   // 0: along the edges, 1: against them
    uint32_t lanes;
};
struct Hub {
    int64_t row;
    std::vector<HubArcs> arcs;  // all arcs into the node
};

struct Unit {
    int64_t first_block = 0, last_block = 0;
    int64_t first_row = 0, last_row = 0;
    int64_t first_graph = 0, last_graph = 0;
    int groups = 1;
    std::vector<int64_t> group_rows;         // [groups + 1]: where the rows of a group begin, counted from first_row
    std::vector<std::vector<Tile>> rounds;   // [round][tile]; round 0 holds the tiles within one group
    size_t inner_rounds = 0;                 // rounds before those of edges to nodes of other processes
    bool shared = false;                     // all threads work on it together
    std::vector<Hub> hubs;

    int64_t blocks() const { return last_block - first_block; }
    int64_t rows() const { return last_row - first_row; }
    bool one_graph() const { return last_graph - first_graph == 1; }
};

struct Plan {
    std::vector<Unit> units;
    List<int32_t> edge, source, target;               // [blocks * lanes]; edge -1: an empty lane
    std::vector<int32_t> slot;                        // [blocks * lanes]: which graph of its unit, if that has several
    std::vector<uint32_t> live;                       // [blocks]: bits of the lanes in use
    std::vector<int32_t> row_node;                    // node of a row; -1: a spare row for empty lanes
    std::vector<int32_t> graphs;                      // graphs of all units, concatenated
};

struct Sizes {
    int64_t nodes, edges, graphs, replicas;
    int lanes, threads;
    int64_t edge_bytes;  // table and messages of one edge in a block
    int64_t row_bytes;   // totals of one node
    int64_t own = -1;    // nodes from this one on belong to other processes; -1: none, and small graphs are not split
};

constexpr int64_t LARGE = 2048;            // edges; smaller graphs are not split into tiles
constexpr int64_t HUB = 2048;              // edges of a node from which on its totals are added up in double precision
constexpr int64_t BUNDLE_BYTES = 1 << 17;  // size of small graphs solved together: well within a core's own cache
constexpr int64_t NEAR_BUCKET = 1 << 14;   // bytes of totals of a bucket of nodes: two fit the first-level cache
constexpr int64_t OWN_CACHE = 1 << 20;     // bytes of totals that stay in a core's own cache, whatever the order is
constexpr int64_t MANY = 1 << 18;          // edges; sorting fewer takes less time than starting a thread
constexpr int MAX_TEAM = 16;               // threads on one graph; with more, waiting for each other costs too much

class Planner {
  public:
    // `graph` may be null if there is only one.
    Planner(const Sizes& sizes, const int64_t* source, const int64_t* target, const int64_t* graph)
        : sizes(sizes), source(source), target(target), row_of(sizes.nodes, -1) {
        std::vector<int64_t> start(sizes.graphs + 1, 0);
        if (graph) {
            for (int64_t e = 0; e < sizes.edges; ++e) ++start[graph[e] + 1];
            std::partial_sum(start.begin(), start.end(), start.begin());
            order.resize(sizes.edges);
            std::vector<int64_t> next(start.begin(), start.end() - 1);
            for (int64_t e = 0; e < sizes.edges; ++e) order[next[graph[e]]++] = int32_t(e);
        } else {
            start[1] = sizes.edges;
        }

        reserve();
        for (int64_t g = 0; g < sizes.graphs; ++g) {
            const int64_t count = start[g + 1] - start[g];
            if (count == 0) continue;
            if (count >= LARGE || sizes.own >= 0) {
                close_bundle();
                add_large(g, start[g], start[g + 1]);
            } else {
                add_small(g, start[g], start[g + 1]);
            }
        }
        close_bundle();
    }
    Plan plan;

  private:
    const Sizes sizes;
    const int64_t *source, *target;
    std::vector<int32_t> row_of, degree;
    std::vector<int32_t> order;  // edges sorted by graph; empty if there is only one
    Unit bundle;
    bool open = false;

    void reserve() {
        // Small graphs leave lanes empty; a large graph does so only at the end of its tiles.
        const int64_t lanes = sizes.edges + (sizes.graphs > 1 ? sizes.edges / 4 : 0) + 1024 * sizes.lanes;
        for (auto* list : {&plan.edge, &plan.source, &plan.target}) list->reserve(lanes);
        plan.row_node.reserve(std::min(sizes.nodes, 2 * sizes.edges) + sizes.edges / 64 + 64);
    }

    struct Record {
        int32_t source, target, edge;  // rows, counted from the beginning of the unit; edge of the input
    };
    void push(const Record& record) {
        plan.edge.push_back(record.edge);
        plan.source.push_back(record.source);
        plan.target.push_back(record.target);
    }
    int32_t edge_at(int64_t n) const { return order.empty() ? int32_t(n) : order[n]; }
    int32_t row(const Unit& unit, int64_t node) {
        if (row_of[node] < 0) {
            row_of[node] = int32_t(int64_t(plan.row_node.size()) - unit.first_row);
            plan.row_node.push_back(int32_t(node));
        }
        return row_of[node];
    }
    // Fill the block with empty lanes, which write to a spare row.
    void fill_block(int32_t spare) {
        while (plan.edge.size() % sizes.lanes) push({spare, spare, -1});
    }
    int64_t blocks() const { return int64_t(plan.edge.size()) / sizes.lanes; }
    void note_live(int64_t first) {
        for (int64_t b = first; b < blocks(); ++b) {
            uint32_t bits = 0;
            for (int l = 0; l < sizes.lanes; ++l) bits |= uint32_t(plan.edge[b * sizes.lanes + l] >= 0) << l;
            plan.live.push_back(bits);
        }
    }
    Unit begin() const {
        Unit unit;
        unit.first_block = blocks();
        unit.first_row = int64_t(plan.row_node.size());
        unit.first_graph = int64_t(plan.graphs.size());
        return unit;
    }
    void end(Unit& unit) {
        unit.last_block = blocks();
        unit.last_row = int64_t(plan.row_node.size());
        unit.last_graph = int64_t(plan.graphs.size());
        note_live(unit.first_block);
        plan.units.push_back(std::move(unit));
    }

    // ---- small graphs: several to a unit

    int32_t spare_row = 0;
    void add_small(int64_t graph, int64_t first, int64_t last) {
        if (!open) {
            bundle = begin();
            plan.row_node.push_back(-1);
            spare_row = 0;
            open = true;
        }
        // A graph that does not fit in the last quarter of a block starts a new one: graphs in different blocks stop
        // independently.
        const int64_t left = (sizes.lanes - plan.edge.size() % sizes.lanes) % sizes.lanes;
        if (last - first > left && 4 * left <= sizes.lanes) fill_block(spare_row);
        const int32_t slot = int32_t(int64_t(plan.graphs.size()) - bundle.first_graph);
        for (int64_t n = first; n < last; ++n) {
            const int32_t e = edge_at(n);
            push({row(bundle, source[e]), row(bundle, target[e]), e});
            plan.slot.resize(plan.edge.size() - 1);
            plan.slot.push_back(slot);
        }
        plan.graphs.push_back(int32_t(graph));
        const int64_t used = int64_t(plan.edge.size()) - bundle.first_block * sizes.lanes;
        if (used * sizes.edge_bytes >= BUNDLE_BYTES) close_bundle();
    }
    void close_bundle() {
        if (!open) return;
        fill_block(spare_row);
        plan.slot.resize(plan.edge.size());
        bundle.group_rows = {0, int64_t(plan.row_node.size()) - bundle.first_row};
        bundle.rounds = {{Tile{bundle.first_block, blocks()}}};
        end(bundle);
        open = false;
    }

    // ---- a large graph: groups and tiles

    void add_large(int64_t graph, int64_t first, int64_t last) {
        Unit unit = begin();
        const int team = std::min(sizes.threads, MAX_TEAM);
        const int inner = std::max(4, 2 * team);
        const int groups = unit.groups = sizes.own < 0 ? inner : 2 * inner;
        const std::vector<uint8_t> group_of = add_groups(unit, first, last);
        plan.graphs.push_back(int32_t(graph));
        unit.shared = team > 1 && 4 * team * (last - first) > sizes.edges * sizes.replicas;

        // Number the tiles in the order of their rounds; pairs follow the circle method.
        std::vector<int32_t> tile_of(groups * groups);
        std::vector<int> tiles_in_round = {groups};
        int tiles = 0;
        std::vector<Order> orders;
        const auto number = [&](int a, int b) {
            tile_of[a * groups + b] = tile_of[b * groups + a] = tiles++;
            orders.emplace_back(unit, std::min(a, b), std::max(a, b), sizes.row_bytes);
        };
        for (int g = 0; g < groups; ++g) number(g, g);
        for (int r = 0; r < inner - 1; ++r) {
            for (int k = 0; k < inner / 2; ++k) {
                const int a = k == 0 ? inner - 1 : (r + k) % (inner - 1);
                const int b = (r - k + inner - 1) % (inner - 1);
                number(a, b);
            }
            tiles_in_round.push_back(inner / 2);
        }
        unit.inner_rounds = tiles_in_round.size();
        for (int r = 0; r < groups - inner; ++r) {  // nodes of other processes have no edges among themselves here
            for (int k = 0; k < inner; ++k) number(k, inner + (k + r) % inner);
            tiles_in_round.push_back(inner);
        }
        const auto tile_number = [&](int32_t source, int32_t target) {
            return tile_of[group_of[source] * groups + group_of[target]];
        };

        // Sort edges by tile. Each thread takes a range of edges, and ranges keep their order within a tile.
        const int threads = last - first < MANY ? 1 : team;
        const auto stretch = [&](int rank) { return first + (last - first) * rank / threads; };
        std::vector<int64_t> next(threads * tiles, 0), begins(tiles + 1, 0);
        in_parallel(threads, [&](int rank) {
            for (int64_t n = stretch(rank); n < stretch(rank + 1); ++n)
                ++next[rank * tiles + tile_number(row_of[source[edge_at(n)]], row_of[target[edge_at(n)]])];
        });
        int64_t sum = 0;
        for (int tile = 0; tile < tiles; ++tile) {
            for (int rank = 0; rank < threads; ++rank) sum += std::exchange(next[rank * tiles + tile], sum);
            begins[tile + 1] = sum;
        }
        List<Record> records(last - first);
        in_parallel(threads, [&](int rank) {
            for (int64_t n = stretch(rank); n < stretch(rank + 1); ++n) {
                const int32_t e = edge_at(n), from = row_of[source[e]], to = row_of[target[e]];
                records[next[rank * tiles + tile_number(from, to)]++] = {from, to, e};
            }
        });

        // Blocks of the tiles; within a tile, edges are sorted by key. Lanes at its end stay empty.
        std::vector<Tile> ranges;
        int64_t block = blocks();
        for (int tile = 0; tile < tiles; ++tile) {
            const int64_t count = (begins[tile + 1] - begins[tile] + sizes.lanes - 1) / sizes.lanes;
            ranges.push_back({block, block + count});
            block += count;
        }
        for (auto* list : {&plan.edge, &plan.source, &plan.target}) list->resize(block * sizes.lanes);
        int64_t keys = 0;
        for (const Order& order : orders) keys = std::max(keys, order.keys);
        std::vector<std::vector<int32_t>> counts(threads, std::vector<int32_t>(keys + 1));
        std::atomic<int> tile{0};
        in_parallel(threads, [&](int rank) {
            for (int t = tile++; t < tiles; t = tile++)
                fill_tile(records.data() + begins[t], begins[t + 1] - begins[t], ranges[t], orders[t], counts[rank]);
        });
        const Tile* range = ranges.data();
        for (int count : tiles_in_round) unit.rounds.emplace_back(range, range + count), range += count;
        find_hubs(unit);
        end(unit);
    }
    void find_hubs(Unit& unit) {
        std::vector<int32_t> hub_of(unit_rows(unit), -1);
        for (int64_t row = 0; row < unit_rows(unit); ++row) {
            const int32_t node = plan.row_node[unit.first_row + row];
            if (node < 0 || degree[node] < HUB) continue;
            hub_of[row] = int32_t(unit.hubs.size());
            unit.hubs.push_back({row, {}});
        }
        if (unit.hubs.empty()) return;
        for (int64_t lane = unit.first_block * sizes.lanes; lane < int64_t(plan.edge.size()); ++lane) {
            if (plan.edge[lane] < 0) continue;
            const int32_t block = int32_t(lane / sizes.lanes - unit.first_block);
            for (int32_t side : {0, 1}) {
                const int32_t hub = hub_of[side == 0 ? plan.target[lane] : plan.source[lane]];
                if (hub < 0) continue;
                std::vector<HubArcs>& arcs = unit.hubs[hub].arcs;
                // The arcs of a block come one after the other, those along its edges and those against them mixed.
                HubArcs* same = nullptr;
                for (size_t n = arcs.size(); n-- > 0 && arcs[n].block == block;)
                    if (arcs[n].side == side) same = &arcs[n];
                if (!same) arcs.push_back({block, side, 0}), same = &arcs.back();
                same->lanes |= 1u << lane % sizes.lanes;
            }
        }
    }
    // The order of edges between two groups.
    struct Order {
        Order(const Unit& unit, int a, int b, int64_t row_bytes)
            : near(unit.group_rows.back() * row_bytes <= OWN_CACHE), spare(int32_t(unit.group_rows[a + 1] - 1)) {
            while (near && (row_bytes << (shift + 1)) <= NEAR_BUCKET) ++shift;
            buckets = (unit.group_rows.back() >> shift) + 1;
            first = unit.group_rows[a], middle = unit.group_rows[a + 1], gap = unit.group_rows[b] - middle;
            keys = near ? buckets * buckets : middle - first + (a == b ? 0 : unit.group_rows[b + 1] - unit.group_rows[b]);
        }
        // Sorted by source, so that only the totals of targets are scattered. If `near`: sorted by the buckets of both
        // nodes, so that totals stay in the first-level cache.
        int64_t key(int64_t source, int64_t target) const {
            if (near) return (source >> shift) * buckets + (target >> shift);
            return source - first - (source < middle ? 0 : gap);
        }
        bool near;
        int32_t spare;  // a row for empty lanes
        int shift = 0;
        int64_t buckets, first, middle, gap, keys;
    };
    // A stable sort in linear time.
    void fill_tile(const Record* records, int64_t count, Tile range, const Order& by, std::vector<int32_t>& next) {
        std::fill_n(next.begin(), by.keys + 1, 0);
        for (int64_t n = 0; n < count; ++n) ++next[by.key(records[n].source, records[n].target) + 1];
        std::partial_sum(next.begin(), next.begin() + by.keys + 1, next.begin());
        const auto put = [&](int64_t n, const Record& record) {
            const int64_t lane = range.first * sizes.lanes + n;
            plan.edge[lane] = record.edge, plan.source[lane] = record.source, plan.target[lane] = record.target;
        };
        for (int64_t n = 0; n < count; ++n) put(next[by.key(records[n].source, records[n].target)]++, records[n]);
        for (int64_t n = count; n < (range.last - range.first) * sizes.lanes; ++n) put(n, {by.spare, by.spare, -1});
    }
    int64_t unit_rows(const Unit& unit) const { return int64_t(plan.row_node.size()) - unit.first_row; }

    // Rows for the nodes of a graph in ascending order, split into groups with about the same number of arcs.
    std::vector<uint8_t> add_groups(Unit& unit, int64_t first, int64_t last) {
        int64_t low = sizes.nodes, high = 0;
        std::vector<int32_t> nodes;
        degree.resize(sizes.nodes, 0);
        for (int64_t n = first; n < last; ++n)
            for (int64_t node : {source[edge_at(n)], target[edge_at(n)]}) {
                if (degree[node]++) continue;
                nodes.push_back(int32_t(node));
                low = std::min(low, node), high = std::max(high, node);
            }
        if (high - low < 8 * int64_t(nodes.size())) {  // dense enough that a scan is faster than sorting
            nodes.clear();
            for (int64_t node = low; node <= high; ++node)
                if (degree[node] && row_of[node] < 0) nodes.push_back(int32_t(node));  // not of an earlier graph
        } else {
            std::sort(nodes.begin(), nodes.end());
        }

        std::vector<uint8_t> group_of;
        unit.group_rows = {0};
        const auto close_group = [&] {
            plan.row_node.push_back(-1);
            group_of.push_back(uint8_t(unit.group_rows.size() - 1));
            unit.group_rows.push_back(unit_rows(unit));
        };
        // Nodes up to `last_node` fill the groups up to `last_group`, with about the same number of arcs each.
        auto next = nodes.begin();
        const auto fill = [&](int64_t last_node, int64_t last_group, int64_t all_arcs) {
            const int64_t before = int64_t(unit.group_rows.size()) - 1;
            const int64_t share = (all_arcs + last_group - before - 1) / (last_group - before);
            const auto closed = [&] { return int64_t(unit.group_rows.size()); };
            for (int64_t arcs = 0; next != nodes.end() && *next < last_node; ++next) {
                row_of[*next] = int32_t(unit_rows(unit));
                plan.row_node.push_back(*next);
                group_of.push_back(uint8_t(unit.group_rows.size() - 1));
                arcs += degree[*next];
                while (closed() < last_group && arcs >= share * (closed() - before)) close_group();
            }
            while (closed() <= last_group) close_group();
        };
        const int64_t all = 2 * (last - first);
        if (sizes.own < 0) {
            fill(sizes.nodes, unit.groups, all);
        } else {
            int64_t outer = 0;
            for (int32_t node : nodes) outer += node < sizes.own ? 0 : degree[node];
            fill(sizes.own, unit.groups / 2, all - outer);
            fill(sizes.nodes, unit.groups, outer);
        }
        return group_of;
    }
};
