// Exact checks of estimators, without sampling.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "core/estimator/estimator.hpp"
#include "experiments/measurement/exact_moments.hpp"
#include "experiments/measurement/reference_gradient.hpp"
#include "experiments/verification/estimates.hpp"

namespace hardgrad::testing {

using verification::gradient_of;
using verification::largest_difference;
using verification::perturb_state;

/// The largest deviation of the estimator's exact mean from its target's exact gradient, divided by the gradient's largest
/// entry or 1, if that is larger. Up to 1e-10 is rounding of doubles.
inline double bias_of(const Estimator<double>& estimator, const Model<double>& model, const Batch& batch,
                      double outcome_cap = 1e6) {
  const auto truth = measurement::exact_reference(estimator.target(), model, batch, 1e6);
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
  const auto truth = measurement::exact_reference(estimator.target(), model, batch, 1e6);
  return measurement::exact_moments(estimator, model, batch, truth.of_example, 1e6).trace;
}

/// Central finite differences of the target's value, one per parameter.
inline std::vector<double> finite_differences(const Target& target, Model<double>& model, const Batch& batch,
                                              double step = 1e-5) {
  std::vector<double> result;
  for (auto& p : model.parameters())
    for (auto& value : p.value) {
      const double at = value;
      value = at + step;
      const double above = measurement::exact_reference(target, model, batch, 1e6).value;
      value = at - step;
      const double below = measurement::exact_reference(target, model, batch, 1e6).value;
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
  return make_model<double>(Spec::parse(spec), {{"bits", 1}, {"gaussians", 1}, {"not_gate", 1}, {"subsets", 1}}, Key(3),
                            posterior);
}

inline std::unique_ptr<Estimator<double>> estimator_of(const std::string& spec, const Model<double>& model) {
  return make_estimator<double>(Spec::parse(spec), model.structure_with_policies(), Key(11));
}

/// Two bits with a number for each of their four outcomes; prior and posterior have separate logits.
struct TabledBits {
  std::unique_ptr<Model<double>> model = model_of("bits[bits=2,function=table,logit=0.3;-0.8]", true);
  std::array<double, 2> prior{0.3, -0.8}, posterior;
  std::array<double, 4> f;  ///< [2 first bit + second bit]

  explicit TabledBits(std::array<double, 2> q) : posterior(q) {
    std::copy(q.begin(), q.end(), model->parameters().find("posterior.logits")->value.begin());
    for (int z = 0; z < 4; ++z) {  // f is read from the model, with nearly certain bits
      const auto spec =
          std::string("bits[bits=2,function=table,logit=") + (z / 2 ? "200;" : "-200;") + (z % 2 ? "200]" : "-200]");
      f[z] = measurement::exact_reference({}, *model_of(spec), one_example(), 1e6).value;
    }
  }
};

/// The same quantities of the estimator of a spec.
inline double bias_of(const std::string& spec, const Model<double>& model, const Batch& batch = one_example(),
                      double outcome_cap = 1e6) {
  return bias_of(*estimator_of(spec, model), model, batch, outcome_cap);
}
inline std::vector<double> mean_of(const std::string& spec, const Model<double>& model, const Batch& batch = one_example()) {
  return mean_of(*estimator_of(spec, model), model, batch);
}
inline double variance_of(const std::string& spec, const Model<double>& model, const Batch& batch = one_example()) {
  return variance_of(*estimator_of(spec, model), model, batch);
}
/// Its exact moments around the target's gradient.
inline measurement::Moments moments_of(const std::string& spec, const Model<double>& model,
                                       const Batch& batch = one_example()) {
  const auto estimator = estimator_of(spec, model);
  const auto truth = measurement::exact_reference(estimator->target(), model, batch, 1e6);
  return measurement::exact_moments(*estimator, model, batch, truth.of_example, 1e6);
}
/// One estimate.
struct Drawn {
  Drawn(const std::string& spec, const Model<double>& model, const Batch& batch = one_example(), Key key = Key(1))
      : random(key), estimator(estimator_of(spec, model)), estimate(estimator->draw({tape, model, batch, random})) {}
  Tape<double> tape;
  KeyedRandomness random;
  std::unique_ptr<Estimator<double>> estimator;
  Estimate<double> estimate;
};

}  // namespace hardgrad::testing
