// One estimate of the gradient at given logits, with its samples. Large batches are drawn in parts, side by side.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "experiments/measurement/paths.hpp"
#include "experiments/python/called_loss.hpp"
#include "experiments/python/joined_loss.hpp"
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
  /// If `loss` does nothing but call it: a large batch may then be drawn in parts.
  const CalledLoss<T>* called = nullptr;
  int threads = 1;  ///< that draw the parts, at most; 0: one per core
  std::uint64_t seed = 0;
  bool learning = false;       ///< the estimator learns from it (one thread at a time)
  bool options = false;        ///< fill Samples::option, weights and ratio
  Mixture* mixture = nullptr;  ///< of the step that asks
  /// Called before the surrogate is differentiated.
  std::function<void()> ending = {};
};

/// The estimate of a batch, or of a part of it, on a tape of its own.
template <class T>
class DrawnPart {
 public:
  DrawnPart(GivenLogits<T> logits, std::vector<T> state, std::vector<std::uint32_t> ids, typename OwnLoss<T>::Loss loss)
      : model_(std::move(logits), std::move(state), std::move(loss), &answered_), ids_(std::move(ids)) {}
  DrawnPart(const DrawnPart&) = delete;

  OwnLoss<T>& model() { return model_; }
  /// Before a draw, in the thread that ends this object and keeps its memory.
  void take_tape() { tape_.emplace(); }
  Batch batch() { return model_.batch(ids_); }
  /// Adds the gradient at its logits [E D, S], of the sum over its examples, `into`. `ending`: as in Wanted.
  Estimate<T> draw(const Estimator<T>& estimator, Randomness& random, bool learning, const std::function<void()>& ending,
                   std::span<T> into);
  /// Appends its rows to the `runs` of the batch. `first`: position of its first example; `options`: as in Wanted.
  void note(std::vector<Samples<T>>& runs, int first, bool options);
  /// As Drawn::through_weights, for the rows of this part.
  void through_weights(std::size_t run, const T* slope, std::span<T> into);
  std::size_t rows(std::size_t run) const { return run < answered_.size() ? answered_[run].example.size() : 0; }

 private:
  std::vector<Answered<T>> answered_;
  OwnLoss<T> model_;
  std::vector<std::uint32_t> ids_;
  std::optional<PooledTape<T>> tape_;
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
  void draw_whole(StatefulEstimator& estimator, Wanted<T> wanted);
  /// False, and nothing is drawn, if it is to be drawn as a whole.
  bool draw_parts(StatefulEstimator& estimator, const Wanted<T>& wanted);
  /// Of the parts that were drawn: checks the gradient, and notes their runs.
  void note(bool options);
  /// f(p) for each of `count` parts, on threads.
  template <class F>
  void each_part(std::size_t count, F f) const;

  // One part: all examples. Their losses cannot be asked for again: only derivatives of choices are taken after the draw.
  std::vector<std::unique_ptr<DrawnPart<T>>> parts_;
  std::vector<int> first_ = {0};  // of each part, the position of its first example
  int threads_;
  std::size_t cells_;  // D S
  std::vector<T> gradient_, own_gradient_;
  std::vector<Samples<T>> runs_;
  measurement::Ratios ratios_;
};

extern template class DrawnPart<float>;
extern template class DrawnPart<double>;
extern template class Drawn<float>;
extern template class Drawn<double>;

}  // namespace hardgrad::python
