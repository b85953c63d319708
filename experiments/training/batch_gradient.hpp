// The gradient of a training batch, in parts that threads compute side by side.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/autodiff/tape.hpp"
#include "experiments/measurement/estimate_cost.hpp"
#include "experiments/training/trainer.hpp"

namespace hardgrad::training {

/// The positions of a batch's examples, in `most` parts of nearly equal length, in order. One part if the estimator learns, or if
/// it or the network joins the examples of a batch: the gradient of the batch is then not the mean of those of its parts.
template <class T>
std::vector<std::vector<int>> independent_parts(const Estimator<T>& estimator, const Model<T>& model, int examples, int most);

/// The mean of the gradients of a batch's parts. The parts, their draws and the order of the sum do not depend on the threads.
template <class T>
class BatchGradient {
 public:
  /// `threads`: at most; 0: all of the arena that are free. `pause`: of the tapes.
  BatchGradient(int parts, int threads, std::function<void()> pause)
      : parts_(parts), threads_(threads), pause_(std::move(pause)) {}

  /// The loss and the cost of a gradient.
  struct Taken {
    double loss = 0;
    measurement::EstimateCost cost = {};
    double tape_bytes = 0;  ///< of all parts together
    /// CPU seconds of other threads, without those that this thread waited for them.
    double seconds_elsewhere = 0;
  };
  /// Writes the gradient `into` [parameters], drawn with `noise`. The estimator learns from it, if it learns.
  Taken take(Training<T>& training, const Batch& batch, Key noise, std::vector<T>& into);

 private:
  Taken take_divided(Training<T>& training, const Batch& batch, Key noise, const std::vector<std::vector<int>>& parts,
                     std::vector<T>& into);
  Tape<T>& tape(std::size_t lane);

  const int parts_, threads_;
  const std::function<void()> pause_;
  std::vector<std::unique_ptr<Tape<T>>> tapes_;  // of each lane
  std::vector<std::vector<T>> gradients_;        // of each part
  std::vector<T> own_gradient_;
};

}  // namespace hardgrad::training
