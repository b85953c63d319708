// A network with a task and a batch, from specs or from a checkpoint.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/models/model.hpp"
#include "experiments/cli/verb.hpp"
#include "experiments/storage/checkpoint.hpp"
#include "experiments/tasks/task.hpp"
#include "experiments/training/evaluation.hpp"

namespace hardgrad::cli {

/// Options besides a checkpoint; empty ones are as in training.
struct TrainedOptions {
  std::string checkpoint;                  ///< its file
  std::string task, model;                 ///< specs: other data of the same task; settings that leave the parameters unchanged
  std::optional<std::uint64_t> seed = {};  ///< seed of other data
  training::EvaluationSettings read = {};  ///< the split and the examples to read: they must use the training vocabulary
};

/// A checkpoint with the task and model to use. UsageError for another task or network. InputError, naming the difference, if
/// the parameters do not fit or a word has another index.
class Trained {
 public:
  explicit Trained(TrainedOptions options);

  storage::Checkpoint checkpoint;
  std::string task_spec, model_spec;  ///< canonical
  std::shared_ptr<const tasks::Task> task;

  /// The network with its parameters; with a learned posterior if the checkpoint has one, or else if requested.
  template <class T>
  std::unique_ptr<Model<T>> model(bool posterior) const;

 private:
  TrainedOptions options_;
  Dimensions trained_dimensions_;
};

// The setting of a gradient: a task, a network and a batch, from specs or from a checkpoint.

/// Common options of `measure` and `gradient`. With a checkpoint, a task means other data and a model other settings. `older`
/// and `reference` are checkpoints of the same network, as its behaviour policy and its reference policy.
struct SceneOptions {
  std::string task, model, checkpoint, older, reference;
  Precision precision = Precision::float32;
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
