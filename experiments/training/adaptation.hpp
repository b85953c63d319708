// The learned state of an estimator: averages, baselines, control variates, temperatures.
#pragma once

#include <memory>
#include <vector>

#include "core/estimator/estimator.hpp"
#include "core/nn/optimizer.hpp"
#include "experiments/support/stop.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad::training {

/// True if the estimator learns anything.
template <class T>
bool learns(const Estimator<T>& estimator) {
  return estimator.own_parameters().size() > 0 || !estimator.state().empty();
}

/// Adam for the estimator's parameters, with the schedule of `like`.
template <class T>
std::unique_ptr<Optimizer<T>> own_optimizer(const Estimator<T>& estimator, double learning_rate, OptimizerSettings like = {}) {
  like.rule = UpdateRule::adam;
  like.learning_rate = learning_rate;
  like.clip = like.clip_value = like.gradient_noise = like.weight_decay = 0;
  return make_optimizer<T>(like, estimator.own_parameters().size());
}

/// One learning step from an estimate made with Problem::learning; `gradient` is scratch.
template <class T>
void learn_from(const Estimate<T>& estimate, Estimator<T>& estimator, Optimizer<T>& optimizer, std::vector<T>& gradient);

/// A copy of the estimator with its learned state.
template <class T>
std::unique_ptr<Estimator<T>> copied(const Spec& spec, const Estimator<T>& estimator, const Structure& structure);

struct AdaptSettings {
  int steps = 0;
  int batch = 32;               ///< examples per step, from the training split
  double learning_rate = 1e-3;  ///< of the estimator's parameters (Adam)
};

/// Trains the estimator's learned state with the network fixed, on batches and noise of `key`. It can then be measured fairly
/// on a network that another estimator has trained. Does nothing if the estimator has no learned state.
template <class T>
void adapt(Estimator<T>& estimator, const Model<T>& model, const tasks::Task& task, const AdaptSettings& settings, Key key,
           const Stop& stop = {});

}  // namespace hardgrad::training
