// Where a gradient is taken: a task, a network and a batch, from specs or from a checkpoint.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiments/cli/verb.hpp"
#include "experiments/storage/checkpoint.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad::cli {

/// What `measure` and `gradient` ask alike. With a checkpoint, a task means other data, a model other settings.
struct SceneOptions {
  std::string task, model, checkpoint, precision = "float";
  std::uint64_t seed = 0;
  int batch = 8;

  void add(Verb& verb);
};

/// The scene itself.
template <class T>
struct Scene {
  std::string task_spec, model_spec;  ///< canonical
  std::shared_ptr<const tasks::Task> task;
  std::unique_ptr<Model<T>> model;
  Batch batch;
  std::optional<storage::Checkpoint> checkpoint;
  std::uint64_t data_seed = 0;  ///< data are made from; the checkpoint's own where there is one
};
/// `posterior`: build the network with a learned posterior (with a checkpoint: only if it holds one).
template <class T>
Scene<T> open_scene(const SceneOptions& options, bool posterior);
/// Any of the named estimators proposes from a posterior.
bool wants_posterior(const std::vector<std::string>& estimators);
/// An estimator for the scene; takes up its learned state if the checkpoint was trained with the same spec.
template <class T>
std::unique_ptr<Estimator<T>> open_estimator(const Scene<T>& scene, const Spec& spec, Key init);

}  // namespace hardgrad::cli
