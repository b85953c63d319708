// Training: steps of one estimator on one model and task, with losses, metrics and measurements on the way.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/estimator/estimator.hpp"
#include "core/nn/optimizer.hpp"
#include "experiments/measurement/measure.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad {

struct TrainSettings {
  int steps = 0;
  int batch = 32;
  OptimizerSettings optimizer;             ///< of the model
  double own_learning_rate = 1e-3;         ///< of the estimator's own networks (Adam, on the model's schedule)
  int log_every = 10;                      ///< steps between logged training losses (each the mean since the last)
  int evaluate_every = 0;                  ///< steps between evaluations; 0: only at the end
  int evaluate_examples = 0;               ///< of the held-out split; 0 is all
  std::string evaluate_split = "heldout";  ///< heldout | test
  bool decode = false;                     ///< also decode freely in the last evaluation, where the task wants it
  bool keep_best = false;                  ///< go back to the best evaluation's parameters before the last one
  std::vector<int> measure_at;             ///< steps before which bias and variance are measured
  int measure_batch = 16;                  ///< examples measured on: the first of the training split
  int measure_adapt = 0;  ///< steps that a copy of the estimator learns at the network as it is, before it is measured
  MeasureSettings measure;
};

/// One logged point of training; seconds (without measurements and evaluations), rows, attention values and processor seconds
/// of the thread that trains so far. Others on the machine change the wall time, not the processor's.
struct LogPoint {
  int step;
  double loss, seconds, gradient_norm;
  double rows = not_a_number, attention_values = not_a_number, cpu_seconds = not_a_number;
};
/// One evaluation.
struct EvaluationPoint {
  int step;
  std::map<std::string, double> losses;   ///< per example (nats): expected_loss, marginal_likelihood, ... what can be had
  std::map<std::string, double> metrics;  ///< by metric name
};
struct MeasurementPoint {
  int step;
  Measurement measurement;
};

struct TrainResult {
  std::vector<LogPoint> log;
  std::vector<EvaluationPoint> evaluations;
  std::vector<MeasurementPoint> measurements;
  double seconds = 0;                     ///< of the steps, without measurements and evaluations
  double rows = 0, attention_values = 0;  ///< of all training gradients
  double tape_bytes = 0;                  ///< most memory a gradient took for its values and cotangents
  double missed_hints = 0;                ///< Tape::missed_hints of all training gradients
};

/// A model being trained, and all that goes with it; what a checkpoint holds.
template <class T>
struct Training {
  std::shared_ptr<const Task> task;
  std::unique_ptr<Model<T>> model;
  std::unique_ptr<Estimator<T>> estimator;
  Spec estimator_spec;
  std::unique_ptr<Optimizer<T>> optimizer, own_optimizer;
  int step = 0;
};

/// The streams of one run. Runs that share `init` and `order` start alike and see the same batches, so that estimators
/// are compared on common random numbers.
struct RunKeys {
  Key init;   ///< initial parameters
  Key order;  ///< order of the training examples
  Key noise;  ///< the estimator's noise
};

/// Trains from `training.step` to settings.steps. `stop` is polled between steps, and within measurements and
/// evaluations; Interrupted is thrown if it says so.
template <class T>
TrainResult train(Training<T>& training, const TrainSettings& settings, const RunKeys& keys, const Stop& stop = {});

/// Thrown where an estimator does not support a model: what() is the reason.
struct Unsupported : UsageError {
  using UsageError::UsageError;
};
/// Makes the model and the estimator for one run on a task; the model gets a posterior if the estimator proposes from
/// one. Throws UsageError, Unsupported.
template <class T>
Training<T> prepare(std::shared_ptr<const Task> task, const Spec& model, const Spec& estimator, const TrainSettings& settings,
                    const RunKeys& keys);

}  // namespace hardgrad
