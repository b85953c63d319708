// Endless batches of the training split.
#pragma once

#include <vector>

#include "core/random/randomness.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad::training {

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

}  // namespace hardgrad::training
