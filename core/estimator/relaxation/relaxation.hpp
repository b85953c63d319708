// Pathwise estimators: every choice is answered with differentiable weights, and the loss is differentiated through them.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "core/autodiff/elementwise.hpp"
#include "core/choice/relaxed.hpp"
#include "core/choice/structure.hpp"
#include "core/estimator/promises.hpp"
#include "core/estimator/score_function/score_function.hpp"

namespace hardgrad {

/// g = 1/K sum_k grad f(weights_k). A derived class defines the weights as a function of the logits.
template <class T>
class RelaxationEstimator : public Estimator<T> {
 public:
  int copies() const final { return samples_; }
  int inner_copies() const final { return inner_; }
  Estimate<T> estimate(const Problem<T>& problem) const final {
    const int samples = problem.one_copy ? 1 : samples_;
    const int inner = problem.inner_copies > 0 ? problem.inner_copies : rao_samples_;
    RelaxedHandler<T> handler(
        samples, problem.random, problem.batch.id, [&](const RelaxationContext<T>& context) { return relax(context); }, inner);
    return path_estimate(problem, samples, handler);
  }

 protected:
  explicit RelaxationEstimator(int samples) : samples_(samples) {}
  /// Averages a term over RelaxationContext::rao_samples draws of the noise given the choice. The gradient is linear in this
  /// average unless later choices depend on earlier ones: their Jacobians are multiplied.
  RelaxationEstimator(int samples, int rao_samples, const Structure& structure)
      : samples_(samples), rao_samples_(rao_samples), inner_(structure.independent() ? rao_samples_ : 1) {}
  virtual Relaxed<T> relax(const RelaxationContext<T>& context) const = 0;

 private:
  int samples_, rao_samples_ = 1, inner_ = 1;
};

/// [R, S] the sum of `samples` relaxed choices, each with new noise given the option. Draws use the indices from 1 on, `most`
/// per sample, so that they do not depend on the batch. `of`: as in RelaxationContext::gumbels_given.
template <class T>
Var<T> sum_of_softmax_given(const RelaxationContext<T>& context, const std::vector<int>& option, double temperature,
                            int samples, std::uint32_t most, std::span<const double> of = {}) {
  Var<T> total;
  for (int m = 0; m < samples; ++m) {
    auto soft = context.softmax(context.gumbels_given(option, 1 + m * most, of), temperature);
    total = total ? add(total, soft) : soft;
  }
  return total;
}

inline void temperature_field(Fields& field, double& temperature) {
  field.temperature(temperature, "temperature", "of the softmax that replaces the choice");
}
inline void rao_samples_field(Fields& field, int& rao_samples) {
  field(rao_samples, "rao_samples", 1, 1e6, "draws of the noise given each choice");
}
struct RelaxationConfig {
  int samples = 1;
  double temperature = 0.5;
  void declare(Fields& field) {
    samples_field(field, samples);
    temperature_field(field, temperature);
  }
};
struct RaoConfig : RelaxationConfig {
  int rao_samples = 10;
  void declare(Fields& field) {
    RelaxationConfig::declare(field);
    rao_samples_field(field, rao_samples);
  }
};

// The midpoint of a choice's probabilities and the drawn option, at which second-order estimators take the derivative.

/// log((p_T + z) / 2) [R, S] for every choice's options, p_T the softmax at a temperature; 0 where there is no choice. Computed
/// in logarithms, so that probabilities that underflow keep a finite log.
template <class T>
std::vector<double> halfway(const RelaxationContext<T>& context, const std::vector<int>& option, double temperature = 1) {
  auto at = context.log_p();
  for (std::size_t r = 0; r < context.size(); ++r) {
    if (context.count[r] == 1) continue;
    double* log_p = &at[r * context.width()];
    if (temperature != 1) {
      double most = -INFINITY, sum = 0;
      for (int i = 0; i < context.count[r]; ++i) most = std::max(most, log_p[i] /= temperature);
      for (int i = 0; i < context.count[r]; ++i) sum += std::exp(log_p[i] - most);
      for (int i = 0; i < context.count[r]; ++i) log_p[i] -= most + std::log(sum);
    }
    for (int i = 0; i < context.count[r]; ++i)
      log_p[i] = i == option[r] ? std::log1p(std::expm1(log_p[i]) / 2) : log_p[i] - std::log(2.0);
  }
  return at;
}

// The mean of estimators through relaxed weights of two options, by integration over the density of the noise.

/// dw / dz of the relaxed weight w = sigmoid(z / temperature).
inline double relaxed_slope(double z, double temperature) {
  const double w = 1 / (1 + std::exp(-z / temperature));
  return w * (1 - w) / temperature;
}

/// [2] mean of the gradient at the logits through w = sigmoid(z / temperature), z = phi + logistic noise. The derivative of f
/// is taken at w, or, if `hard`, at the option that z selects. Empty for other numbers of options.
inline SmallChoice::Vector relaxed_mean(double temperature, const SmallChoice& at, bool hard) {
  if (at.logits.size() != 2) return {};
  constexpr double far = INFINITY;
  const auto through = [&](double z) {
    const double w = 1 / (1 + std::exp(-z / temperature));
    const auto slope = at.slope(hard ? at.one_hot(z > 0) : SmallChoice::Vector{1 - w, w});
    return (slope[1] - slope[0]) * w * (1 - w) / temperature;
  };
  const double phi = at.logits[1] - at.logits[0];
  const double g = over_logistic(phi, -far, 0, temperature, through) + over_logistic(phi, 0, far, temperature, through);
  return {-g, g};
}

// Losses too rough for the derivative at relaxed weights.

/// Why the derivative of the loss at relaxed weights has infinite variance; empty if it is not known to. The weights have a
/// density everywhere between the options, so the square of a slope like |distance|^a is integrable only if a > -1/2.
inline std::string no_variance_of_slopes(const Structure& structure) {
  if (structure.steepest > -0.5) return "";
  return fmt::format(
      "the loss grows so steeply between the options (its slope like the distance to the power of {:.3g}) that the square of "
      "its "
      "derivative at relaxed weights has no integral",
      structure.steepest);
}

}  // namespace hardgrad
