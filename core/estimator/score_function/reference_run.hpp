// The score function with a reference run as baseline: a run of the same network without sampling.
#pragma once

#include "core/estimator/score_function/score_function.hpp"

namespace hardgrad {

/// The returns f [B K D] less the returns of the reference run [B D], which has one row per example.
inline void subtract_baseline(std::vector<double>& f, const std::vector<double>& baseline, std::size_t columns) {
  const std::size_t samples = f.size() / baseline.size();
  for (std::size_t i = 0; i < f.size(); ++i) f[i] -= baseline[i / columns / samples * columns + i % columns];
}

/// 1/K sum_k [ (f_k - f(reference)) grad log p(z_k) + grad f_k ]. A handler without noise answers the reference run. The
/// reference does not depend on the samples, so the estimate is unbiased. With reward_to_go, the baseline of each choice is the
/// reference's cost from that choice on.
template <class T>
Estimate<T> score_against(const Problem<T>& problem, int samples, Credit credit, Handler<T>& reference);

}  // namespace hardgrad
