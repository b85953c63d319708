// One estimate of the gradient at given logits, with the samples it rests on.
#pragma once

#include <vector>

#include "experiments/python/held_estimator.hpp"
#include "experiments/python/own_loss.hpp"

namespace hardgrad::python {

/// One run of the loss: what R rows chose, what that cost, and the weight of each cost in the estimate.
template <class T>
struct Samples {
  std::vector<int> option = {};  ///< [R, D], if hard
  std::vector<T> weights = {};   ///< [R, D, S], if relaxed
  std::vector<int> example = {};
  std::vector<T> loss = {};
  /// [R] the surrogate's slope in the cost: of the parameters within the loss, sum_r share_r grad f_r is the gradient, and
  /// sum_r share_r f_r is what the estimator makes of the expected loss.
  std::vector<T> share = {};
};

template <class T>
struct Drawn {
  std::vector<T> gradient;  ///< [E D, S] at the logits, of the sum over the examples
  std::vector<Samples<T>> runs;
};

/// Draws with the noise that `hardgrad gradient --seed` has for examples of these ids (OwnLoss::batch). If `learning`, the
/// estimator learns from it (one thread at a time). `options`: the options and weights are wanted besides. NotFinite if the
/// gradient is none.
template <class T>
Drawn<T> draw(HeldEstimator& estimator, const GivenLogits<T>& logits, const std::vector<T>& state,
              std::vector<std::uint32_t> ids, const typename OwnLoss<T>::Loss& loss, std::uint64_t seed, bool learning,
              bool options);

}  // namespace hardgrad::python
