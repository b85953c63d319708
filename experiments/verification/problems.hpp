// Small problems of every model on generated data: estimators are verified and benchmarked on them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/models/model.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad::verification {

struct Problem {
  std::string name;   ///< of the model, as benchmarks are called
  std::string task;   ///< spec
  std::string model;  ///< spec
  int examples;       ///< batch
};

const std::vector<Problem>& problems();

/// A problem made: its batch and its model, with a posterior if asked for.
struct Setting {
  std::unique_ptr<Task> task;
  Batch batch;
  std::unique_ptr<Model<float>> model;
  Setting(const Problem& problem, bool posterior);
};

}  // namespace hardgrad::verification
