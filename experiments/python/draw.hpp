// One estimate of the gradient at given logits, with its samples.
#pragma once

#include <functional>
#include <vector>

#include "experiments/measurement/paths.hpp"
#include "experiments/python/mixture.hpp"
#include "experiments/python/own_loss.hpp"
#include "experiments/python/stateful_estimator.hpp"

namespace hardgrad::python {

/// One run of the loss: the choices of R rows, their costs, and the weight of each cost in the estimate.
template <class T>
struct Samples {
  std::vector<int> option = {};  ///< [R, D] or [R, D, picks], if hard
  std::vector<T> weights = {};   ///< [R, D, S], if relaxed
  std::vector<int> example = {};
  std::vector<T> loss = {};
  /// [R] the surrogate's slope in the cost: sum_r share_r grad f_r is the gradient of the parameters within the loss, and sum_r
  /// share_r f_r estimates the expected loss.
  std::vector<T> share = {};
  /// [R] the ratio of the policy's probability to the behaviour policy's; empty unless that has drawn the rows.
  std::vector<T> ratio = {};
};

/// The request for an estimate.
template <class T>
struct Wanted {
  GivenLogits<T> logits;
  std::vector<T> state = {};            ///< for OwnLoss
  std::vector<std::uint32_t> ids = {};  ///< for OwnLoss::batch
  typename OwnLoss<T>::Loss loss;
  std::uint64_t seed = 0;
  bool learning = false;       ///< the estimator learns from it (one thread at a time)
  bool options = false;        ///< fill Samples::option, weights and ratio
  Mixture* mixture = nullptr;  ///< of the step that asks
  /// Called before the surrogate is differentiated.
  std::function<void()> ending = {};
};

/// An estimate, with the same noise as `hardgrad gradient --seed` unless it is within a mixture.
template <class T>
class Drawn {
 public:
  /// NotFinite if the gradient is not finite.
  Drawn(StatefulEstimator& estimator, Wanted<T> wanted);
  Drawn(const Drawn&) = delete;

  /// [E D, S] the gradient at the logits, of the sum over the examples.
  const std::vector<T>& gradient() const { return gradient_; }
  const std::vector<Samples<T>>& runs() const { return runs_; }
  /// Of the samples of a behaviour policy; else empty.
  const measurement::Ratios& ratios() const { return ratios_; }
  /// That of the estimator's own loss at its own parameters, if the caller trains them; else empty.
  const std::vector<T>& own_gradient() const { return own_gradient_; }
  /// [E D, S] the gradient at the logits of slope . weights, for a constant slope [R, D, S] and the weights of a relaxed run.
  std::vector<T> through_weights(std::size_t run, const T* slope);

 private:
  void note(bool options);
  std::vector<Answered<T>> answered_;
  OwnLoss<T> model_;
  PooledTape<T> tape_;
  std::vector<T> gradient_, own_gradient_;
  std::vector<Samples<T>> runs_;
  measurement::Ratios ratios_;
};

extern template class Drawn<float>;
extern template class Drawn<double>;

}  // namespace hardgrad::python
