// Objectives of an episode as differentiable functions, and their exact forms when every choice is enumerated.
#pragma once

#include <functional>
#include <type_traits>

#include "core/estimator/enumeration/outcomes.hpp"
#include "core/estimator/estimator.hpp"

namespace hardgrad {

/// Mean over the examples of the summed costs, each path weighted (differentiably) by its probability under the distribution it
/// was drawn from. On an enumerated episode this is E[f]. With relaxed choices, or without choices, it is the plain loss.
template <class T>
Var<T> expected_loss(Episode<T>& episode);

/// Mean over the examples of -log sum_z p(z) exp(-f(z)), on an enumerated episode. Independent sites factorise.
template <class T>
Var<T> marginal_likelihood_loss(Episode<T>& episode);

/// Mean over the examples of the summed entropies of the sites, paths weighted by their probability: the entropy H[p(z)] of the
/// complete set of choices. On an episode of relaxed choices, the summed entropies along its path.
template <class T>
Var<T> path_entropy(Episode<T>& episode);

/// Mean over the examples of the summed costs, each path weighted by the product of its choices' entmax weights. The episode must
/// hold at least every path with a nonzero weight.
template <class T>
Var<T> sparse_expected_loss(Episode<T>& episode, double alpha);

/// A surrogate with exactly the target's gradient, by enumeration (for `soft`, by the expected weights). Estimate::loss is the
/// target's value. UsageError with the count if the batch has more than `leaf_cap` terms.
template <class T>
Estimate<T> exact_objective(const Target& target, Problem<T> problem, double leaf_cap);

/// [B] number of terms that the exact form of the target sums for each example.
template <class T>
std::vector<double> enumeration_terms(const Target& target, const Model<T>& model, const Batch& batch);

/// Runs the model with the handler. The surrogate is the objective [1, 1] of that run, and the loss is its value.
template <class T>
Estimate<T> estimate_of(const Problem<T>& problem, Handler<T>& handler, CostWeights weights,
                        const std::type_identity_t<std::function<Var<T>(Episode<T>&)>>& objective);

/// E[f] of an enumerated run under the problem's target, and its terms: the exact form of the expected loss and of the ELBO.
template <class T>
Estimate<T> enumerated_mean(const Target& target, const Problem<T>& problem);

/// [B] rows that an enumeration evaluates at its last site, for each example: the leaves of its tree, or the sets of options of
/// one question if questions change only their own costs.
template <class T>
std::vector<double> enumeration_rows(const Model<T>& model, const Batch& batch);
/// The same, with the signature of a target's `terms`.
template <class T>
std::vector<double> rows_of_enumeration(const Target&, const Model<T>& model, const Batch& batch) {
  return enumeration_rows(model, batch);
}

}  // namespace hardgrad
