// wrong_baseline: a mean baseline that includes the sample's own loss, which shrinks the gradient; it says it is unbiased.
#include <hardgrad/plugin.hpp>

using namespace hardgrad;

template <class T>
struct WrongBaseline final : Estimator<T> {
  WrongBaseline(const Settings&, const Structure&, Key) {}
  Estimate<T> estimate(const Problem<T>& problem) const override {
    Sampled<T> sampled(problem, 2);
    auto signal = sampled.losses();
    for (std::size_t b = 0; b < signal.size(); b += 2) {
      const double mean = (signal[b] + signal[b + 1]) / 2;
      signal[b] -= mean;
      signal[b + 1] -= mean;
    }
    const std::vector<std::vector<double>> every_step(sampled.steps(), signal);
    const auto surrogate = add(sampled.score(every_step), sampled.path());
    return {.surrogate = surrogate, .episode = sampled.release(), .loss = sampled.mean_loss()};
  }
};

const EstimatorEntry entry = {
    .name = "wrong_baseline",
    .summary = "a baseline that includes its own sample",
    .paper = "none: a mistake",
    .unbiased = true,
    .evaluations = "2",
    .needs = {need::log_density},
};
HARDGRAD_ESTIMATOR(WrongBaseline, entry)
