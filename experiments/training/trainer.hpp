// Training: steps of one estimator on one model and task, with losses, metrics and measurements at intervals.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/estimator/estimator.hpp"
#include "core/nn/optimizer.hpp"
#include "core/support/named.hpp"
#include "experiments/measurement/measure.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad::training {

/// The splits of evaluations that select a network.
inline constexpr Named<tasks::Split> evaluation_splits[] = {{"heldout", tasks::Split::heldout}, {"test", tasks::Split::test}};
/// That of the last evaluation.
enum class FinalSplit { same, heldout, test };
inline constexpr Named<FinalSplit> final_splits[] = {
    {"same", FinalSplit::same}, {"heldout", FinalSplit::heldout}, {"test", FinalSplit::test}};

struct TrainSettings {
  // Training ends as soon as one of these is reached (TrainResult::ended_by).
  int steps = 0;                 ///< always a limit
  double rows = 0;               ///< of the network, in all training gradients; 0: no limit (also below)
  double attention_values = 0;   ///< computed in all training gradients
  double cpu_seconds = 0;        ///< of the training steps, on all threads; not reproducible
  double target_loss = -1e300;   ///< of an evaluation: training stops at or below it; the default is no limit
  int patience = 0;              ///< evaluations in a row without improvement
  std::string monitor = "loss";  ///< quantity for patience and keep_best: the loss of the estimator's target, a loss by its
                                 ///< name, or a metric

  int batch = 32;
  int parts = 1;                ///< of a batch, whose gradients are computed side by side; see batch_gradient.hpp
  int threads = 0;              ///< for the parts, at most; 0: all that are free
  int reuse = 1;                ///< steps on one batch, with samples drawn by the network as it was at the first of them
  OptimizerSettings optimizer;  ///< of the model
  std::string param_group;      ///< parameters of the model with a separate optimiser: a name, or its prefix before a dot
  UpdateRule param_group_optimizer = UpdateRule::sgd;   ///< their optimiser, on the same schedule
  double param_group_learning_rate = 1e-2;              ///< its step size
  std::string anneal;                                   ///< settings of the estimator and their final values, see schedule.hpp
  double own_learning_rate = 1e-3;                      ///< of the estimator's own networks (Adam, on the model's schedule)
  int log_every = 10;                                   ///< steps between logged training losses (each the mean since the last)
  int evaluate_every = 0;                               ///< steps between evaluations; 0: only at the end
  int evaluate_examples = 0;                            ///< of the held-out split; 0 is all
  tasks::Split evaluate_split = tasks::Split::heldout;  ///< heldout or test: of evaluations that select a network
  FinalSplit final_split = FinalSplit::same;            ///< of the last evaluation
  bool decode = false;          ///< also decode freely in the last evaluation, if the task has decoding metrics
  int beam = 1;                 ///< decode: width of the beam; 1: greedily
  bool keep_best = false;       ///< restore the best evaluation's parameters before the last evaluation
  std::vector<int> measure_at;  ///< steps before which bias and variance are measured; `steps` is the end
  int measure_batch = 16;       ///< examples measured on: the first of the training split
  int measure_adapt = 0;  ///< steps for which a copy of the estimator learns with the network fixed, before it is measured
  measurement::MeasureSettings measure;

  /// The split of the last evaluation, which judges the run.
  tasks::Split judging_split() const {
    if (final_split == FinalSplit::same) return evaluate_split;
    return final_split == FinalSplit::test ? tasks::Split::test : tasks::Split::heldout;
  }
  /// Settings with which evaluations select the final network, and their effects.
  std::vector<std::pair<std::string, std::string>> choosing() const {
    std::vector<std::pair<std::string, std::string>> found;
    if (keep_best) found.emplace_back("keep_best", "choose the best evaluation");
    if (patience > 0) found.emplace_back("patience", "end the training by evaluations");
    if (target_loss > TrainSettings{}.target_loss) found.emplace_back("target_loss", "end the training by evaluations");
    return found;
  }
};

/// One evaluation.
struct EvaluationPoint {
  int step;
  std::map<std::string, double> losses;   ///< per example (nats): expected_loss, marginal_likelihood, ..., as available
  std::map<std::string, double> metrics;  ///< by metric name
};
/// The facts that a task declares of a metric.
struct MetricFacts {
  std::string unit = "1";
  bool higher_is_better = true, share = false;
  bool operator==(const MetricFacts&) const = default;
};
struct MeasurementPoint {
  int step;
  measurement::Measurement measurement;
};

struct TrainResult {
  std::vector<measurement::LogPoint> log;
  std::vector<EvaluationPoint> evaluations;
  std::vector<MeasurementPoint> measurements;
  double seconds = 0;                          ///< of the steps, without measurements and evaluations
  double rows = 0, attention_values = 0;       ///< of all training gradients
  double tape_bytes = 0;                       ///< largest memory of a gradient for values and cotangents
  double missed_hints = 0;                     ///< Tape::missed_hints of all training gradients
  std::string target;                          ///< of the estimator that trains
  std::map<std::string, MetricFacts> metrics;  ///< by metric of the task
  std::string ended_by;  ///< steps | rows | attention_values | cpu_seconds | target_loss | patience; empty before the end
};

/// The state of a training, apart from its network, estimator and optimisers.
struct TrainingProgress {
  TrainResult result;
  double cpu_seconds = 0;                                 ///< of training; result.seconds is its wall time
  double loss = 0;                                        ///< sum over the steps since the last logged one
  int since = 0;                                          ///< number of these steps
  double gradient_norm = 0;                               ///< of the last step
  double measuring = 0;                                   ///< wall seconds of all measurements; not part of the results
  double evaluating = 0;                                  ///< of all evaluations
  double best = std::numeric_limits<double>::infinity();  ///< best monitored value, with a sign: less is better
  int stale = 0;                                          ///< evaluations since
  bool at_best = false;                                   ///< at the end: the best evaluation's parameters are restored
};

/// A model in training with all its state. Training resumed from these values is bit-identical.
template <class T>
struct Training {
  std::shared_ptr<const tasks::Task> task;
  std::unique_ptr<Model<T>> model;
  std::unique_ptr<Estimator<T>> estimator;
  Spec estimator_spec;  ///< with the values of annealed settings at this step
  std::unique_ptr<Optimizer<T>> optimizer, own_optimizer;
  int step = 0;
  TrainingProgress progress;                ///< empty before and after training
  std::vector<std::vector<T>> best_values;  ///< parameters of its best evaluation, if keep_best
  std::shared_ptr<Model<T>> older;          ///< at the first step on the batch; null if every step has its own
};

/// The random streams of one run. Runs with the same `init` and `order` have the same initial parameters and batches, so that
/// estimators are compared with common random numbers.
struct RunKeys {
  Key init;   ///< initial parameters
  Key order;  ///< order of the training examples
  Key noise;  ///< the estimator's noise
};

/// Called between steps, where a training can be saved, if `act` is due.
struct CheckpointHook {
  std::function<bool()> due = {};
  std::function<void()> act = {};
};

/// Trains from `training.step` until the budget is used up. Polls `stop` between steps and within measurements and evaluations;
/// throws Interrupted if it returns true. The training can then be saved and resumed with the same settings and keys, also by
/// another process. Results are bit-identical, except times.
template <class T>
TrainResult train(Training<T>& training, const TrainSettings& settings, const RunKeys& keys, const Stop& stop = {},
                  const CheckpointHook& hook = {});

/// Used fraction of the budget, 0 to 1, for the nearest limit.
template <class T>
double share_done(const Training<T>& training, const TrainSettings& settings);
/// Estimated remaining wall seconds, from the times of earlier steps, measurements and evaluations; empty before the first.
template <class T>
std::optional<double> seconds_left(const Training<T>& training, const TrainSettings& settings);

/// Why an estimator cannot train a network with these settings; empty if it can.
std::string why_untrainable(const Spec& estimator, const Structure& structure, const TrainSettings& settings);
/// Thrown if an estimator does not support a model: what() is the reason.
struct Unsupported : UsageError {
  using UsageError::UsageError;
};
/// Creates the model and the estimator for one run on a task. The model gets a posterior if the estimator samples from one, and
/// the reference policy, if it is given. Throws UsageError, Unsupported.
template <class T>
Training<T> prepare(std::shared_ptr<const tasks::Task> task, const Spec& model, const Spec& estimator,
                    const TrainSettings& settings, const RunKeys& keys, std::shared_ptr<const Model<T>> reference = {});

}  // namespace hardgrad::training
