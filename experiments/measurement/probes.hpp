// Directions in R^P along which the bias test looks: all of them together cost one pass over the P numbers.
#pragma once

#include <span>
#include <vector>

#include "core/random/key.hpp"

namespace hardgrad::measurement {

/// K orthonormal directions: number i counts in direction i mod K, with a random sign (a count sketch: Charikar, Chen &
/// Farach-Colton 2002, Finding frequent items in data streams). A fixed deviation b is seen along one of them with mean
/// square |b|^2 / P, as along a direction drawn from the whole sphere.
class Probes {
 public:
  /// At most one direction for each of the `size` numbers.
  Probes(std::size_t size, int count, Key key);
  int count() const { return static_cast<int>(length_.size()); }
  /// [count] d . direction
  std::vector<double> operator()(std::span<const double> d) const;

 private:
  std::size_t stride_ = 0;      // the multiple of `count` that one loop runs over
  std::vector<double> sign_;    // [size]
  std::vector<double> length_;  // [count] of the direction before it was scaled to 1
};

}  // namespace hardgrad::measurement
