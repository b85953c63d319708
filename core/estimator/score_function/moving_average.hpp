// Exponential moving averages that estimators learn from what they saw, after they used the old value.
#pragma once

#include <vector>

#include "core/estimator/estimator.hpp"

namespace hardgrad {

/// One average per entry; 0 until the first observation, which it then takes over whole.
class MovingAverage {
 public:
  MovingAverage(std::size_t entries, double decay) : decay_(decay), value_(entries), seen_(entries) {}
  double operator[](std::size_t i) const { return value_[i]; }
  /// Observations beyond the last are none; NaN is none.
  void observe(const std::vector<double>& observed) {
    for (std::size_t i = 0; i < observed.size() && i < value_.size(); ++i) {
      if (!(observed[i] == observed[i])) continue;
      value_[i] = seen_[i] ? decay_ * value_[i] + (1 - decay_) * observed[i] : observed[i];
      seen_[i] = 1;
    }
  }
  /// Values, then which have been observed.
  std::vector<double> state() const {
    auto all = value_;
    all.insert(all.end(), seen_.begin(), seen_.end());
    return all;
  }
  void restore(const std::vector<double>& state) {
    value_.assign(state.begin(), state.begin() + static_cast<std::ptrdiff_t>(value_.size()));
    seen_.assign(state.end() - static_cast<std::ptrdiff_t>(seen_.size()), state.end());
  }

 private:
  double decay_;
  std::vector<double> value_, seen_;
};

/// An estimator whose learned state is moving averages of what it observed.
template <class T>
class AveragingEstimator : public Estimator<T> {
 public:
  void learn(const Estimate<T>& estimate) final { average_.observe(estimate.observed); }
  std::vector<double> state() const final { return average_.state(); }
  void restore(const std::vector<double>& state) final { average_.restore(state); }

 protected:
  AveragingEstimator(std::size_t entries, double decay) : average_(entries, decay) {}
  MovingAverage average_;
};

}  // namespace hardgrad
