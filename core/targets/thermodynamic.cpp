// thermodynamic: -sum_j (b_j+1 - b_j) E_pi_j[log p exp(-f) / q], pi_j ~ (p exp(-f))^b_j q^(1 - b_j).
//
// Masrani, Le & Wood 2019, The thermodynamic variational objective. For independent choices it is a sum over the choices.
#include <algorithm>
#include <functional>

#include "core/estimator/enumeration/objectives.hpp"
#include "core/estimator/enumeration/outcome_objectives.hpp"
#include "core/support/error.hpp"

namespace hardgrad::targets::thermodynamic {
namespace {

struct Config {
  std::vector<double> partition = {0, 1};
  void declare(Fields& field) { field(partition, "partition", "0 = b_0 < b_1 < ... = 1"); }
};

template <class T>
Estimate<T> objective(const Target& target, const Problem<T>& problem) {
  const auto partition = read<Config>(target.settings()).partition;
  return enumerated_outcomes<T>(problem, true,
                                [&](const auto& outcomes) { return thermodynamic_objective(outcomes, partition); });
}

TargetTerms terms(const Config& config) {
  const auto& b = config.partition;
  if (b.size() < 2 || b.front() != 0 || b.back() != 1 ||
      std::adjacent_find(b.begin(), b.end(), std::greater_equal()) != b.end())
    throw UsageError("thermodynamic: the partition must rise from 0 to 1, such as partition=0;0.1;1");
  return {.drawn_from = DrawnFrom::posterior};
}

}  // namespace

const TargetEntry entry = {
    .name = "thermodynamic",
    .summary = "-sum_j (b_j+1 - b_j) E_pi_j[log p exp(-f) / q], pi_j ~ (p exp(-f))^b_j q^(1 - b_j)",
    .parameters = declared<Config>(),
    .terms = terms,
    .likelihood = true,
};
HARDGRAD_TARGET(thermodynamic, objective, rows_of_enumeration, entry)

}  // namespace hardgrad::targets::thermodynamic
