// The problems benchmarks run on: generated data, one of each model.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/models/model.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad::benchmarks {

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

}  // namespace hardgrad::benchmarks
