// Single estimates, and estimators with a changed learned state: shared by `hardgrad test` and the tests.
#pragma once

#include <cmath>
#include <vector>

#include "core/autodiff/tape.hpp"
#include "core/estimator/estimator.hpp"
#include "experiments/measurement/lengths.hpp"

namespace hardgrad::verification {

/// One estimate with the given noise: its gradient in `parameters` [P], followed by the reported loss.
template <class T>
std::vector<double> estimate_of(const Estimator<T>& estimator, const Model<T>& model, const Batch& batch, Randomness& random,
                                const ParameterSet<T>& parameters) {
  Tape<T> tape;
  std::vector<double> values(parameters.size());
  const auto estimate = estimator.draw({tape, model, batch, random});
  differentiate(estimate.surrogate, parameters, values);
  values.push_back(estimate.loss);
  return values;
}
/// The same in the model's parameters.
template <class T>
std::vector<double> estimate_of(const Estimator<T>& estimator, const Model<T>& model, const Batch& batch, Key key) {
  KeyedRandomness random(key);
  return estimate_of(estimator, model, batch, random, model.parameters());
}

/// Only the gradient.
template <class T>
std::vector<double> gradient_of(const Estimator<T>& estimator, const Model<T>& model, const Batch& batch, Randomness& random,
                                const ParameterSet<T>& parameters) {
  auto found = estimate_of(estimator, model, batch, random, parameters);
  found.pop_back();
  return found;
}
template <class T>
std::vector<double> gradient_of(const Estimator<T>& estimator, const Model<T>& model, const Batch& batch, Randomness& random) {
  return gradient_of(estimator, model, batch, random, model.parameters());
}
template <class T>
std::vector<double> gradient_of(const Estimator<T>& estimator, const Model<T>& model, const Batch& batch, Key key) {
  KeyedRandomness random(key);
  return gradient_of(estimator, model, batch, random);
}

/// The largest absolute value of a - b; both have the same size.
inline double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

/// Moves the learned state and own parameters away from their start, so that their influence shows.
template <class T>
void perturb_state(Estimator<T>& estimator) {
  auto state = estimator.state();
  for (std::size_t i = 0; i < state.size(); ++i) state[i] = 2.3 + 0.1 * static_cast<double>(i);
  if (!state.empty()) estimator.restore(state);
  int i = 0;
  for (auto& parameter : estimator.own_parameters())
    for (auto& value : parameter.value) value += static_cast<T>(0.5 * std::sin(++i));
}

}  // namespace hardgrad::verification
