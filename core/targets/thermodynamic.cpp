// thermodynamic: -sum_j (b_j+1 - b_j) E_pi_j[log p exp(-f) / q], pi_j ~ (p exp(-f))^b_j q^(1 - b_j).
//
// Masrani, Le & Wood 2019, The thermodynamic variational objective. It adds up over independent choices.
#include "core/estimator/enumeration/objectives.hpp"
#include "core/estimator/enumeration/outcome_objectives.hpp"

namespace hardgrad {
namespace {

template <class T>
Estimate<T> objective(const Target& target, const Problem<T>& problem) {
  const auto& partition = target.settings().reals("partition");
  return enumerated_outcomes<T>(problem, true,
                                [&](const auto& outcomes) { return thermodynamic_objective(outcomes, partition); });
}

}  // namespace

const TargetEntry entry = {
    .name = "thermodynamic",
    .summary = "-sum_j (b_j+1 - b_j) E_pi_j[log p exp(-f) / q], pi_j ~ (p exp(-f))^b_j q^(1 - b_j)",
    .parameters = {ParameterInfo::reals("partition", {0, 1}, "0 = b_0 < b_1 < ... = 1")},
    .terms = drawn_from_posterior,
};
HARDGRAD_TARGET(thermodynamic, objective, rows_of_enumeration, entry)

}  // namespace hardgrad
