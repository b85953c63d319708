// Where a function has a kink or a jump, found by bisection.
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace hardgrad::measurement {

/// The places in (0, 1) at which f: (0, 1) -> R^P has a kink or a jump. An interval is halved while Gauss' rule of 7 nodes and
/// Kronrod's of 15 differ. Where f is analytic, halving a short interval reduces the difference by much more than a factor of
/// 1000. A singularity at an end is not a kink. Empty if f is rough in more than a few places.
std::vector<double> kinks_of(const std::function<std::span<const double>(double)>& f);

}  // namespace hardgrad::measurement
