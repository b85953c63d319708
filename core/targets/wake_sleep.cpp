// wake_sleep: as wake, but the posterior learns from dreams: its KL(p(z | x, y) || q) is averaged over labels y drawn from the
// network's own predictions.
//
// Hinton, Dayan, Frey & Neal 1995, The wake-sleep algorithm; Bornschein & Bengio 2015. The exact form is a sum over all choices
// and all labels y.
#include <span>
#include <vector>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/estimator/enumeration/outcome_objectives.hpp"
#include "core/models/parts/answer_sampler.hpp"

namespace hardgrad::targets::wake_sleep {
namespace {

template <class T>
Estimate<T> objective(const Target&, const Problem<T>& problem) {
  auto estimate = enumerated_outcomes<T>(problem, false, [](const auto& outcomes) { return wake_field(outcomes, false); });
  const auto& sampler = *problem.model.structure().answer_sampler;
  // One observation y at a time, on a tape that is cleared after each; only the gradient in the parameters is kept. The
  // outcomes for all two-word y together would take gigabytes.
  const auto& parameters = problem.model.parameters();
  std::vector<double> slope(parameters.size());
  Tape<T> tape;
  for_every_observation(sampler, problem.batch.examples(), [&](const auto& observed) {
    const auto dreamt = sampler.with_observations(problem.batch, observed);
    auto sleep =
        enumerated_outcomes<T>({tape, problem.model, dreamt, problem.random, false, problem.terms}, false, sleep_field);
    tape.backward_to_leaves(sleep.surrogate);
    tape.add_gradient(parameters, std::span<double>(slope));
    sleep = {};
    tape.clear();
  });
  for (const auto& p : parameters)
    estimate.surrogate =
        add(estimate.surrogate,
            weighted_sum(problem.tape.parameter(p), std::span<const double>(slope).subspan(p.offset, p.value.size())));
  return estimate;
}

template <class T>
std::vector<double> terms(const Target&, const Model<T>& model, const Batch& batch) {
  const auto* sampler = model.structure().answer_sampler;
  if (!sampler) throw UsageError(std::string("wake_sleep: ") + lacks_dreams);
  auto count = model.outcomes(batch);
  const int label = sampler->last_label == 0 ? 1 : 0;  // a label that does not end the sentence
  const std::vector<std::vector<int>> longest(sampler->places, std::vector<int>(batch.examples(), label));
  const auto dreamt = model.outcomes(sampler->with_observations(batch, longest));
  for (std::size_t b = 0; b < count.size(); ++b) count[b] += observations(*sampler) * dreamt[b];
  return count;
}

}  // namespace

const TargetEntry entry = {
    .name = "wake_sleep",
    .summary = "as wake, but the KL(p(z|x,y) || q) for the posterior is averaged over y drawn from the network",
    .terms = drawn_from_posterior,
    .non_conservative = true,
    .dreams = true,
    .likelihood = true,
    .counted = "sets of choices and observations",
};
HARDGRAD_TARGET(wake_sleep, objective, terms, entry)

}  // namespace hardgrad::targets::wake_sleep
