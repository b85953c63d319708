// A trained network, with its training data or other data of its task.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/models/model.hpp"
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

}  // namespace hardgrad::cli
