// silent: an estimator that declares no needs. It is rejected when it is loaded.
#include <hardgrad/plugin.hpp>

using namespace hardgrad;

template <class T>
struct Silent final : Estimator<T> {
  Silent(const Settings&, const Structure&, Key) {}
  Estimate<T> estimate(const Problem<T>& problem) const override {
    Sampled<T> sampled(problem, 1);
    return {.surrogate = sampled.path(), .episode = sampled.release()};
  }
};

const EstimatorEntry entry = {
    .name = "silent",
    .summary = "declares nothing",
    .paper = "none: a mistake",
};
HARDGRAD_ESTIMATOR(Silent, entry)
