// failing: an estimator with a bug, which throws in a measurement after a few estimates.
#include <hardgrad/plugin.hpp>

#include <stdexcept>

using namespace hardgrad;

template <class T>
struct Failing final : Estimator<T> {
  Failing(const Settings& settings, const Structure&, Key) : message_(settings.text("message")) {}
  Estimate<T> estimate(const Problem<T>& problem) const override {
    Sampled<T> sampled(problem, 1);
    if (sampled.losses()[0] > 0.2) throw std::out_of_range(message_);
    const auto surrogate = sampled.path();
    return {.surrogate = surrogate, .episode = sampled.release(), .loss = 0};
  }

 private:
  std::string message_;
};

const EstimatorEntry entry = {
    .name = "failing",
    .summary = "throws where a loss is large",
    .paper = "none: a mistake",
    .unbiased = false,
    .evaluations = "1",
    .parameters = {ParameterInfo::text("message", "index 7 of 3", "its message")},
    .needs = {need::log_density},
};
HARDGRAD_ESTIMATOR(Failing, entry)
