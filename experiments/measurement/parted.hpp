// Quadrature over one standard draw of an estimate that jumps: parted where it does.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/random/gauss_rules.hpp"

namespace hardgrad::measurement {

/// Numbers between which a standard draw lies but for a probability of 1e-17.
struct Reach {
  double from, to;
};
Reach reach_of(Standard noise);

/// Gauss-Legendre in pieces under the distribution's density: the reach in `pieces` equal parts, which end at `breaks` besides,
/// with six nodes each. Weights sum to 1. Where the integrand is analytic but at breaks its error falls with the twelfth power
/// of the number of pieces.
GaussRule pieced_rule(Standard noise, int pieces, std::span<const double> breaks = {});

/// Where f: R -> R^P jumps within the reach: seen on an even grid, then found by bisection. Of two jumps nearer to each other
/// than the grid's step, one may be missed.
std::vector<double> jumps_of(const std::function<std::span<const double>(double)>& f, Standard noise);

/// How many times `jumps_of` calls f where there are a few jumps, about.
inline constexpr double runs_of_jumps = 200;

}  // namespace hardgrad::measurement
