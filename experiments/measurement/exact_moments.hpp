// Exact moments of an estimator: its mean and covariance with no sampling at all.
//
// The estimator runs on a source of noise that replays: a categorical draw visits every outcome in turn (depth first),
// and each complete set of outcomes is weighted by its probability. Examples are independent given the parameters, so
// they are visited one at a time; samples that may be permuted are visited as multisets with multinomial weights.
#pragma once

#include <vector>

#include "core/estimator/estimator.hpp"
#include "experiments/support/stop.hpp"

namespace hardgrad::measurement {

/// Mean and covariance of an estimate of a batch, with what it cost.
struct Moments {
  std::vector<double> mean;        ///< [P]
  std::vector<double> variances;   ///< [P] diagonal of the covariance
  std::vector<double> covariance;  ///< [P, P], if asked for
  double trace = 0;                ///< sum of the variances
  double loss = 0;                 ///< E of the loss that an estimate reports
  double cosine = 0;               ///< E of the cosine to the reference; NaN for more than one example, or copy
  double outcomes = 0;             ///< visited
  bool continuous = false;         ///< some of them are nodes of a quadrature
  int nodes = 0;                   ///< of a Gauss rule, one for each standard draw; 0: none was drawn
  /// What quadratures leave in doubt: distance of the mean, and of the trace, from coarser rules', extrapolated, and rounding.
  /// Infinite where a finer rule comes no nearer: the integral may be.
  double mean_error = 0, trace_error = 0;
  double rows = 0, attention_values = 0, missed_hints = 0;  ///< expected cost of one gradient
};

/// Moments of `estimator` on `batch`. `reference` [B][P] are gradients close to each example's mean (its exact gradient):
/// moments are taken around them, so that they do not cancel. UsageError if more than `outcome_cap` visits are needed,
/// naming how many. Standard draws are integrated over by Gauss rules of up to 32 nodes, or 64 where these are not good to
/// 1e-10, as the cap allows; what is not analytic by pieces, the last draw parted where the estimate jumps. The quadrature of
/// other continuous noise is parted at kinks that are found, and refined until it is good to 1e-10, or the cap is met. Examples
/// are visited one by one, those that the estimator couples together. `stop` is polled between visits.
template <class T>
Moments exact_moments(const Estimator<T>& estimator, const Model<T>& model, const Batch& batch,
                      const std::vector<std::vector<double>>& reference, double outcome_cap, bool covariance = false,
                      const Stop& stop = {});

/// About how many visits that takes of the example that takes most, by a first one of each; of continuous noise with the
/// coarsest quadrature, of a mean of copies by one of them.
template <class T>
double visits_needed(const Estimator<T>& estimator, const Model<T>& model, const Batch& batch);

}  // namespace hardgrad::measurement
