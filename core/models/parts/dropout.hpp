// Dropout inside a model: what falls out is part of the data.
//
// A model has no noise of its own: its choices are the estimator's to draw. So the key from which an example's entries fall out
// stands in the batch, as a word does. All rows of an example, samples or branches, lose the same entries; a gradient is still
// one of expected loss, given the batch, and can be enumerated; and where the key is missing (evaluations, measurements)
// nothing falls out.
#pragma once

#include <span>
#include <vector>

#include "core/autodiff/dropout.hpp"
#include "core/models/batch.hpp"

namespace hardgrad {

/// Field integers "dropout" [B, 2]: the halves of each example's key, derived from `key` and its id. Training batches have it.
inline void add_dropout(Batch& batch, Key key) {
  Array<int> halves({batch.id.size(), 2});
  for (std::size_t b = 0; b < batch.id.size(); ++b) {
    const auto bits = (key / std::uint64_t{batch.id[b]}).value();
    halves.row(b)[0] = static_cast<int>(static_cast<std::uint32_t>(bits));
    halves.row(b)[1] = static_cast<int>(static_cast<std::uint32_t>(bits >> 32));
  }
  batch.integers["dropout"] = std::move(halves);
}

/// x [N, C] with a share `rate` of its entries left out, if the batch says which. Row n belongs to example[n] [N] of the batch;
/// `place` tells one use in the network from another, and one step of a sequence.
template <class T>
Var<T> dropout(Var<T> x, double rate, const Batch& batch, std::span<const int> example, std::uint32_t place) {
  const auto field = batch.integers.find("dropout");
  if (rate == 0 || field == batch.integers.end()) return x;
  std::vector<Draw> draws(example.size());
  for (std::size_t n = 0; n < draws.size(); ++n) {
    const auto halves = field->second.row(example[n]);
    draws[n] = {
        .example = static_cast<std::uint32_t>(halves[0]), .replica = static_cast<std::uint32_t>(halves[1]), .step = place};
  }
  return dropout(x, rate, Key(), std::span<const Draw>(draws));
}

}  // namespace hardgrad
