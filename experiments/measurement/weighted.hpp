// The weighted mean and covariance of vectors that arrive one by one, or in groups.
#pragma once

#include <cstddef>
#include <vector>

namespace hardgrad::measurement {

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

}  // namespace hardgrad::measurement
