// Exact checks of estimators, without sampling.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "core/estimator/estimator.hpp"
#include "experiments/measurement/exact_moments.hpp"
#include "experiments/measurement/truth.hpp"
#include "experiments/verification/estimates.hpp"

namespace hardgrad::testing {

using verification::gradient_of;
using verification::largest_difference;
using verification::stir;

/// The largest deviation of the estimator's exact mean from its target's exact gradient, divided by the gradient's largest
/// entry or 1, if that is larger. Up to 1e-10 is rounding of doubles.
inline double bias_of(const Estimator<double>& estimator, const Model<double>& model, const Batch& batch,
                      double outcome_cap = 1e6) {
  const auto truth = measurement::exact_truth(estimator.target(), model, batch, 1e6);
  const auto moments = measurement::exact_moments(estimator, model, batch, truth.of_example, outcome_cap);
  return largest_difference(moments.mean, truth.gradient) / std::max(1.0, measurement::largest(truth.gradient));
}

/// The exact mean.
inline std::vector<double> mean_of(const Estimator<double>& estimator, const Model<double>& model, const Batch& batch) {
  const std::vector<std::vector<double>> zero(batch.examples(), std::vector<double>(model.parameters().size()));
  return measurement::exact_moments(estimator, model, batch, zero, 1e6).mean;
}

/// Trace of the exact covariance.
inline double variance_of(const Estimator<double>& estimator, const Model<double>& model, const Batch& batch) {
  const auto truth = measurement::exact_truth(estimator.target(), model, batch, 1e6);
  return measurement::exact_moments(estimator, model, batch, truth.of_example, 1e6).trace;
}

/// Central finite differences of the target's value, one per parameter.
inline std::vector<double> finite_differences(const Target& target, Model<double>& model, const Batch& batch,
                                              double step = 1e-5) {
  std::vector<double> result;
  for (auto& p : model.parameters())
    for (auto& value : p.value.data) {
      const double at = value;
      value = at + step;
      const double above = measurement::exact_truth(target, model, batch, 1e6).value;
      value = at - step;
      const double below = measurement::exact_truth(target, model, batch, 1e6).value;
      value = at;
      result.push_back((above - below) / (2 * step));
    }
  return result;
}

inline Batch one_example() {
  Batch batch;
  batch.id = {0};
  return batch;
}

inline std::unique_ptr<Model<double>> model_of(const std::string& spec, bool posterior = false) {
  return make_model<double>(Spec::parse(spec), {{"bits", 1}, {"gaussians", 1}, {"not_gate", 1}}, Key(3), posterior);
}

inline std::unique_ptr<Estimator<double>> estimator_of(const std::string& spec, const Model<double>& model) {
  return make_estimator<double>(Spec::parse(spec), model.structure(), Key(11));
}

}  // namespace hardgrad::testing
