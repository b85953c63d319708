// Moments of an estimate of one example, or of several coupled ones, by visiting all outcomes under given rules.
#pragma once

#include <cmath>
#include <cstddef>
#include <functional>
#include <numeric>
#include <vector>

#include "core/autodiff/tape.hpp"
#include "core/estimator/estimator.hpp"
#include "experiments/measurement/exact_moments.hpp"
#include "experiments/measurement/kinks.hpp"
#include "experiments/measurement/noise_enumerator.hpp"
#include "experiments/support/stop.hpp"

namespace hardgrad::measurement {

// The weighted mean and covariance of vectors that arrive one by one, or in groups.

/// Running weighted mean and covariance: West 1979, Updating mean and variance estimates; groups are joined as in Chan, Golub and
/// LeVeque 1979, Updating formulae and a pairwise algorithm for computing sample variances. All terms of a variance are positive,
/// and equal numbers give exactly 0.
struct Weighted {
  std::vector<double> mean, variances;  ///< [P]
  std::vector<double> covariance = {};  ///< [P, P] if requested
  double seen = 0;                      ///< sum of the weights, 1 at the end
  std::vector<double> so_far = mean;    ///< running mean; inexact if rare numbers came first, a difference of large numbers

  void add(double weight, const std::vector<double>& x) {
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += weight * x[i];
    move(weight, x);
  }
  /// Adds the numbers that `other` has seen.
  void join(const Weighted& other) {
    for (std::size_t i = 0; i < mean.size(); ++i) {
      mean[i] += other.mean[i];
      variances[i] += other.variances[i];
    }
    for (std::size_t i = 0; i < covariance.size(); ++i) covariance[i] += other.covariance[i];
    move(other.seen, other.so_far);
  }

 private:
  /// Moves the running mean by numbers of this weight around x, and adds the spread between it and x.
  void move(double weight, const std::vector<double>& x) {
    const double before = seen;
    seen += weight;
    if (seen <= 0) return;
    const double share = weight / seen, term = share * before;
    const std::size_t size = mean.size();
    for (std::size_t i = 0; i < (covariance.empty() ? 0 : size); ++i)
      for (std::size_t j = 0; j < size; ++j) covariance[i * size + j] += term * (x[i] - so_far[i]) * (x[j] - so_far[j]);
    for (std::size_t i = 0; i < size; ++i) {
      const double step = x[i] - so_far[i];
      variances[i] += term * step * step;
      so_far[i] += share * step;
    }
  }
};

inline double trace(const std::vector<double>& variances) { return std::accumulate(variances.begin(), variances.end(), 0.0); }

/// Number of complete sets of choices of all examples together.
template <class T>
double outcomes_of(const Model<T>& model, const Batch& batch, int nodes) {
  const auto each = model.outcomes(batch, nodes);
  return std::accumulate(each.begin(), each.end(), 1.0, std::multiplies<>());
}

/// Pieces of the last draw, before splitting at jumps, given the pieces of the earlier draws.
inline int inner_pieces(int pieces) { return std::max(8, 2 * pieces); }

/// The part of an estimate that is visited: one of its copies, with so many inner copies (0: as the estimator has).
struct SubEstimate {
  bool one = false;
  int inner = 0;
};

/// The settings of the visits of an example.
struct VisitSettings {
  int nodes, level;
  SubEstimate part;
  bool exchangeable;  ///< samples are visited as multisets
  const Kinks& kinks;
  int pieces = 0;         ///< pieces for each standard draw; 0: one Gauss rule
  std::size_t draws = 0;  ///< standard draws in a run
};

/// A record of the draws in the runs of an example.
struct Draws {
  std::size_t standard = 0;  ///< number in each run
  bool jumps = false;        ///< an estimate jumps with the last of them
  bool alike = true;         ///< every run has only standard draws, and equally many
  void see(const NoiseEnumerator& enumerator) {
    const bool first = standard == 0;
    alike = alike && enumerator.only_standard() && (first || enumerator.standard_draws() == standard);
    standard = enumerator.standard_draws();
  }
  /// Adds later runs.
  void join(const Draws& later) {
    alike = alike && later.alike && (standard == 0 || later.standard == standard);
    standard = later.standard;
    jumps = jumps || later.jumps;
  }
};

/// An estimate; its gradient is written to d.
template <class T>
Estimate<T> drawn(const Estimator<T>& estimator, const Model<T>& model, const Batch& example, SubEstimate part,
                  Randomness& random, Tape<T>& tape, std::vector<double>& d) {
  tape.rewind();
  auto estimate = estimator.draw(
      {.tape = tape, .model = model, .batch = example, .random = random, .one_copy = part.one, .inner_copies = part.inner});
  differentiate(estimate.surrogate, model.parameters(), d);
  return estimate;
}

/// Moments of one example, around `reference`. NotExact if they take more than `outcome_cap` visits. Many visits are divided over
/// the threads; the result does not depend on their number.
template <class T>
Moments visited(const Estimator<T>& estimator, const Model<T>& model, const Batch& example,
                const std::vector<double>& reference, const VisitSettings& settings, double outcome_cap, bool covariance,
                const Stop& stop, Draws* draws = nullptr);

// Checks whether an estimate stays the same when its samples are permuted.

/// True if the estimator's gradient on `example` stays the same, up to rounding, when samples are permuted: the first two
/// swapped, and all shifted by one. Checked for a few draws.
template <class T>
bool samples_may_be_permuted(const Estimator<T>& estimator, const Model<T>& model, const Batch& example, SubEstimate part);

}  // namespace hardgrad::measurement
