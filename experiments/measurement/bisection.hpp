// Where a function has a kink or a jump, found by bisection.
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace hardgrad::measurement {

/// Places in (0, 1) at which f: (0, 1) -> R^P has a kink or a jump. Intervals are halved where Gauss' rule of 7 nodes and
/// Kronrod's of 15 are apart; where f is analytic that falls by far more than a thousand once they are short. A singular end is
/// no kink. None if f is rough in more than a few places.
std::vector<double> kinks_of(const std::function<std::span<const double>(double)>& f);

}  // namespace hardgrad::measurement
