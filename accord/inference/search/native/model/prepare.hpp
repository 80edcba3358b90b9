// The model of every connected component.
#pragma once
#include "reduction.hpp"

namespace search {

// One component, and which states of the whole its nodes kept.
struct Part {
    std::vector<int32_t> nodes;
    std::vector<int32_t> states;  // [model.size()]: state in the numbers of Python
    Model model;
};

class Parts {
  public:
    explicit Parts(const Arguments& a)
        : a_(a), reduced_(a), nodes_(a.nodes, reduced_.components, [&](int64_t v) { return a.component[v]; }),
          hosts_(a.factors, reduced_.components, [&](int64_t f) { return host(f) == f ? home(f) : -1; }),
          guests_(a.factors, a.distinct ? 0 : a.factors, [&](int64_t f) { return host(f) == f ? -1 : host(f); }),
          local_(a.nodes) {}

    int32_t size() const { return reduced_.components; }

    // The model of a component; false: it has no allowed labelling.
    bool prepare(int32_t c, Part& part) {
        part.nodes.assign(nodes_.begin(c), nodes_.end(c));
        if (reduced_.contradictory[c]) return false;
        Model& m = part.model;
        m.nodes = int32_t(part.nodes.size());
        m.at.assign(1, 0);
        for (int32_t i = 0; i < m.nodes; ++i) {
            const int32_t v = part.nodes[i];
            local_[v] = i;
            for (int64_t s = a_.at[v]; s < a_.at[v + 1]; ++s)
                if (reduced_.alive[s]) part.states.push_back(int32_t(s - a_.at[v])), m.unary.push_back(reduced_.unary[s]);
            m.at.push_back(int64_t(m.unary.size()));
            m.count.push_back(int32_t(m.at[i + 1] - m.at[i]));
        }
        int64_t size = 0;
        for (const int32_t* f = hosts_.begin(c); f != hosts_.end(c); ++f) {
            reduced_.members(*f, scope_);
            int64_t entries = 1;
            for (int32_t v : scope_) entries *= reduced_.left[v];
            if (scope_.size() == 2) {
                m.source.push_back(local_[scope_[0]]), m.target.push_back(local_[scope_[1]]);
                m.table_at.push_back(size), ++m.edges;
            } else {
                m.factors.push_back({size, entries, int32_t(m.members.size()), int32_t(scope_.size())});
                int64_t stride = entries;
                for (int32_t v : scope_)
                    stride /= reduced_.left[v], m.members.push_back({local_[v], reduced_.left[v], stride});
            }
            size += entries;
        }
        m.tables.assign(size, 0.0);
        double* table = m.tables.data();
        for (const int32_t* f = hosts_.begin(c); f != hosts_.end(c); ++f) {
            reduced_.members(*f, scope_);
            reduced_.add(*f, scope_, table);
            if (!a_.distinct)
                for (const int32_t* g = guests_.begin(*f); g != guests_.end(*f); ++g) reduced_.add(*g, scope_, table);
            int64_t entries = 1;
            for (int32_t v : scope_) entries *= reduced_.left[v];
            table += entries;
        }
        if (a_.own < a_.replica)
            for (int32_t v : part.nodes) m.between.push_back(v % a_.replica >= a_.own);
        m.link();
        m.settle();
        return true;
    }

  private:
    const Arguments& a_;
    Reduction reduced_;
    Groups nodes_, hosts_, guests_;
    std::vector<int32_t> local_, scope_;

    int32_t host(int64_t f) const { return reduced_.host[f]; }
    // The component of a factor: that of any of its nodes that has a choice.
    int64_t home(int64_t f) const {
        const int64_t* v = a_.begin(f);
        while (reduced_.left[*v] < 2) ++v;
        return a_.component[*v];
    }
};

}  // namespace search
