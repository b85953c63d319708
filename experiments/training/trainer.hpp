// Training: steps of one estimator on one model and task, with losses, metrics and measurements on the way.
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
#include "experiments/measurement/measure.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad::training {

struct TrainSettings {
  // Training ends as soon as one of these is reached (TrainResult::ended_by).
  int steps = 0;                 ///< always a limit
  double rows = 0;               ///< of the network, by all training gradients; 0: no limit, as of those below
  double attention_values = 0;   ///< computed by them
  double cpu_seconds = 0;        ///< of the thread that trains, without measurements and evaluations: results depend on it then
  double target_loss = -1e300;   ///< of an evaluation, at or below it; the default is none
  int patience = 0;              ///< evaluations in a row that are no better than the best before them
  std::string monitor = "loss";  ///< what they are better by (patience, keep_best): the loss of the estimator's own target, a
                                 ///< loss by its name, or a metric

  int batch = 32;
  OptimizerSettings optimizer;             ///< of the model
  std::string apart;                       ///< parameters of the model that have another: a name, or its beginning before a dot
  std::string apart_optimizer = "sgd";     ///< theirs, on the same schedule
  double apart_learning_rate = 1e-2;       ///< its step size
  std::string anneal;                      ///< settings of the estimator and the values they go to, see annealing.hpp
  double own_learning_rate = 1e-3;         ///< of the estimator's own networks (Adam, on the model's schedule)
  int log_every = 10;                      ///< steps between logged training losses (each the mean since the last)
  int evaluate_every = 0;                  ///< steps between evaluations; 0: only at the end
  int evaluate_examples = 0;               ///< of the held-out split; 0 is all
  std::string evaluate_split = "heldout";  ///< heldout | test: where evaluations choose, see keep_best
  std::string final_split = "same";        ///< of the last evaluation: heldout | test | same
  bool decode = false;                     ///< also decode freely in the last evaluation, where the task wants it
  int beam = 1;                            ///< decode: beginnings of a sentence that go on together; 1: greedily
  bool keep_best = false;                  ///< go back to the best evaluation's parameters before the last one
  std::vector<int> measure_at;             ///< steps before which bias and variance are measured; `steps` is the end
  int measure_batch = 16;                  ///< examples measured on: the first of the training split
  int measure_adapt = 0;  ///< steps that a copy of the estimator learns at the network as it is, before it is measured
  measurement::MeasureSettings measure;

  /// The split that the last evaluation is of, by which the run is judged.
  const std::string& judging_split() const { return final_split == "same" ? evaluate_split : final_split; }
  /// Settings by which evaluations choose what network comes out, and what they would do.
  std::vector<std::pair<std::string, std::string>> choosing() const {
    std::vector<std::pair<std::string, std::string>> found;
    if (keep_best) found.emplace_back("keep_best", "choose the best evaluation");
    if (patience > 0) found.emplace_back("patience", "end the training by evaluations");
    if (target_loss > TrainSettings{}.target_loss) found.emplace_back("target_loss", "end the training by evaluations");
    return found;
  }
};

/// One logged point of training; seconds (without measurements and evaluations), rows, attention values and processor seconds
/// of the thread that trains so far. Others on the machine change the wall time, not the processor's.
struct LogPoint {
  int step;
  double loss, seconds, gradient_norm;
  double rows = measurement::not_a_number, attention_values = measurement::not_a_number,
         cpu_seconds = measurement::not_a_number;
};
/// One evaluation.
struct EvaluationPoint {
  int step;
  std::map<std::string, double> losses;   ///< per example (nats): expected_loss, marginal_likelihood, ... what can be had
  std::map<std::string, double> metrics;  ///< by metric name
};
struct MeasurementPoint {
  int step;
  measurement::Measurement measurement;
};

struct TrainResult {
  std::vector<LogPoint> log;
  std::vector<EvaluationPoint> evaluations;
  std::vector<MeasurementPoint> measurements;
  double seconds = 0;                     ///< of the steps, without measurements and evaluations
  double rows = 0, attention_values = 0;  ///< of all training gradients
  double tape_bytes = 0;                  ///< most memory a gradient took for its values and cotangents
  double missed_hints = 0;                ///< Tape::missed_hints of all training gradients
  std::string ended_by;  ///< steps | rows | attention_values | cpu_seconds | target_loss | patience; empty before the end
};

/// What a training has come to, beside its network, estimator and optimisers.
struct SoFar {
  TrainResult result;
  double cpu_seconds = 0;    ///< of training; result.seconds is its wall time
  double loss = 0;           ///< sum over the steps since the last logged one
  int since = 0;             ///< how many these are
  double gradient_norm = 0;  ///< of the last step
  double measuring = 0;      ///< wall seconds of all measurements; not of the numbers
  double evaluating = 0;     ///< of all evaluations
  double best =
      std::numeric_limits<double>::infinity();  ///< of the evaluations, by what is monitored, with a sign: less is better
  int stale = 0;                                ///< evaluations since
  bool at_best = false;                         ///< the end: the best evaluation's parameters were put back
};

/// A model being trained, and all that goes with it. From its values training goes on to the same bits.
template <class T>
struct Training {
  std::shared_ptr<const tasks::Task> task;
  std::unique_ptr<Model<T>> model;
  std::unique_ptr<Estimator<T>> estimator;
  Spec estimator_spec;  ///< with the values that annealed settings have at this step
  std::unique_ptr<Optimizer<T>> optimizer, own_optimizer;
  int step = 0;
  SoFar so_far;                             ///< nothing before a training, and after it
  std::vector<std::vector<T>> best_values;  ///< parameters of its best evaluation, if keep_best
};

/// The streams of one run. Runs that share `init` and `order` start alike and see the same batches, so that estimators
/// are compared on common random numbers.
struct RunKeys {
  Key init;   ///< initial parameters
  Key order;  ///< order of the training examples
  Key noise;  ///< the estimator's noise
};

/// Asked between steps, where a training can be saved: whether `act` is due.
struct Between {
  std::function<bool()> due = {};
  std::function<void()> act = {};
};

/// Trains from `training.step` until the budget is used up. `stop` is polled between steps, and within measurements and
/// evaluations; Interrupted is thrown if it says so. The training can then be saved, and trained again with the same settings
/// and keys, also by another process: what comes out is the same bit for bit, but for times.
template <class T>
TrainResult train(Training<T>& training, const TrainSettings& settings, const RunKeys& keys, const Stop& stop = {},
                  const Between& between = {});

/// Share of the budget that is used up, 0 to 1: of the limit that is nearest.
template <class T>
double share_done(const Training<T>& training, const TrainSettings& settings);
/// Wall seconds that the rest will take, by what steps, measurements and evaluations took so far; nothing before the first
/// step.
template <class T>
std::optional<double> seconds_left(const Training<T>& training, const TrainSettings& settings);

/// Thrown where an estimator does not support a model: what() is the reason.
struct Unsupported : UsageError {
  using UsageError::UsageError;
};
/// Makes the model and the estimator for one run on a task; the model gets a posterior if the estimator proposes from
/// one. Throws UsageError, Unsupported.
template <class T>
Training<T> prepare(std::shared_ptr<const tasks::Task> task, const Spec& model, const Spec& estimator,
                    const TrainSettings& settings, const RunKeys& keys);

}  // namespace hardgrad::training
