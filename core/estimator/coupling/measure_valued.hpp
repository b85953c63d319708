// Measure-valued derivatives of Normals: for any loss, the derivative in a parameter is a constant times a difference of two
// mean losses, each under another distribution.
//
//   d/dmean E[f]      = 1 / (scale sqrt(2 pi)) (E f(mean + scale w) - E f(mean - scale w)),  w Weibull of shape 2, scale
//   sqrt(2) d/dlog_scale E[f] = E f(mean + scale m) - E f(mean + scale e),                           m double-sided Maxwell, e
//   normal
//
// Mohamed, Rosca, Figurnov & Mnih 2020, Monte Carlo gradient estimation in machine learning, sec. 6 and table 1. Both halves of
// a pair share their noise: the same w; and e = m u with u uniform on (0, 1), which makes e a normal number (ibid., coupling).
#pragma once

#include "core/estimator/estimator.hpp"

namespace hardgrad {

/// The mean of `samples` estimates, each with one base path. At every choice, four rows per column leave the base path. In such
/// a row this one column is drawn from a half of the two pairs. Branches continue with the base path's noise (common random
/// numbers). 1 + 4 sum_t D_t rows. Each choice must continue the previous one.
template <class T>
Estimate<T> measure_valued_of_normals(const Problem<T>& problem, int samples);

}  // namespace hardgrad
