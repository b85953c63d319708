// Bias, variance and cost of an estimator at fixed parameters and batch.
#pragma once

#include <string>

#include "core/estimator/estimator.hpp"
#include "core/support/named.hpp"
#include "experiments/measurement/quantities.hpp"
#include "experiments/measurement/reference_gradient.hpp"

namespace hardgrad::measurement {

/// How moments are found: by visiting every outcome or by sampling.
enum class Method {
  /// Exact where the visits cost no more rows than the replicates would (with rare options: than most_replicates), else sampled.
  cheapest,
  exact,  ///< NotExact if there are more outcomes than the cap
  sampled,
};
inline constexpr Named<Method> methods[] = {
    {"cheapest", Method::cheapest}, {"exact", Method::exact}, {"sampled", Method::sampled}};

/// The true gradient that an estimate is compared with.
enum class Estimand {
  any,  ///< enumerated; a long run if that is impossible, or if a quadrature's error exceeds 1%
  enumerated,
  none,
};
inline constexpr Named<Estimand> estimands[] = {
    {"any", Estimand::any}, {"enumerated", Estimand::enumerated}, {"none", Estimand::none}};

struct MeasureSettings {
  int replicates = 256;  ///< M
  /// If the replicates do not support the intervals, their number is doubled repeatedly, up to this limit, until two counts in
  /// succession support them.
  int most_replicates = 0;
  Method method = Method::cheapest;
  bool covariance = false;  ///< of an exact measurement: also compute the whole covariance matrix
  bool at_logits = false;   ///< moments of the gradient at the choices' logits, not at the parameters
  Estimand estimand = Estimand::any;
  int directions = 8;        ///< random directions of the bias test, besides the gradient's own
  double level = 0.95;       ///< of the confidence intervals
  double outcome_cap = 2e6;  ///< most outcomes that an exact measurement visits
  double leaf_cap = 1e6;     ///< most leaves of the tree behind the exact gradient
  Stop stop = {};            ///< polled between replicates, visits and examples
};

/// Measures one estimator. The noise of replicates is keyed by `noise`. Replicates run in TBB; the results do not depend on
/// the number of threads. Throws Interrupted if settings.stop asks for it. Of exact moments no number is sampled, and `outcomes`
/// is set. Does not change the estimator's learned state. Throws NotFinite if a gradient, a loss or a moment is not finite.
/// `references` may be shared by measurements of the same model and batch with the same settings and noise.
template <class T>
Measurement measure(const Spec& spec, const Estimator<T>& estimator, const Model<T>& model, const Batch& batch,
                    const MeasureSettings& settings, Key noise, ReferenceGradients<T>* references = nullptr);

/// A measurement that was not made: unsupported (skipped), or not finite (failed).
Measurement skipped(const Spec& spec, const std::string& reason);
Measurement failed(const Spec& spec, const std::string& reason);

}  // namespace hardgrad::measurement
