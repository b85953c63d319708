// Answers averaged over samples of the choices: the label of largest mean probability (Monte Carlo averaging at test, as Ba,
// Mnih & Kavukcuoglu 2015 do with glimpses), not that of the most probable choices.
#pragma once

#include "core/models/model.hpp"
#include "core/random/randomness.hpp"

namespace hardgrad::training {

/// [B, P] the labels that each example says, -1 beyond its last: at every place argmax_y of 1/K sum_k p(y | z_k), K = `samples`
/// runs whose choices z_k are drawn from the prior and which all go on from the label said. Keyed by the examples' ids.
/// UsageError if what the network predicts is not labels (core/models/parts/dreams.hpp).
template <class T>
Array<int> averaged_answers(const Model<T>& model, const Batch& batch, int samples, Tape<T>& tape, Randomness& random);

}  // namespace hardgrad::training
