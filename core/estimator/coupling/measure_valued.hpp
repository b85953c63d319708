// Measure-valued derivatives of Normals: the gradient in a parameter is a constant times the difference of the mean loss under
// two distributions, whatever the loss.
//
//   d/dmean E[f]      = 1 / (scale sqrt(2 pi)) (E f(mean + scale w) - E f(mean - scale w)),  w Weibull of shape 2, scale
//   sqrt(2) d/dlog_scale E[f] = E f(mean + scale m) - E f(mean + scale e),                           m double-sided Maxwell, e
//   normal
//
// Mohamed, Rosca, Figurnov & Mnih 2020, Monte Carlo gradient estimation in machine learning, sec. 6 and table 1. Both halves of
// a pair share their noise: the same w, and e = m u with u uniform in (0, 1), which is a normal number (ibid., coupling).
#pragma once

#include "core/estimator/estimator.hpp"

namespace hardgrad {

/// The mean of `samples` estimates. Each has one base path; at every choice four rows a column leave it, in which that column
/// alone is drawn from the halves of the two pairs. Rows that left go on with the base path's noise (common random numbers). 1
/// + 4 sum_t D_t rows. Choices must go on from each other.
template <class T>
Estimate<T> measure_valued_of_normals(const Problem<T>& problem, int samples);

}  // namespace hardgrad
