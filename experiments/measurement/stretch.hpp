// A stretch of the numbers that a continuous draw may give. Places in it are told by the share of its probability below them.
#pragma once

#include <span>
#include <vector>

namespace hardgrad::measurement {

class Stretch {
 public:
  /// Of (0, 1), under the uniform density.
  static Stretch uniform(double from, double to);
  /// Of the real line, under the logistic density; the ends may be infinite. Both tails are had without a difference from 1:
  /// ends at +-700 are as good as those at +-1.
  static Stretch logistic(double from, double to);

  double mass() const { return mass_; }
  /// How many powers of e its probability may fall within it: an integrand may vary at either end.
  double depth() const { return depth_; }
  /// The number that parts the stretch's probability into these shares; they sum to 1.
  double at(double below, double above) const;

 private:
  bool logistic_ = false, mirrored_ = false;  // so that it lies below zero, or most of it
  double mass_ = 0, depth_ = 0;
  double first_ = 0, rest_ = 0, log_last_ = 0;  // probability below it, above it, and below its end
};

/// Between breaks in (0, 1), in any order.
std::vector<Stretch> uniform_stretches(std::span<const double> breaks);
/// Between the edge and other breaks. What varies at a far edge does so over lengths of one: 40 next to it are one of their
/// own.
std::vector<Stretch> logistic_stretches(double edge, std::span<const double> breaks);

}  // namespace hardgrad::measurement
