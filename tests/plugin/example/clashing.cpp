// clashing: registers a name that is already registered, which is an error.
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
    .summary = "registered under an existing name",
    .paper = "none",
    .needs = {need::log_density},
};
HARDGRAD_ESTIMATOR(Clashing, entry)
