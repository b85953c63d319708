// A stretch: an interval of the values of a continuous draw. A point in it is given by the share of its probability below the
// point.
#pragma once

#include <span>
#include <vector>

namespace hardgrad::measurement {

class Stretch {
 public:
  /// A part of (0, 1), under the uniform density.
  static Stretch uniform(double from, double to);
  /// A part of the real line, under the logistic density; the ends may be infinite. Both tails avoid a difference from 1, so
  /// ends at +-700 are as accurate as those at +-1.
  static Stretch logistic(double from, double to);

  double mass() const { return mass_; }
  /// The powers of e by which the probability may fall within the stretch; an integrand may vary near either end.
  double depth() const { return depth_; }
  /// The number that divides the stretch's probability into shares `below` and `above`, whose sum is 1.
  double at(double below, double above) const;

 private:
  bool logistic_ = false, mirrored_ = false;  // mirrored so that it lies below zero, or most of it does
  double mass_ = 0, depth_ = 0;
  double first_ = 0, rest_ = 0, log_last_ = 0;  // probability below the stretch, above it, and below its end
};

/// Stretches between breaks in (0, 1), which may come in any order.
std::vector<Stretch> uniform_stretches(std::span<const double> breaks);
/// Stretches between the edge and other breaks. Near a far edge an integrand varies over lengths of about 1, so the 40 next to
/// it form a separate stretch.
std::vector<Stretch> logistic_stretches(double edge, std::span<const double> breaks);

}  // namespace hardgrad::measurement
