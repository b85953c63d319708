// Exponential moving averages that an estimator updates from its observations, after it has used the old value.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/estimator/choices.hpp"
#include "core/estimator/estimator.hpp"
#include "core/support/error.hpp"

namespace hardgrad {

/// One average per entry; 0 until the first observation, which replaces it.
class MovingAverage {
 public:
  MovingAverage(std::size_t entries, double decay) : decay_(decay), value_(entries), seen_(entries) {}
  double operator[](std::size_t i) const { return value_[i]; }
  /// Entries that are missing or NaN are skipped.
  void observe(const std::vector<double>& observed) {
    for (std::size_t i = 0; i < observed.size() && i < value_.size(); ++i) {
      if (!(observed[i] == observed[i])) continue;
      value_[i] = seen_[i] ? decay_ * value_[i] + (1 - decay_) * observed[i] : observed[i];
      seen_[i] = 1;
    }
  }
  /// The values, followed by flags of the entries observed so far.
  std::vector<double> state() const {
    auto all = value_;
    all.insert(all.end(), seen_.begin(), seen_.end());
    return all;
  }
  /// The mean of several states, over those that observed the entry; as one process with all their observations, if these are
  /// equally many and the states began alike.
  static std::vector<double> mean(const std::vector<std::vector<double>>& states) {
    auto result = states.at(0);
    const auto entries = result.size() / 2;
    for (std::size_t i = 0; i < entries; ++i) {
      double sum = 0, seen = 0;
      for (const auto& state : states) {
        sum += state[entries + i] * state[i];
        seen += state[entries + i];
      }
      result[i] = seen > 0 ? sum / seen : 0;
      result[entries + i] = seen > 0;
    }
    return result;
  }
  void restore(const std::vector<double>& state) {
    value_.assign(state.begin(), state.begin() + static_cast<std::ptrdiff_t>(value_.size()));
    seen_.assign(state.end() - static_cast<std::ptrdiff_t>(seen_.size()), state.end());
  }

 private:
  double decay_;
  std::vector<double> value_, seen_;
};

/// An estimator whose learned state consists of moving averages.
template <class T>
class AveragingEstimator : public Estimator<T> {
 public:
  /// The average of a signal: one per step, or one per column if the step's columns have separate costs.
  double average(int step, std::size_t column) const {
    require_place(step, column + 1);
    return average_[step * columns_ + column];
  }
  /// Adds a step's means, [1 or D], to `observed`.
  void note(std::vector<double>& observed, int step, const std::vector<double>& means) const {
    require_place(step, means.size());
    observed.resize(std::max(observed.size(), (step + 1) * columns_), std::nan(""));
    std::copy(means.begin(), means.end(), observed.begin() + static_cast<std::ptrdiff_t>(step * columns_));
  }
  /// The average at every choice.
  PerChoice average(const std::shared_ptr<const ChoiceLayout>& layout) const {
    PerChoice result{layout, std::vector<double>(layout->choices())};
    for (std::size_t t = 0; t < layout->steps.size(); ++t) {
      const auto& step = layout->steps[t];
      for (std::size_t n = 0, c = step.choice; n < layout->samples; ++n)
        for (std::size_t d = 0; d < step.columns; ++d, ++c) result.value[c] = average(static_cast<int>(t), d);
    }
    return result;
  }
  /// Adds the means of every step and column, over the samples that had a choice there.
  void note(std::vector<double>& observed, const PerChoice& x) const {
    for (std::size_t t = 0; t < x.of->steps.size(); ++t) {
      const auto& step = x.of->steps[t];
      std::vector<double> sum(step.columns), count(step.columns);
      for (std::size_t n = 0, c = step.choice; n < x.of->samples; ++n)
        for (std::size_t d = 0; d < step.columns; ++d, ++c) {
          if (x.of->options[c] == 1) continue;
          sum[d] += x.value[c];
          ++count[d];
        }
      for (std::size_t d = 0; d < step.columns; ++d) sum[d] /= count[d];  // NaN, which is skipped, if no sample chose
      note(observed, static_cast<int>(t), sum);
    }
  }
  void learn(const Estimate<T>& estimate) final { average_.observe(estimate.observed); }
  std::vector<double> state() const final { return average_.state(); }
  void restore(const std::vector<double>& state) final { average_.restore(state); }

 protected:
  /// `further`: number of additional averages, stored after those of the steps.
  AveragingEstimator(const Structure& structure, double decay, std::size_t further = 0)
      : columns_(std::max(1, structure.most_columns())),
        steps_(structure.steps()),
        average_(steps_ * columns_ + further, decay) {}

  std::size_t columns_, steps_;
  MovingAverage average_;

 private:
  void require_place(int step, std::size_t columns) const {
    if (step < 0 || static_cast<std::size_t>(step) >= steps_ || columns > columns_)
      throw Bug("averages: column " + std::to_string(columns) + " of step " + std::to_string(step) + ", but there are " +
                std::to_string(columns_) + " columns and " + std::to_string(steps_) + " steps: one average for each");
  }
};

}  // namespace hardgrad
