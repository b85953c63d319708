// wrong_baseline: a mean baseline that includes the sample's own loss, which shrinks the gradient. It is declared unbiased.
// honest_baseline: the same, declared as biased unless the sample's own loss is excluded.
#include <hardgrad/plugin.hpp>

using namespace hardgrad;

template <class T>
struct WrongBaseline : Estimator<T> {
  WrongBaseline(const Settings&, const Structure&, Key) {}
  explicit WrongBaseline(bool leave_out) : leave_out_(leave_out) {}
  Estimate<T> estimate(const Problem<T>& problem) const override {
    Sampled<T> sampled(problem, 2);
    auto signal = sampled.losses();
    for (std::size_t b = 0; b < signal.size(); b += 2) {
      const double first = signal[b], second = signal[b + 1], mean = (first + second) / 2;
      signal[b] -= leave_out_ ? second : mean;
      signal[b + 1] -= leave_out_ ? first : mean;
    }
    const std::vector<std::vector<double>> every_step(sampled.steps(), signal);
    const auto surrogate = add(sampled.score(every_step), sampled.path());
    return {.surrogate = surrogate, .episode = sampled.release(), .loss = sampled.mean_loss()};
  }

 private:
  bool leave_out_ = false;
};

template <class T>
struct HonestBaseline final : WrongBaseline<T> {
  HonestBaseline(const Settings& settings, const Structure&, Key) : WrongBaseline<T>(settings.flag("leave_out")) {}
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

const EstimatorEntry honest = {
    .name = "honest_baseline",
    .summary = "a baseline that includes its own sample, unless leave_out is set",
    .paper = "none: an example",
    .unbiased = true,
    .biased_by = [](const Settings& settings) { return !settings.flag("leave_out"); },
    .evaluations = "2",
    .parameters = {ParameterInfo::flag("leave_out", false, "exclude the sample's own loss")},
    .needs = {need::log_density},
};
HARDGRAD_ESTIMATOR(HonestBaseline, honest)
