// A second thread that searches for labels with other random numbers.
#pragma once
#include <thread>

#include "portfolio.hpp"

namespace search {

class Helper {
  public:
    Helper(const std::vector<const Model*>& models, uint64_t seed, double budget) : found_(models.size()) {
        thread_ = std::thread([this, models, seed, budget] {
            try {
                run(models, seed, budget);
            } catch (...) {  // out of memory: the other thread goes on alone
            }
        });
    }
    ~Helper() { stop(); }

    void stop() {
        stop_ = 1;
        if (thread_.joinable()) thread_.join();
    }
    // The best labels of a model; empty: none. Call stop() first.
    const Labels& labels(size_t model) const { return found_[model]; }

  private:
    static constexpr double FIRST_TURN = 0.05;  // seconds of work; each turn is twice as long as the one before
    volatile int32_t stop_ = 0;
    std::vector<Labels> found_;
    std::thread thread_;

    void run(const std::vector<const Model*>& models, uint64_t seed, double budget) {
        const Clock clock(budget, &stop_);
        std::vector<std::unique_ptr<Portfolio>> portfolios;
        for (const Model* m : models) portfolios.push_back(std::make_unique<Portfolio>(*m, seed, clock));
        for (double share = FIRST_TURN; !clock.late(); share *= 2)
            for (size_t i = 0; i < models.size() && !clock.late(); ++i) {
                Portfolio& p = *portfolios[i];
                const double begun = clock.seconds();
                p.satisfy(begun + 0.3 * share);
                if (p.done()) return;  // a contradiction: the other thread will find it too
                p.search(begun + share);
                found_[i] = p.found.x;
            }
    }
};

}  // namespace search
