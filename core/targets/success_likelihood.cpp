// success_likelihood: -log E_p(z)[r(z)], r = -f >= 0: the negative log likelihood of success, if rewards are 0 or 1. The target of
// maximum likelihood reinforcement learning: Tajwar et al. 2026 (MaxRL).
#include <cmath>

#include "core/estimator/enumeration/objectives.hpp"
#include "core/estimator/enumeration/outcome_objectives.hpp"

namespace hardgrad::targets::success_likelihood {
namespace {

OutcomeObjective log_of_mean(std::span<const Outcome> outcomes) {
  double mean = 0;
  for (const auto& outcome : outcomes) {
    if (outcome.loss > 0) throw Bug("a model declares rewards, but a loss is positive");
    mean -= std::exp(outcome.log_p) * outcome.loss;
  }
  if (mean == 0)
    throw UsageError(
        "success_likelihood: an example has no outcome with a reward, so success has no likelihood: take another task");
  OutcomeObjective result{-std::log(mean), Slopes(outcomes.size())};
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const double p = std::exp(outcomes[i].log_p);
    result.slopes.log_p[i] = p * (1 + outcomes[i].loss / mean);
    result.slopes.loss[i] = p / mean;
  }
  return result;
}

template <class T>
Estimate<T> objective(const Target&, const Problem<T>& problem) {
  return enumerated_outcomes<T>(problem, false, log_of_mean);
}
template <class T>
std::vector<double> terms(const Target&, const Model<T>& model, const Batch& batch) {
  return model.outcomes(batch);
}

}  // namespace

const TargetEntry entry = {
    .name = "success_likelihood",
    .summary = "-log E_p[-f(z)], of rewards -f: the negative log likelihood of success",
    .rewards = true,
    .counted = "outcomes",
};
HARDGRAD_TARGET(success_likelihood, objective, terms, entry)

}  // namespace hardgrad::targets::success_likelihood
