// A task: data in splits, the dimensions that models need, and metrics of a model's answers.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/models/model.hpp"
#include "core/random/key.hpp"
#include "core/registry/registry.hpp"
#include "core/support/named.hpp"

namespace hardgrad::tasks {

enum class Split { train, heldout, test };
inline constexpr Named<Split> splits[] = {{"train", Split::train}, {"heldout", Split::heldout}, {"test", Split::test}};
inline std::string to_string(Split split) { return name_of(split, splits); }

/// The record of a run with one row per example, for metrics. -1 pads.
struct Observation {
  Array<int> predictions;  ///< [B, P] labels passed to Episode::predict, in order
  /// [B, T] chosen options, one for each choice, or of a subset each of its options (relaxed: those of the largest weights;
  /// numbers, and subsets of fewer options: -1).
  Array<int> choices;
  int subset_size = 1;  ///< options of a choice
};

/// A metric accumulates over batches. Its value is numerator / denominator, or, if it is not a mean, a formula of sums.
struct Metric {
  std::string name;  ///< e.g. "accuracy"
  std::string unit;  ///< "1": dimensionless
  bool higher_is_better = true;
  bool share = false;  ///< from 0 to 1, shown as a percentage
  double numerator = 0, denominator = 0;
  std::vector<double> sums = {};  ///< arguments of `formula`, e.g. BLEU's n-gram counts
  double (*formula)(const std::vector<double>& sums) = nullptr;
  /// Adds to the mean: a sum, and the number of its terms.
  void add(double sum, double count = 1) {
    numerator += sum;
    denominator += count;
  }
  double value() const {
    if (formula) return formula(sums);
    return denominator > 0 ? numerator / denominator : std::numeric_limits<double>::quiet_NaN();
  }
};

class Task {
 public:
  virtual ~Task() = default;
  /// Dimensions that models need, e.g. {"source_vocabulary", 2000}.
  virtual Dimensions dimensions() const = 0;
  /// Number of examples in a split.
  virtual std::size_t size(Split split) const = 0;
  /// The examples at these indices of a split, padded to the longest. Batch::id is unique over all splits.
  virtual Batch batch(Split split, const std::vector<int>& indices) const = 0;
  /// Examples of the training split to train on. A task that draws its examples anew in every epoch uses the epoch's key here;
  /// `batch` gives fixed examples for evaluations and measurements.
  virtual Batch training_batch(const std::vector<int>& indices, Key /*epoch*/) const { return batch(Split::train, indices); }
  /// The word with this number in a field; empty for padding and for fields without words.
  virtual std::string word(const std::string& /*field*/, int /*number*/) const { return {}; }
  /// The metrics of this task, at zero.
  virtual std::vector<Metric> metrics() const { return {}; }
  /// Adds the results of a teacher-forced (or plain) run of a batch.
  virtual void score(const Batch&, const Observation&, std::vector<Metric>&) const {}
  /// True if some metrics need a free-running decode, which is passed to `score_decoded`.
  virtual bool decodes() const { return false; }
  virtual void score_decoded(const Batch&, const Observation&, std::vector<Metric>&) const {}
  /// Number of samples of the marginal-likelihood bound in the last evaluation; 0: no bound.
  virtual int bound_samples() const { return 0; }
  /// The origin of the data, for the record: "generated" or a path, and the numbers of examples left out, with reasons.
  virtual std::string provenance() const { return "generated"; }
  /// Hashes of the examples of a split, in its order: of their texts, not of numbers of words, so that an example has the same
  /// hash in other data. Empty if examples are made on demand.
  virtual std::vector<std::uint64_t> contents(Split) const { return {}; }
  /// The hash of the files that were read (ReadingRecord); empty for generated data.
  const std::string& data_hash() const { return data_hash_; }

 private:
  friend std::unique_ptr<Task> make_task(const Spec& spec, Key data, const Task* trained);
  std::string data_hash_;
};

/// A task with a curriculum: an optional interface besides Task. Draws training examples by the number of examples seen
/// before. The result depends only on its arguments, so an interrupted training resumes with the same examples.
struct Graded {
  virtual ~Graded() = default;
  /// Replaces Task::training_batch; `seen` examples were drawn before this batch.
  virtual Batch graded_batch(const std::vector<int>& indices, Key epoch, std::uint64_t seen) const = 0;
};

/// A task's entry in the registry.
struct TaskEntry {
  static constexpr const char* noun = "task";
  std::string name;
  std::string summary;        ///< one line
  std::string data;           ///< its kinds of data
  std::string default_model;  ///< a spec, used when no model is named
  std::vector<ParameterInfo> parameters = {};
  /// Loads or generates the data. The key `data` drives generators and splits. InputError on bad files.
  std::unique_ptr<Task> (*make)(const Settings&, Key data) = nullptr;
  /// The same for a network trained on `trained`, a task of this name: words (labels, answers) have the same numbers as there.
  /// Null if numbers have the same meaning in all data of the task.
  std::unique_ptr<Task> (*make_for)(const Settings&, Key data, const Task& trained) = nullptr;
};
using Tasks = Registry<TaskEntry>;

/// Registers task class T as declared. T has a constructor (config, key), or, if its words, labels or answers are numbered by
/// its data, (config, key, const T* trained): with new numbers (null), or with those of the task a network was trained on.
#define HARDGRAD_TASK(T, declared)                                                                      \
  namespace {                                                                                           \
  const Registration<TaskEntry> registered_task_##T(::hardgrad::tasks::with_factories_of<T>(declared)); \
  }

template <class T>
TaskEntry with_factories_of(TaskEntry entry) {
  if constexpr (std::is_constructible_v<T, SettingsArgument, Key, const T*>) {
    entry.make = [](const Settings& settings, Key data) -> std::unique_ptr<Task> {
      return std::make_unique<T>(SettingsArgument{settings}, data, nullptr);
    };
    entry.make_for = [](const Settings& settings, Key data, const Task& trained) -> std::unique_ptr<Task> {
      const auto* like = dynamic_cast<const T*>(&trained);
      if (!like) throw Bug("words can be reused only from a task of the same kind");
      return std::make_unique<T>(SettingsArgument{settings}, data, like);
    };
  } else {
    entry.make = [](const Settings& settings, Key data) -> std::unique_ptr<Task> {
      return std::make_unique<T>(SettingsArgument{settings}, data);
    };
  }
  return entry;
}

/// Makes a task from its spec; with `trained`, for a network trained on that task of the same name. UsageError, InputError.
std::unique_ptr<Task> make_task(const Spec& spec, Key data, const Task* trained = nullptr);

/// Whether the spec names input files.
bool reads_files(const Spec& spec);

/// The tasks whose default model has this name.
std::vector<std::string> tasks_of(const std::string& model);

/// Makes a model for a task. UsageError with the models that fit and the tasks of this one if it does not fit.
template <class T>
std::unique_ptr<Model<T>> make_model_for(const Task& task, const Spec& model, Key init, bool posterior = false);

}  // namespace hardgrad::tasks
