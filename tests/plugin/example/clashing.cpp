// Takes a name that exists.
#include <hardgrad/plugin.hpp>

using namespace hardgrad;

template <class T>
struct Clashing final : Estimator<T> {
  Clashing(const Settings&, const Structure&, Key) {}
  Estimate<T> estimate(const Problem<T>& problem) const override {
    Sampled<T> sampled(problem, 1);
    return {.surrogate = sampled.path(), .episode = sampled.release()};
  }
};

const EstimatorEntry entry = {
    .name = "rloo",
    .summary = "a name that is taken",
    .paper = "none",
    .needs = {need::log_density},
};
HARDGRAD_ESTIMATOR(Clashing, entry)
