// A trained network, on the data it was trained on or on others of its task.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/models/model.hpp"
#include "experiments/storage/checkpoint.hpp"
#include "experiments/tasks/task.hpp"
#include "experiments/training/evaluation.hpp"

namespace hardgrad::cli {

/// What is asked for besides a checkpoint; what is empty is as it was trained.
struct TrainedOptions {
  std::string checkpoint;   ///< its file
  std::string task, model;  ///< specs: other data of the same task; settings that leave the parameters as they are
  std::optional<std::uint64_t> seed = {};  ///< other data are made from
  training::EvaluationSettings read = {};  ///< the split and the examples that are read: they must be in the words trained on
};

/// A checkpoint, and what it is to be tried on. UsageError if that is another task or network, InputError (with what differs)
/// if the parameters do not fit or a word has another number.
class Trained {
 public:
  explicit Trained(TrainedOptions options);

  storage::Checkpoint checkpoint;
  std::string task_spec, model_spec;  ///< canonical
  std::shared_ptr<const tasks::Task> task;

  /// The network with its parameters; with a learned posterior if the checkpoint holds one, or else as asked.
  template <class T>
  std::unique_ptr<Model<T>> model(bool posterior) const;

 private:
  TrainedOptions options_;
  Dimensions trained_dimensions_;
};

}  // namespace hardgrad::cli
