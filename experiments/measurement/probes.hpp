// Directions in R^P for the bias test. All of them together cost one pass over the P numbers.
#pragma once

#include <cstddef>
#include <cstdint>
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
  /// Number of partial sums, a multiple of `count`; 0 without directions.
  std::size_t lanes() const { return lanes_; }
  /// Adds entries [first, first + d.size()) of a vector to its partial sums [lanes]; `first` is a multiple of `lanes`.
  void add(std::size_t first, std::span<const double> d, std::span<double> sums) const;
  /// [count] vector . direction, from its partial sums
  std::vector<double> along(std::span<const double> sums) const;

 private:
  std::size_t lanes_ = 0;
  std::vector<std::int8_t> sign_;  // [size]
  std::vector<double> length_;     // [count] length of each direction before normalisation
};

}  // namespace hardgrad::measurement
