// Kinks and jumps of an estimate in its continuous noise, so that quadratures can be split there.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "core/random/randomness.hpp"

namespace hardgrad::measurement {

// Where a function has a kink or a jump, found by bisection.

/// The places in (0, 1) at which f: (0, 1) -> R^P has a kink or a jump. An interval is halved while Gauss' rule of 7 nodes and
/// Kronrod's of 15 differ. Where f is analytic, halving a short interval reduces the difference by much more than a factor of
/// 1000. A singularity at an end is not a kink. Empty if f is rough in more than a few places.
std::vector<double> kinks_of(const std::function<std::span<const double>(double)>& f);

/// The numbers at which each draw has a kink or a jump.
class Kinks {
 public:
  void add(const Draw& where, double number);
  std::span<const double> of(const Draw& where) const;
  bool empty() const { return numbers_.empty(); }

 private:
  std::map<std::array<std::uint32_t, 5>, std::vector<double>> numbers_;
};

/// An estimate's gradient [P] on a source of noise.
using Estimating = std::function<std::span<const double>(Randomness&)>;

/// Kinks along one draw at a time, with all other draws fixed: once in each stretch between the known edges, for each discrete
/// outcome. A kink whose place depends on other draws is found at only one of its places. Such a result does not help, and the
/// quadrature's error shows it. Ends early after `most` estimates.
Kinks find_kinks(const Estimating& estimate, double most);

}  // namespace hardgrad::measurement
