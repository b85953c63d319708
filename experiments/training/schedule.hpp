// What changes from step to step of a training: its batches, and settings of the estimator.
#pragma once

#include <string>
#include <vector>

#include "core/random/randomness.hpp"
#include "core/registry/settings.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad::training {

// Endless batches of the training split.

/// Each epoch has its own keyed order, so any step can be computed directly.
class Batches {
 public:
  /// InputError if the split is empty. Batches are never larger than the split.
  Batches(const tasks::Task& task, int batch, Key order);
  Batch at(int step);

 private:
  const tasks::Task& task_;
  Key order_key_;
  std::size_t examples_, size_, per_epoch_;
  int epoch_ = -1;
  std::vector<int> order_;
};

// Settings of an estimator that change during training, such as an entropy weight or a temperature.

/// The estimator's spec after the fraction `share` (0 to 1) of training. The real settings in `text` ("temperature=0.1,
/// lambda_e=0") change linearly from their values in the spec to these. UsageError if a name is not a real setting of the
/// estimator, or its value is invalid.
Spec annealed(const Spec& estimator, const std::string& text, double share);

}  // namespace hardgrad::training
