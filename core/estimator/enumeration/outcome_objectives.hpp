// Exact objectives that weigh complete sets of choices one by one: bounds and fields of the learned posterior.
#pragma once

#include <span>

#include "core/estimator/enumeration/outcomes.hpp"
#include "core/estimator/estimator.hpp"

namespace hardgrad {

/// An objective of one example's outcomes, and its slopes in them.
struct OutcomeObjective {
  double value = 0;
  Slopes slopes;
};

/// -E log 1/K sum_k w(z_k) over z_1..z_K from q (Burda, Grosse & Salakhutdinov 2016), as a sum over multisets
/// with multinomial weights.
OutcomeObjective importance_bound(std::span<const Outcome> outcomes, int samples);
/// sum_z p(z|y) (f(z) - log p(z) - log q(z)) with p(z|y) held fixed: -log p(y) for the network, KL(p(z|y) || q) for the
/// posterior (Bornschein & Bengio 2015); without the latter if `posterior_too` is false. No gradient of a
/// scalar where they share parameters; the value is -log p(y).
OutcomeObjective wake_field(std::span<const Outcome> outcomes, bool posterior_too = true);
/// One observation's share of -E log q(z|y) over what the network dreams: -sum_z p(z) p(y|z) log q(z|y), with p(z, y) held
/// fixed. Summed over all y this is the sleep phase's KL(p(z|y) || q), but for a constant.
OutcomeObjective sleep_field(std::span<const Outcome> outcomes);
/// -sum_j (b_j+1 - b_j) E_pi_j[log w], pi_j ~ q w^b_j (Masrani, Le & Wood 2019).
OutcomeObjective thermodynamic_objective(std::span<const Outcome> outcomes, std::span<const double> partition);

/// Enumerates the batch; the mean over the examples of an objective of their outcomes. By parts: of the outcomes of each
/// independent choice, summed, for objectives that add up over independent choices.
template <class T>
Estimate<T> enumerated_outcomes(const Problem<T>& problem, bool by_parts,
                                const std::function<OutcomeObjective(std::span<const Outcome>)>& objective);

}  // namespace hardgrad
