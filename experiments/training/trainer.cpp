#include "experiments/training/trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/support/machine.hpp"
#include "experiments/measurement/finite.hpp"
#include "experiments/training/adaptation.hpp"
#include "experiments/training/batch_gradient.hpp"
#include "experiments/training/evaluation.hpp"
#include "experiments/training/monitor.hpp"
#include "experiments/training/schedule.hpp"

namespace hardgrad::training {
namespace {

template <class T>
std::vector<std::vector<T>> copy_values(const ParameterSet<T>& set) {
  std::vector<std::vector<T>> values;
  for (const auto& p : set) values.push_back(p.value.storage());
  return values;
}
template <class T>
void put_values(ParameterSet<T>& set, const std::vector<std::vector<T>>& values) {
  std::size_t i = 0;
  for (auto& p : set) p.value.storage() = values[i++];
}

/// The value that ranks evaluations: the loss of the estimator's target if it was computed.
double own_loss(const EvaluationPoint& point, const Target& target) {
  for (const auto& name :
       {target.name(), std::string("sampled_elbo"), std::string("expected_loss"), std::string("sampled_loss")})
    if (auto it = point.losses.find(name); it != point.losses.end()) return it->second;
  return point.losses.begin()->second;
}

template <class Point>
bool has(const std::vector<Point>& points, int step) {
  return !points.empty() && points.back().step == step;
}

/// Wall seconds, and CPU seconds of this thread.
struct Seconds {
  double wall = 0, cpu = 0;
  static Seconds now() {
    return {std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(), thread_seconds()};
  }
  Seconds operator-(const Seconds& other) const { return {wall - other.wall, cpu - other.cpu}; }
  Seconds operator+(const Seconds& other) const { return {wall + other.wall, cpu + other.cpu}; }
};

/// One call of `train`. After an interruption the training is in a state between two steps: results of a measurement or an
/// evaluation are stored only when it is finished.
template <class T>
class Loop {
 public:
  Loop(Training<T>& training, const TrainSettings& settings, const RunKeys& keys, const Stop& stop, const CheckpointHook& hook)
      : training_(training),
        settings_(settings),
        keys_(keys),
        stop_(stop),
        hook_(hook),
        own_spec_(training.estimator_spec),
        sign_(higher_is_better(*training.task, settings.monitor, "train.monitor: the task") ? -1 : 1),
        batches_(*training.task, settings.batch, keys.order),
        of_batch_(settings.parts, settings.threads, polling(stop)),
        gradient_(training.model->parameters().size()),
        before_{progress().result.seconds, progress().cpu_seconds} {
    const auto need = [&](const std::string& name, tasks::Split split) {
      if (training.task->size(split) == 0)
        throw UsageError(fmt::format("train.{}: the task has no {} examples to evaluate on", name, to_string(split)));
    };
    for (const auto& [name, what] : settings.choosing()) need(name, settings.evaluate_split);
    if (settings.final_split != FinalSplit::same) need("final_split", settings.judging_split());
  }

  TrainResult run() {
    result().target = training_.estimator->target().name();
    for (const auto& metric : training_.task->metrics())
      result().metrics[metric.name] = {metric.unit, metric.higher_is_better, metric.share};
    try {
      while (!ended()) {
        poll(stop_);
        anneal();
        look();
        pause();
        if (!ended()) step();
      }
      finish();
    } catch (const Interrupted&) {
      note_time();
      throw;
    }
    training_.best_values.clear();
    return std::exchange(training_.progress, {}).result;
  }

 private:
  TrainingProgress& progress() { return training_.progress; }
  TrainResult& result() { return training_.progress.result; }

  bool ended() {
    auto& why = result().ended_by;
    if (!why.empty()) return true;
    const auto over = [](double limit, double used) { return limit > 0 && used >= limit; };
    if (settings_.cpu_seconds > 0) note_time();
    if (training_.step >= settings_.steps)
      why = "steps";
    else if (over(settings_.rows, result().rows))
      why = "rows";
    else if (over(settings_.attention_values, result().attention_values))
      why = "attention_values";
    else if (over(settings_.cpu_seconds, progress().cpu_seconds))
      why = "cpu_seconds";
    return !why.empty();
  }

  /// Sets the estimator's annealed settings for this step. Measurements use its target with these settings.
  void anneal() {
    if (settings_.anneal.empty()) return;
    auto spec = annealed(own_spec_, settings_.anneal, static_cast<double>(training_.step) / settings_.steps);
    training_.estimator = copied(spec, *training_.estimator, training_.model->structure_with_policies());
    training_.estimator_spec = std::move(spec);
  }

  void pause() {
    if (!hook_.due || !hook_.due()) return;
    note_time();
    hook_.act();
  }

  void step() {
    auto& [task, model, estimator, spec, optimizer, own_optimizer, step, progress, best_values, older] = training_;
    auto& result = progress.result;
    const int again = step % settings_.reuse;
    const auto batch = batches_.at(step / settings_.reuse);
    if (older && again == 0) put_values(older->parameters(), copy_values(model->parameters()));
    const auto policies = model->policies();
    if (again > 0) model->set_policies({.behaviour = older, .reference = policies.reference});
    // The same noise and the same older network give the same samples at every step on the batch.
    const auto taken =
        of_batch_.take(training_, batch, keys_.noise / "train" / static_cast<std::uint64_t>(step - again), gradient_);
    model->set_policies(policies);
    aside_.cpu -= taken.seconds_elsewhere;
    progress.gradient_norm = std::sqrt(squared_norm<T>(gradient_));
    optimizer->step(model->parameters(), gradient_);
    result.missed_hints += taken.cost.missed_hints;
    result.tape_bytes = std::max(result.tape_bytes, taken.tape_bytes);
    result.rows += taken.cost.rows;
    result.attention_values += taken.cost.attention_values;
    measurement::require_finite(taken.loss, "the training loss");
    progress.loss += taken.loss;
    ++progress.since;
    if (++step % settings_.log_every == 0) log();
  }

  void log() {
    auto& state = progress();
    if (state.since == 0) return;
    note_time();
    const auto& now = state.result;
    result().log.push_back({training_.step, state.loss / state.since, now.seconds, state.gradient_norm, now.rows,
                            now.attention_values, state.cpu_seconds});
    state.loss = 0;
    state.since = 0;
  }

  /// Measures the time of work that is not training.
  template <class F>
  void aside(double& seconds, F work) {
    const auto began = Seconds::now();
    const auto over = [&] {
      const auto took = Seconds::now() - began;
      aside_ = aside_ + took;
      seconds += took.wall;
    };
    try {
      work();
    } catch (...) {
      over();
      throw;
    }
    over();
  }

  void note_time() {
    const auto spent = before_ + (Seconds::now() - start_ - aside_);
    result().seconds = spent.wall;
    progress().cpu_seconds = spent.cpu;
  }

  void measure_now() {
    aside(progress().measuring, [&] {
      const auto& task = *training_.task;
      const auto examples = std::min<std::size_t>(settings_.measure_batch, task.size(tasks::Split::train));
      std::vector<int> first(examples);
      for (std::size_t i = 0; i < examples; ++i) first[i] = static_cast<int>(i);
      const auto batch = task.batch(tasks::Split::train, first);
      const auto noise = keys_.noise / "measure" / static_cast<std::uint64_t>(training_.step);
      auto how = settings_.measure;
      how.stop = stop_;
      const auto& estimator = *training_.estimator;
      std::unique_ptr<Estimator<T>> adapted;  // its learning for the measurement does not affect training
      if (settings_.measure_adapt > 0 && learns(estimator)) {
        adapted = copied(training_.estimator_spec, estimator, training_.model->structure());
        adapt(*adapted, *training_.model, task, {settings_.measure_adapt, settings_.batch, settings_.own_learning_rate},
              noise / "adapt", stop_);
      }
      result().measurements.push_back({training_.step, measure(training_.estimator_spec, adapted ? *adapted : estimator,
                                                               *training_.model, batch, how, noise)});
    });
  }

  void evaluate_now(bool last) {
    const auto& task = *training_.task;
    EvaluationSettings how{.split = last ? settings_.judging_split() : settings_.evaluate_split,
                           .examples = settings_.evaluate_examples,
                           .decode = last && settings_.decode,
                           .beam = settings_.beam,
                           .bound_samples = last ? task.bound_samples() : 0,
                           .stop = stop_};
    if (task.size(how.split) == 0) return;
    aside(progress().evaluating, [&] {
      auto point = evaluate(task, *training_.model, training_.estimator->target(), how,
                            keys_.noise / "evaluate" / static_cast<std::uint64_t>(training_.step));
      point.step = training_.step;
      result().evaluations.push_back(std::move(point));
    });
    if (!last) judge(result().evaluations.back());
  }

  /// Less is better.
  double score_of(const EvaluationPoint& point) const {
    if (settings_.monitor == "loss") return own_loss(point, training_.estimator->target());
    const auto found = monitored(point, settings_.monitor);
    if (!found) throw UsageError("train.monitor: " + nothing_to_monitor(point, settings_.monitor));
    if (!std::isfinite(found->value))
      throw UsageError(fmt::format("train.monitor: {} is computed only in the last evaluation, which alone decodes freely",
                                   found->quantity));
    return sign_ * found->value;
  }

  void judge(const EvaluationPoint& point) {
    const double loss = own_loss(point, training_.estimator->target()), score = score_of(point);
    auto& state = progress();
    if (score < state.best) {
      state.best = score;
      state.stale = 0;
      if (settings_.keep_best) training_.best_values = copy_values(training_.model->parameters());
    } else {
      ++state.stale;
    }
    if (!result().ended_by.empty()) return;
    if (loss <= settings_.target_loss)
      result().ended_by = "target_loss";
    else if (settings_.patience > 0 && state.stale >= settings_.patience)
      result().ended_by = "patience";
  }

  bool asked_for(int step) const {
    return std::find(settings_.measure_at.begin(), settings_.measure_at.end(), step) != settings_.measure_at.end();
  }

  /// Between two steps; nothing is repeated if training resumes from here.
  void look() {
    const int step = training_.step;
    if (asked_for(step) && !has(result().measurements, step)) measure_now();
    if (settings_.evaluate_every > 0 && step % settings_.evaluate_every == 0 && !has(result().evaluations, step))
      evaluate_now(false);
  }

  void finish() {
    const int step = training_.step;
    anneal();
    log();
    note_time();
    if ((asked_for(step) || asked_for(settings_.steps)) && !has(result().measurements, step)) measure_now();
    pause();
    if (settings_.keep_best && !progress().at_best) {
      if (!has(result().evaluations, step)) evaluate_now(false);
      if (!training_.best_values.empty()) put_values(training_.model->parameters(), training_.best_values);
      progress().at_best = true;
    }
    if (has(result().evaluations, step)) result().evaluations.pop_back();
    evaluate_now(true);
    note_time();
  }

  Training<T>& training_;
  const TrainSettings& settings_;
  const RunKeys& keys_;
  const Stop& stop_;
  const CheckpointHook& hook_;
  const Spec own_spec_;
  const double sign_;  // of the monitored value
  Batches batches_;
  BatchGradient<T> of_batch_;
  std::vector<T> gradient_;
  const Seconds before_, start_ = Seconds::now();
  Seconds aside_;  // time that is not training
};

}  // namespace

template <class T>
TrainResult train(Training<T>& training, const TrainSettings& settings, const RunKeys& keys, const Stop& stop,
                  const CheckpointHook& hook) {
  return Loop<T>(training, settings, keys, stop, hook).run();
}

template <class T>
double share_done(const Training<T>& training, const TrainSettings& settings) {
  const auto& progress = training.progress;
  if (!progress.result.ended_by.empty()) return 1;
  double share = settings.steps > 0 ? static_cast<double>(training.step) / settings.steps : 1;
  for (const auto& [limit, used] : {std::pair{settings.rows, progress.result.rows},
                                    {settings.attention_values, progress.result.attention_values},
                                    {settings.cpu_seconds, progress.cpu_seconds}})
    if (limit > 0) share = std::max(share, used / limit);
  return std::min(share, 1.0);
}

template <class T>
std::optional<double> seconds_left(const Training<T>& training, const TrainSettings& settings) {
  const auto& progress = training.progress;
  const double share = share_done(training, settings);
  if (!(share > 0)) return {};
  const double steps_left = training.step * (1 - share) / share;
  double seconds = progress.result.seconds * (1 - share) / share;
  if (const auto done = static_cast<double>(progress.result.measurements.size()); done > 0)
    seconds += progress.measuring / done * std::max(0.0, static_cast<double>(settings.measure_at.size()) - done);
  if (const auto done = static_cast<double>(progress.result.evaluations.size()); done > 0)
    seconds += progress.evaluating / done *
               (1 + settings.keep_best + (settings.evaluate_every > 0 ? steps_left / settings.evaluate_every : 0));
  return seconds;
}

#define HARDGRAD_INSTANTIATE(T)                                                                                       \
  template TrainResult train(Training<T>&, const TrainSettings&, const RunKeys&, const Stop&, const CheckpointHook&); \
  template double share_done(const Training<T>&, const TrainSettings&);                                               \
  template std::optional<double> seconds_left(const Training<T>&, const TrainSettings&);
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)
#undef HARDGRAD_INSTANTIATE

}  // namespace hardgrad::training
