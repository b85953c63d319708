// A task: data in splits, what a model must know of them, and how its answers are scored.
#pragma once

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/models/batch.hpp"
#include "core/random/key.hpp"
#include "core/registry/registry.hpp"

namespace hardgrad::tasks {

enum class Split { train, heldout, test };
std::string to_string(Split split);
/// The split of that name; UsageError if there is none.
Split split_named(const std::string& name);

/// What a run of one row per example did, for metrics. -1 pads.
struct Observation {
  Array<int> predictions;  ///< [B, P] labels handed to Episode::predict, in order
  Array<int> choices;      ///< [B, T] options chosen (of relaxed weights: the largest; of numbers: -1)
};

/// A metric accumulates over batches: its value is numerator / denominator, or for those that are no mean a
/// formula of sums. All sums add up over batches.
struct Metric {
  std::string name;  ///< e.g. "accuracy"
  std::string unit;  ///< "1" for shares
  bool higher_is_better = true;
  double numerator = 0, denominator = 0;
  std::vector<double> sums = {};  ///< what `formula` reads, e.g. BLEU's n-gram counts
  double (*formula)(const std::vector<double>& sums) = nullptr;
  double value() const {
    if (formula) return formula(sums);
    return denominator > 0 ? numerator / denominator : std::numeric_limits<double>::quiet_NaN();
  }
};

class Task {
 public:
  virtual ~Task() = default;
  /// What models need, e.g. {"source_vocabulary", 2000}.
  virtual Dimensions dimensions() const = 0;
  /// Examples in a split.
  virtual std::size_t size(Split split) const = 0;
  /// The examples at these indices of a split, padded to the longest. Batch::id is unique over all splits.
  virtual Batch batch(Split split, const std::vector<int>& indices) const = 0;
  /// Examples of the training split to train on. A task whose examples are drawn anew at every use draws these with the key of
  /// the epoch; `batch` gives those of evaluations and measurements, always the same.
  virtual Batch training_batch(const std::vector<int>& indices, Key /*epoch*/) const { return batch(Split::train, indices); }
  /// The word that a number of a batch's field stands for; empty for padding, and in fields that hold no words.
  virtual std::string word(const std::string& /*field*/, int /*number*/) const { return {}; }
  /// The metrics of this task, all at zero.
  virtual std::vector<Metric> metrics() const { return {}; }
  /// Adds what teacher-forced (or plain) running of a batch showed.
  virtual void score(const Batch&, const Observation&, std::vector<Metric>&) const {}
  /// True if there are metrics that want a free-running decode; `score_decoded` is then given one.
  virtual bool decodes() const { return false; }
  virtual void score_decoded(const Batch&, const Observation&, std::vector<Metric>&) const {}
  /// Samples of the bound on the marginal likelihood that the last evaluation is to report; 0: none.
  virtual int bound_samples() const { return 0; }
  /// Where the data came from, for the record: "generated" or a path, and how many examples were dropped and why.
  virtual std::string provenance() const { return "generated"; }
};

/// A task's entry in the registry.
struct TaskEntry {
  static constexpr const char* noun = "task";
  std::string name;
  std::string summary;        ///< one line
  std::string data;           ///< what data it takes
  std::string default_model;  ///< a spec, used when no model is named
  std::vector<ParameterInfo> parameters = {};
  /// Loads or generates the data; the stream `data` drives generators and splits. Throws InputError on bad files.
  std::unique_ptr<Task> (*make)(const Settings&, Key data) = nullptr;
  /// The same for a network trained on `trained`, a task of this name: words (labels, answers) have the numbers that they have
  /// there. None where numbers mean the same in all data of the task.
  std::unique_ptr<Task> (*make_for)(const Settings&, Key data, const Task& trained) = nullptr;
};
using Tasks = Registry<TaskEntry>;

/// Makes a task from its spec, perhaps for a network trained on another of the same name. UsageError, InputError.
std::unique_ptr<Task> make_task(const Spec& spec, Key data, const Task* trained = nullptr);

}  // namespace hardgrad::tasks
