// Importance samples: complete sets of choices drawn from the learned posterior, weighted by p(z) exp(-f(z)) / q(z).
//
// Rows are (example b, sample k) in the order b K + k. If choices are independent, the rows (b, k) of all steps form sample k.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/estimator/score_function/score_function.hpp"
#include "core/estimator/slopes.hpp"

namespace hardgrad {

template <class T>
class ImportanceSamples {
 public:
  /// Runs the problem's model with `samples` draws per example from the posterior.
  ImportanceSamples(const Problem<T>& problem, int samples);
  /// The same with another handler whose rows are (b, k).
  ImportanceSamples(const Problem<T>& problem, int samples, Handler<T>& handler)
      : ImportanceSamples(Sampled<T>(problem, samples, handler, Costs::weighted)) {}

  int samples() const { return samples_; }
  int examples() const { return static_cast<int>(log_weight_.size()) / samples_; }
  /// [K] log w of an example's samples.
  std::span<const double> log_weights(int example) const { return of(log_weight_, example); }
  /// [K] log (p / q), the part of log w other than the loss.
  std::span<const double> log_ratios(int example) const { return of(log_ratio_, example); }

  /// The choices of the samples; valid as long as the episode.
  Choices<T> choices() { return sampled_.choices(); }

  /// The estimate for the mean over the examples of an objective of each example's samples. `objective(example, slopes)` sets
  /// the slopes of its K samples and returns its value. Moves the episode into the result.
  Estimate<T> estimate(const std::function<double(int, Slopes&)>& objective);

 private:
  explicit ImportanceSamples(Sampled<T> sampled);
  Var<T> surrogate(const std::vector<Slopes>& slopes);
  std::span<const double> of(const std::vector<double>& all, int example) const {
    return std::span<const double>(all).subspan(static_cast<std::size_t>(example) * samples_, samples_);
  }
  int samples_;
  Sampled<T> sampled_;
  std::vector<double> log_weight_, log_ratio_;  // [B K]
};

/// `target_of` for estimators of the bound with as many samples as they draw.
std::string samples_of_bound(const SamplesConfig<>& config);

extern template class ImportanceSamples<float>;
extern template class ImportanceSamples<double>;

}  // namespace hardgrad
