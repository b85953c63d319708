// The setting of a gradient: a task, a network and a batch, from specs or from a checkpoint.
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

/// Common options of `measure` and `gradient`. With a checkpoint, a task means other data and a model other settings. `older` and
/// `reference` are checkpoints of the same network, as its behaviour policy and its reference policy.
struct SceneOptions {
  std::string task, model, checkpoint, older, reference, precision = "float";
  std::uint64_t seed = 0;
  int batch = 8;

  void add(Verb& verb);
  /// " --checkpoint FILE --older FILE ..." of the given files.
  std::string files() const;
};

/// The task, network and batch.
template <class T>
struct Scene {
  std::string task_spec, model_spec;  ///< canonical
  std::shared_ptr<const tasks::Task> task;
  std::unique_ptr<Model<T>> model;
  Batch batch;
  std::optional<storage::Checkpoint> checkpoint;
  std::uint64_t data_seed = 0;  ///< seed of the data; that of the checkpoint if there is one
};
/// `posterior`: build the network with a learned posterior (with a checkpoint: only if it holds one).
template <class T>
Scene<T> open_scene(const SceneOptions& options, bool posterior);
/// Whether any of the named estimators samples from a posterior.
bool wants_posterior(const std::vector<std::string>& estimators);
/// An estimator for the scene; restores its learned state if the checkpoint was trained with the same spec.
template <class T>
std::unique_ptr<Estimator<T>> open_estimator(const Scene<T>& scene, const Spec& spec, Key init);

}  // namespace hardgrad::cli
