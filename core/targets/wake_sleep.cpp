// wake_sleep: the field whose posterior learns from dreams, KL(p(z | x, y) || q) over y the network itself draws.
//
// Hinton, Dayan, Frey & Neal 1995, The wake-sleep algorithm; Bornschein & Bengio 2015. Exactly: a sum over all choices and all
// that the network could be judged by.
#include <span>
#include <vector>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/estimator/enumeration/outcome_objectives.hpp"
#include "core/models/parts/dreams.hpp"

namespace hardgrad::targets::wake_sleep {
namespace {

template <class T>
Estimate<T> objective(const Target&, const Problem<T>& problem) {
  auto estimate = enumerated_outcomes<T>(problem, false, [](const auto& outcomes) { return wake_field(outcomes, false); });
  const auto& dreams = *problem.model.structure().dreams;
  // One observation after the other, on a tape that forgets it: what stays is its slope in the parameters. Held together, the
  // outcomes of all that two words could say would take gigabytes.
  const auto& parameters = problem.model.parameters();
  std::vector<double> slope(parameters.size());
  Tape<T> tape;
  for_every_observation(dreams, problem.batch.examples(), [&](const auto& observed) {
    const auto dreamt = dreams.with_observations(problem.batch, observed);
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
  const auto* dreams = model.structure().dreams;
  if (!dreams) throw UsageError("wake_sleep: the model is judged by nothing it could dream");
  auto count = model.outcomes(batch);
  const int label = dreams->last_label == 0 ? 1 : 0;  // never ends
  const std::vector<std::vector<int>> longest(dreams->places, std::vector<int>(batch.examples(), label));
  const auto dreamt = model.outcomes(dreams->with_observations(batch, longest));
  for (std::size_t b = 0; b < count.size(); ++b) count[b] += observations(*dreams) * dreamt[b];
  return count;
}

}  // namespace

const TargetEntry entry = {
    .name = "wake_sleep",
    .summary = "as wake, but for the posterior KL(p(z|x,y) || q) over y the network itself draws",
    .terms = drawn_from_posterior,
    .field = true,
    .dreams = true,
    .counted = "sets of choices and observations",
};
HARDGRAD_TARGET(wake_sleep, objective, terms, entry)

}  // namespace hardgrad::targets::wake_sleep
