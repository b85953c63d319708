// Exact objectives as sums over complete sets of choices: bounds and gradient fields of the learned posterior.
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
/// sum_z p(z|y) (f(z) - log p(z) - log q(z)) with p(z|y) held fixed. Its gradient is that of -log p(y) for the network and of
/// KL(p(z|y) || q) for the posterior (Bornschein & Bengio 2015); without the latter if `posterior_too` is false. Where the two
/// share parameters it is the gradient of no scalar. The value is -log p(y).
OutcomeObjective wake_field(std::span<const Outcome> outcomes, bool posterior_too = true);
/// One observation's share of -E log q(z|y) over the network's dreams: -sum_z p(z) p(y|z) log q(z|y), with p(z, y) held fixed.
/// Summed over all y this is, up to a constant, the sleep phase's KL(p(z|y) || q).
OutcomeObjective sleep_field(std::span<const Outcome> outcomes);
/// -sum_j (b_j+1 - b_j) E_pi_j[log w], pi_j ~ q w^b_j (Masrani, Le & Wood 2019).
OutcomeObjective thermodynamic_objective(std::span<const Outcome> outcomes, std::span<const double> partition);

/// Enumerates the batch and returns the mean over the examples of an objective of their outcomes. `by_parts`: sums the
/// objective over the outcomes of each independent choice, for objectives that are additive over independent choices.
template <class T>
Estimate<T> enumerated_outcomes(const Problem<T>& problem, bool by_parts,
                                const std::function<OutcomeObjective(std::span<const Outcome>)>& objective);

}  // namespace hardgrad
