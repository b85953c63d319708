// The answers of a network: under its own choices, averaged over samples of them, and the exact posterior of these.
#pragma once

#include <string>
#include <vector>

#include "core/estimator/estimator.hpp"
#include "core/models/model.hpp"
#include "core/random/randomness.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad::training {

// Predictions averaged over samples of the choices: the label with the largest mean probability, not the label under the most
// probable choices. This is Monte Carlo averaging at test, as in Ba, Mnih & Kavukcuoglu 2015 for glimpses.

/// [B, P] the predicted labels of each example, -1 after its last. At every position, argmax_y of 1/K sum_k p(y | z_k) over
/// K = `samples` runs whose choices z_k are drawn from the prior. All runs continue from the predicted label. Keyed by the
/// examples' ids. UsageError if the network does not predict labels (core/models/parts/answer_sampler.hpp).
template <class T>
Array<int> averaged_answers(const Model<T>& model, const Batch& batch, int samples, Tape<T>& tape, Randomness& random);

// The exact posterior p(z | x, y) of a network's choices, given the targets of a batch.

/// Why the posterior of each choice cannot be enumerated by itself; empty if it can: choices are options and change their own
/// costs only.
std::string why_no_exact_posterior(const Structure& structure);

/// The most probable options of the exact posterior, by enumeration of each choice [steps][asking rows D].
template <class T>
std::vector<std::vector<int>> exact_posterior_modes(Tape<T>& tape, const Model<T>& model, const Batch& batch);

/// The observation from an episode with one row per example.
template <class T>
tasks::Observation observe(const Episode<T>& episode);

}  // namespace hardgrad::training
