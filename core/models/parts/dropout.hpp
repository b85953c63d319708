// Dropout inside a model, with a mask that is part of the data.
//
// A model draws no noise; its choices are drawn by the estimator. So the batch has a key for the dropped entries of each
// example. All rows of an example, samples or branches, lose the same entries. The gradient is that of the expected loss given
// the batch, and can be enumerated. A batch without keys (evaluations, measurements) has no dropout.
#pragma once

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/autodiff/regularisation.hpp"
#include "core/models/batch.hpp"

namespace hardgrad {

/// Adds the field integers "dropout" [B, 2]: the halves of each example's key, derived from `key` and its id. Training batches
/// have it.
inline void add_dropout(Batch& batch, Key key) {
  Array<int> halves = zeros<int>({batch.id.size(), 2});
  for (std::size_t b = 0; b < batch.id.size(); ++b) {
    const auto bits = (key / std::uint64_t{batch.id[b]}).value();
    halves(b, 0) = static_cast<int>(static_cast<std::uint32_t>(bits));
    halves(b, 1) = static_cast<int>(static_cast<std::uint32_t>(bits >> 32));
  }
  batch.integers["dropout"] = std::move(halves);
}

/// x [N, C] with a share `rate` of its entries dropped, if the batch has keys. Row n belongs to example[n] [N] of the batch.
/// `place` distinguishes the uses of dropout in the network.
template <class T>
Var<T> dropout(Var<T> x, double rate, const Batch& batch, std::span<const int> example, std::uint32_t place) {
  const auto field = batch.integers.find("dropout");
  if (rate == 0 || field == batch.integers.end()) return x;
  std::vector<Draw> draws(example.size());
  for (std::size_t n = 0; n < draws.size(); ++n) {
    const auto halves = row_of(field->second, example[n]);
    draws[n] = {
        .example = static_cast<std::uint32_t>(halves[0]), .replica = static_cast<std::uint32_t>(halves[1]), .step = place};
  }
  return dropout(x, rate, Key(), std::span<const Draw>(draws));
}

/// Dropout of one value of a network, by name; `dropout` of a spec.
struct Dropout {
  const char* name;     ///< in gradient files
  std::uint32_t place;  ///< distinguishes the values of a network
  double rate;
  std::size_t width;  ///< of the value

  /// True if entries are dropped in this batch.
  bool in(const Batch& batch) const { return rate > 0 && batch.integers.contains("dropout"); }
  /// x [N, width] without the dropped entries. Row n belongs to example[n] [N] of the batch.
  template <class T>
  Var<T> operator()(Var<T> x, const Batch& batch, std::span<const int> example) const {
    return dropout(x, rate, batch, example, place);
  }
  /// For Model::dropout_factors: nothing, or the name and the factors [B, width].
  template <class T>
  void add_factors(const Batch& batch, std::vector<std::pair<std::string, Array<double>>>& factors) const {
    if (!in(batch)) return;
    Tape<T> tape;
    std::vector<int> every(batch.id.size());
    std::iota(every.begin(), every.end(), 0);
    const auto kept = (*this)(tape.constant(every.size(), width, T{1}), batch, every).value();
    factors.emplace_back(name, zeros<double>({every.size(), width}));
    std::copy_n(kept.data, every.size() * width, factors.back().second.begin());
  }
};

}  // namespace hardgrad
