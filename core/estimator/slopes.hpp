// Objectives of complete sets of choices, in double: normalised weights, and the slopes of an objective.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace hardgrad {

/// Derivatives of an objective in log p, log q and the loss, for each of a list of complete sets of choices. They determine the
/// surrogate: its gradient is sum_i log_p[i] grad log p_i + log_q[i] grad log q_i + loss[i] grad f_i.
struct Slopes {
  std::vector<double> log_p, log_q, loss;
  explicit Slopes(std::size_t size) : log_p(size), log_q(size), loss(size) {}
  /// Adds the slope in the log joint, log p(z) - f(z).
  void add_log_joint(std::size_t i, double slope) {
    log_p[i] += slope;
    loss[i] -= slope;
  }
};

/// log sum_i exp(x_i)
inline double log_sum_exp(std::span<const double> x) {
  const double most = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (double v : x) sum += std::exp(v - most);
  return most + std::log(sum);
}

/// log of the mean of exp(x_i)
inline double log_mean_exp(std::span<const double> x) { return log_sum_exp(x) - std::log(x.size()); }

/// exp(x_i) / sum_j exp(x_j)
inline std::vector<double> self_normalised(std::span<const double> x) {
  const double whole = log_sum_exp(x);
  std::vector<double> result;
  for (double v : x) result.push_back(std::exp(v - whole));
  return result;
}

/// All entries except the k-th.
inline std::vector<double> all_but(std::span<const double> x, int k) {
  std::vector<double> result(x.begin(), x.end());
  result.erase(result.begin() + k);
  return result;
}

}  // namespace hardgrad
