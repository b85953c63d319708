// Small scenes (a task, a model and a batch) for every model on generated data, for verification and benchmarks of estimators.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/models/model.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad::verification {

struct SceneSpec {
  std::string name;   ///< of the model, as in the names of benchmarks
  std::string task;   ///< spec
  std::string model;  ///< spec
  int examples;       ///< batch size
};

const std::vector<SceneSpec>& scene_specs();

/// A scene: its batch and its model, with a posterior if requested.
struct SmallScene {
  std::unique_ptr<tasks::Task> task;
  Batch batch;
  std::unique_ptr<Model<float>> model;
  SmallScene(const SceneSpec& scene, bool posterior);
};

}  // namespace hardgrad::verification
