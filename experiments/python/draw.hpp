// One estimate of the gradient at given logits, with the samples it rests on.
#pragma once

#include <functional>
#include <vector>

#include "experiments/python/held_estimator.hpp"
#include "experiments/python/kept_tape.hpp"
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

/// What is asked of an estimator.
template <class T>
struct Wanted {
  GivenLogits<T> logits;
  std::vector<T> state = {};            ///< of OwnLoss
  std::vector<std::uint32_t> ids = {};  ///< of OwnLoss::batch
  typename OwnLoss<T>::Loss loss;
  std::uint64_t seed = 0;
  bool learning = false;  ///< the estimator learns from it (one thread at a time)
  bool options = false;   ///< Samples::option and weights are wanted
  /// Called before the surrogate is differentiated.
  std::function<void()> ending = {};
};

/// An estimate, which draws with the noise that `hardgrad gradient --seed` has.
template <class T>
class Drawn {
 public:
  /// NotFinite if the gradient is none.
  Drawn(HeldEstimator& estimator, Wanted<T> wanted);
  Drawn(const Drawn&) = delete;

  /// [E D, S] at the logits, of the sum over the examples.
  const std::vector<T>& gradient() const { return gradient_; }
  const std::vector<Samples<T>>& runs() const { return runs_; }
  /// [E D, S] the gradient at the logits of slope . weights, a constant slope [R, D, S] times the weights of a relaxed run.
  std::vector<T> through_weights(std::size_t run, const T* slope);

 private:
  void note(bool options);
  std::vector<Answered<T>> answered_;
  OwnLoss<T> model_;
  KeptTape<T> tape_;
  std::vector<T> gradient_;
  std::vector<Samples<T>> runs_;
};

extern template class Drawn<float>;
extern template class Drawn<double>;

}  // namespace hardgrad::python
