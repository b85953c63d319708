#pragma once

#include <string>
#include <vector>

#include "core/estimator/estimator.hpp"
#include "experiments/measurement/estimate_cost.hpp"
#include "experiments/measurement/paths.hpp"
#include "experiments/support/stop.hpp"

namespace hardgrad::measurement {

// Exact moments of an estimator: its mean and covariance without sampling.
//
// The estimator runs on a source of noise that replays. A categorical draw visits every outcome in turn (depth first), and each
// complete set of outcomes is weighted by its probability. Examples are independent given the parameters, so they are visited
// one at a time. Exchangeable samples are visited as multisets with multinomial weights.

/// Mean and covariance of an estimate of a batch, and its cost.
struct Moments {
  std::vector<double> mean;        ///< [P]
  std::vector<double> variances;   ///< [P] diagonal of the covariance
  std::vector<double> covariance;  ///< [P, P], if requested
  double trace = 0;                ///< sum of the variances
  double loss = 0;                 ///< expected value of the loss that an estimate reports
  double cosine = 0;               ///< expected cosine to the reference; NaN for more than one example or copy
  double outcomes = 0;             ///< number visited
  bool continuous = false;         ///< some outcomes are nodes of a quadrature
  int nodes = 0;                   ///< nodes of the Gauss rule for each standard draw; 0: no standard draw
  /// Errors of quadratures, for the mean and the trace: extrapolated from the distances to coarser rules, plus rounding.
  /// Infinite if a finer rule comes no nearer: then the integral may be infinite.
  double mean_error = 0, trace_error = 0;
  EstimateCost cost = {};  ///< expected, of one gradient
  Ratios ratios = {};      ///< of the samples, if a behaviour policy draws them
};

/// Moments of `estimator` on `batch`. `reference` [B][P]: gradients close to each example's mean (its exact gradient); moments
/// are taken around them to avoid cancellation. UsageError with the number of visits if more than `outcome_cap` are needed.
/// Standard draws are integrated by Gauss rules of up to 32 nodes, or 64 if the error exceeds 1e-10 and the cap allows it. If
/// the estimate is not analytic, it is integrated by pieces, and the last draw is split where the estimate jumps. Quadratures
/// of other continuous noise are split at the kinks that are found, and refined until their error is below 1e-10 or the cap is
/// met. Examples are visited one by one; examples that the estimator couples are visited together. Examples, and parts of the
/// outcomes of one, are divided over the threads; the numbers do not depend on how many there are. `stop` is polled between visits.
template <class T>
Moments exact_moments(const Estimator<T>& estimator, const Model<T>& model, const Batch& batch,
                      const std::vector<std::vector<double>>& reference, double outcome_cap, bool covariance = false,
                      const Stop& stop = {});

/// Approximate number of visits for the example that needs most, from a first visit of each. Continuous noise counts with the
/// coarsest quadrature, a mean of copies with one copy.
template <class T>
double visits_needed(const Estimator<T>& estimator, const Model<T>& model, const Batch& batch);

// The number of samples an exact measurement can afford.

/// The largest number of samples, below the spec's, for which exact moments need no more visits than the cap, written as in a
/// spec: "samples=7". Empty if the estimator takes no number of samples, or if fewer samples would not help. An estimate, from
/// one first visit (visits_needed).
template <class T>
std::string affordable(const Spec& spec, const Model<T>& model, const Batch& batch, double outcome_cap);

}  // namespace hardgrad::measurement
