#include "experiments/training/trainer.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/autodiff/gradient.hpp"
#include "core/support/usage.hpp"
#include "experiments/measurement/finite.hpp"
#include "experiments/training/adaptation.hpp"
#include "experiments/training/batches.hpp"
#include "experiments/training/evaluation.hpp"

namespace hardgrad {
namespace {

template <class T>
std::vector<std::vector<T>> copy_values(const ParameterSet<T>& set) {
  std::vector<std::vector<T>> values;
  for (const auto& p : set) values.push_back(p.value.data);
  return values;
}
template <class T>
void put_values(ParameterSet<T>& set, const std::vector<std::vector<T>>& values) {
  std::size_t i = 0;
  for (auto& p : set) p.value.data = values[i++];
}

/// The number by which evaluations are ranked: the loss of the estimator's own target where it was had.
double own_loss(const EvaluationPoint& point, const Target& target) {
  for (const auto& name :
       {target.name(), std::string("sampled_elbo"), std::string("expected_loss"), std::string("sampled_loss")})
    if (auto it = point.losses.find(name); it != point.losses.end()) return it->second;
  return point.losses.begin()->second;
}

/// Seconds of the wall clock, and of this thread's processor.
struct Seconds {
  double wall = 0, cpu = 0;
  static Seconds now() {
    return {std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(), thread_seconds()};
  }
  Seconds operator-(const Seconds& other) const { return {wall - other.wall, cpu - other.cpu}; }
  Seconds operator+(const Seconds& other) const { return {wall + other.wall, cpu + other.cpu}; }
};

}  // namespace

template <class T>
TrainResult train(Training<T>& training, const TrainSettings& settings, const RunKeys& keys, const Stop& stop) {
  auto& [task, model, estimator, spec, optimizer, own_optimizer, step] = training;
  const auto start = Seconds::now();
  Batches batches(*task, settings.batch, keys.order);
  TrainResult result;
  Tape<T> tape;
  std::vector<T> gradient(model->parameters().size()), own_gradient;
  double best = std::numeric_limits<double>::infinity();
  std::vector<std::vector<T>> best_values;

  const auto measure_now = [&] {
    if (std::find(settings.measure_at.begin(), settings.measure_at.end(), step) == settings.measure_at.end()) return;
    const auto examples = std::min<std::size_t>(settings.measure_batch, task->size(Split::train));
    std::vector<int> first(examples);
    for (std::size_t i = 0; i < examples; ++i) first[i] = static_cast<int>(i);
    const auto batch = task->batch(Split::train, first);
    const auto noise = keys.noise / "measure" / static_cast<std::uint64_t>(step);
    auto how = settings.measure;
    how.stop = stop;
    std::unique_ptr<Estimator<T>> adapted;  // what it learns for the measurement is not training's
    if (settings.measure_adapt > 0 && learns(*estimator)) {
      adapted = copied(spec, *estimator, model->structure());
      adapt(*adapted, *model, *task, {settings.measure_adapt, settings.batch, settings.own_learning_rate}, noise / "adapt",
            stop);
    }
    result.measurements.push_back({step, measure(spec, adapted ? *adapted : *estimator, *model, batch, how, noise)});
  };
  const auto evaluate_now = [&](bool last) {
    EvaluationSettings how{.split = settings.evaluate_split == "test" ? Split::test : Split::heldout,
                           .examples = settings.evaluate_examples,
                           .decode = last && settings.decode,
                           .bound_samples = last ? task->bound_samples() : 0,
                           .stop = stop};
    if (task->size(how.split) == 0) return;
    auto point = evaluate(*task, *model, estimator->target(), how, keys.noise / "evaluate" / std::uint64_t(step));
    point.step = step;
    if (settings.keep_best && own_loss(point, estimator->target()) < best) {
      best = own_loss(point, estimator->target());
      best_values = copy_values(model->parameters());
    }
    result.evaluations.push_back(std::move(point));
  };

  Seconds aside;  // what is not training
  const auto look = [&](bool evaluating) {
    const auto began = Seconds::now();
    measure_now();
    if (evaluating) evaluate_now(false);
    aside = aside + (Seconds::now() - began);
  };
  double loss = 0;
  int since = 0;
  for (; step < settings.steps; ++step) {
    poll(stop);
    look(settings.evaluate_every > 0 && step % settings.evaluate_every == 0);
    const auto batch = batches.at(step);
    KeyedRandomness random(keys.noise / "train" / static_cast<std::uint64_t>(step));
    tape.clear();
    const auto estimate = estimator->draw({tape, *model, batch, random, true});
    differentiate(estimate.surrogate, model->parameters(), gradient);
    result.missed_hints += static_cast<double>(tape.missed_hints());
    learn_from(estimate, *estimator, *own_optimizer, own_gradient);
    double squares = 0;
    for (T g : gradient) squares += static_cast<double>(g) * static_cast<double>(g);
    optimizer->step(model->parameters(), gradient);
    result.tape_bytes = std::max(result.tape_bytes, static_cast<double>(tape.arena().used()));
    result.rows += estimate.rows();
    result.attention_values += estimate.attention_values();
    require_finite(estimate.loss, "the training loss");
    loss += estimate.loss;
    ++since;
    if ((step + 1) % settings.log_every == 0 || step + 1 == settings.steps) {
      const auto spent = Seconds::now() - start - aside;
      result.log.push_back(
          {step + 1, loss / since, spent.wall, std::sqrt(squares), result.rows, result.attention_values, spent.cpu});
      loss = 0;
      since = 0;
    }
  }
  result.seconds = (Seconds::now() - start - aside).wall;
  measure_now();
  evaluate_now(!settings.keep_best);
  if (settings.keep_best && !best_values.empty()) {
    put_values(model->parameters(), best_values);
    result.evaluations.pop_back();
    evaluate_now(true);
  }
  return result;
}

template <class T>
Training<T> prepare(std::shared_ptr<const Task> task, const Spec& model, const Spec& estimator, const TrainSettings& settings,
                    const RunKeys& keys) {
  Training<T> training;
  training.task = std::move(task);
  training.estimator_spec = estimator;
  const bool posterior = wants_posterior(estimator);
  training.model = make_model<T>(model, training.task->dimensions(), keys.init, posterior);
  if (auto reason = unsupported(estimator, training.model->structure()); !reason.empty()) throw Unsupported(reason);
  training.estimator = make_estimator<T>(estimator, training.model->structure(), keys.init / "estimator");
  auto how = settings.optimizer;
  how.total_steps = settings.steps;
  training.optimizer = make_optimizer<T>(how, training.model->parameters().size());
  auto own = how;  // the same schedule
  own.name = "adam";
  own.learning_rate = settings.own_learning_rate;
  own.clip = 0;
  training.own_optimizer = make_optimizer<T>(own, training.estimator->own_parameters().size());
  return training;
}

#define HARDGRAD_INSTANTIATE(T)                                                                \
  template TrainResult train(Training<T>&, const TrainSettings&, const RunKeys&, const Stop&); \
  template Training<T> prepare(std::shared_ptr<const Task>, const Spec&, const Spec&, const TrainSettings&, const RunKeys&);
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)

}  // namespace hardgrad
