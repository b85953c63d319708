// Directions in R^P for the bias test. All of them together cost one pass over the P numbers.
#pragma once

#include <span>
#include <vector>

#include "core/random/key.hpp"

namespace hardgrad::measurement {

/// K orthonormal directions: entry i belongs to direction i mod K, with a random sign (a count sketch: Charikar, Chen &
/// Farach-Colton 2002, Finding frequent items in data streams). A fixed deviation b has mean square |b|^2 / P along one of
/// them, as along a direction drawn uniformly from the sphere.
class Probes {
 public:
  /// At most one direction per entry; `size` is the number of entries.
  Probes(std::size_t size, int count, Key key);
  int count() const { return static_cast<int>(length_.size()); }
  /// [count] d . direction
  std::vector<double> operator()(std::span<const double> d) const;

 private:
  std::size_t stride_ = 0;      // a multiple of `count`: the entries of one inner loop
  std::vector<double> sign_;    // [size]
  std::vector<double> length_;  // [count] length of each direction before normalisation
};

}  // namespace hardgrad::measurement
