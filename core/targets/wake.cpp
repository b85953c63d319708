// wake: the vector field of reweighted wake-sleep: gradients of -log p(y) for the network and of KL(p(z | y) || q) for the
// posterior.
//
// Bornschein & Bengio 2015, Reweighted wake-sleep. If the two share parameters, it is not the gradient of a scalar. Its value
// is -log p(y).
#include "core/estimator/enumeration/objectives.hpp"
#include "core/estimator/enumeration/outcome_objectives.hpp"

namespace hardgrad::targets::wake {
namespace {

template <class T>
Estimate<T> objective(const Target&, const Problem<T>& problem) {
  return enumerated_outcomes<T>(problem, true, [](const auto& outcomes) { return wake_field(outcomes); });
}

}  // namespace

const TargetEntry entry = {
    .name = "wake",
    .summary = "reweighted wake-sleep: -log p(y) for the network, KL(p(z|y) || q) for the posterior",
    .terms = drawn_from_posterior,
    .non_conservative = true,
    .likelihood = true,
};
HARDGRAD_TARGET(wake, objective, rows_of_enumeration, entry)

}  // namespace hardgrad::targets::wake
