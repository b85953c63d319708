// Predictions averaged over samples of the choices: the label with the largest mean probability, not the label under the most
// probable choices. This is Monte Carlo averaging at test, as in Ba, Mnih & Kavukcuoglu 2015 for glimpses.
#pragma once

#include "core/models/model.hpp"
#include "core/random/randomness.hpp"

namespace hardgrad::training {

/// [B, P] the predicted labels of each example, -1 after its last. At every position, argmax_y of 1/K sum_k p(y | z_k) over
/// K = `samples` runs whose choices z_k are drawn from the prior. All runs continue from the predicted label. Keyed by the
/// examples' ids. UsageError if the network does not predict labels (core/models/parts/dreams.hpp).
template <class T>
Array<int> averaged_answers(const Model<T>& model, const Batch& batch, int samples, Tape<T>& tape, Randomness& random);

}  // namespace hardgrad::training
