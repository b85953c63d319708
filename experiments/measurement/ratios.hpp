// Importance ratios of samples that a behaviour policy draws: how unequal they are.
#pragma once

#include "core/choice/episode.hpp"

namespace hardgrad::measurement {

/// Ratios R = p(z) / q(z) of whole samples z, for the trained policy p and the behaviour policy q that drew them.
class Ratios {
 public:
  /// All samples of a run, if it draws from a behaviour policy. `weight`: of the replicate or outcome.
  template <class T>
  void add(const Episode<T>& episode, double weight);
  void join(const Ratios& other);
  /// (E R)^2 / E R^2 under q: the effective sample size over the number of samples. NaN without samples.
  double effective_share() const;
  /// The largest R; NaN without samples.
  double largest() const;

 private:
  double weights_ = 0, sum_ = 0, squares_ = 0, largest_ = 0;
};

}  // namespace hardgrad::measurement
