// The score function against a reference: a run of the same network whose choices nobody sampled.
#pragma once

#include "core/estimator/score_function/score_function.hpp"

namespace hardgrad {

/// 1/K sum_k [ (f_k - f(reference)) grad log p(z_k) + grad f_k ], the reference answered by a chooser without noise. The
/// reference depends on no sample, so the estimate is unbiased; with reward_to_go each choice is held against the
/// reference's costs from that choice on.
template <class T>
Estimate<T> score_against(const Problem<T>& problem, int samples, Credit credit, Chooser<T>& reference);

}  // namespace hardgrad
