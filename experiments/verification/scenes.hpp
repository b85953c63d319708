// Small scenes (a task, a model and a batch) of every model on generated data: estimators are verified and benchmarked on them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/models/model.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad::verification {

struct SceneSpec {
  std::string name;   ///< of the model, as benchmarks are called
  std::string task;   ///< spec
  std::string model;  ///< spec
  int examples;       ///< batch
};

const std::vector<SceneSpec>& scene_specs();

/// A scene: its batch and its model, with a posterior if asked for.
struct SmallScene {
  std::unique_ptr<tasks::Task> task;
  Batch batch;
  std::unique_ptr<Model<float>> model;
  SmallScene(const SceneSpec& scene, bool posterior);
};

}  // namespace hardgrad::verification
