// Advantages of samples, relative to the K samples of their example, or to the whole batch.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

#include "core/estimator/score_function/score_function.hpp"

namespace hardgrad {

/// Values [B K, columns] minus the mean of their group, the K samples of an example; exactly 0 where all are equal.
inline void centre(std::span<double> f, int samples, int columns) {
  leave_one_out(f, samples, columns);
  for (auto& a : f) a *= (samples - 1.0) / samples;
}
/// Centred values, divided by epsilon plus the standard deviation of their group, of K - 1 degrees of freedom.
inline void scale_by_deviation(std::span<double> f, std::size_t samples, std::size_t columns, double epsilon) {
  for (std::size_t group = 0; group < f.size(); group += samples * columns)
    for (std::size_t d = group; d < group + columns; ++d) {
      double squares = 0;
      for (std::size_t k = 0; k < samples; ++k) squares += f[d + k * columns] * f[d + k * columns];
      const double deviation = std::sqrt(squares / (static_cast<double>(samples) - 1));
      for (std::size_t k = 0; k < samples; ++k) f[d + k * columns] /= deviation + epsilon;
    }
}

/// Centred values, divided by the size of their group's mean; 0 where that is 0.
inline void divide_by_mean(std::span<double> f, std::span<const double> before, std::size_t samples, std::size_t columns) {
  for (std::size_t group = 0; group < f.size(); group += samples * columns)
    for (std::size_t d = group; d < group + columns; ++d) {
      double mean = 0;
      for (std::size_t k = 0; k < samples; ++k) mean += before[d + k * columns] / static_cast<double>(samples);
      for (std::size_t k = 0; k < samples; ++k) f[d + k * columns] = mean == 0 ? 0 : f[d + k * columns] / std::abs(mean);
    }
}
/// Values less the mean of their group weighted by n [B K]; exactly 0 where all are equal.
inline void centre_by_length(std::span<double> f, std::size_t samples, std::size_t columns, std::span<const double> n) {
  centre(f, static_cast<int>(samples), static_cast<int>(columns));
  for (std::size_t group = 0; group < n.size(); group += samples)
    for (std::size_t d = 0; d < columns; ++d) {
      double sum = 0, words = 0;
      for (std::size_t r = group; r < group + samples; ++r) {
        sum += n[r] * f[r * columns + d];
        words += n[r];
      }
      for (std::size_t r = group; r < group + samples; ++r) f[r * columns + d] -= sum / words;
    }
}

/// Centred values f become K (p_k - q_k), where p are the group's probabilities, normalised, and q those under which the samples were
/// drawn, times exp(-f / their standard deviation), normalised. log_p, log_q: [B K] logarithms of the probabilities.
inline void to_target(std::span<double> f, std::size_t samples, std::size_t columns, std::span<const double> log_p,
                      std::span<const double> log_q) {
  const auto normalise = [](std::vector<double>& x) {
    const double most = *std::max_element(x.begin(), x.end());
    double sum = 0;
    for (auto& v : x) sum += v = std::exp(v - most);
    for (auto& v : x) v /= sum;
  };
  std::vector<double> p(samples), q(samples);
  for (std::size_t group = 0; group < log_p.size(); group += samples)
    for (std::size_t d = 0; d < columns; ++d) {
      const auto of = [&](std::size_t k) -> double& { return f[(group + k) * columns + d]; };
      double squares = 0;
      for (std::size_t k = 0; k < samples; ++k) squares += of(k) * of(k);
      const double deviation = std::sqrt(squares / static_cast<double>(samples));
      for (std::size_t k = 0; k < samples; ++k) {
        p[k] = log_p[group + k];
        q[k] = log_q[group + k] - (deviation > 0 ? of(k) / deviation : 0);
      }
      normalise(p);
      normalise(q);
      for (std::size_t k = 0; k < samples; ++k) of(k) = static_cast<double>(samples) * (p[k] - q[k]);
    }
}
/// The value below which a share of the numbers lies, interpolated linearly between them.
inline double quantile(std::vector<double> of, double share) {
  std::sort(of.begin(), of.end());
  const double place = share * static_cast<double>(of.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  if (below + 1 >= of.size()) return of.back();
  return of[below] + (place - static_cast<double>(below)) * (of[below + 1] - of[below]);
}

/// [T] of each question's rows: the returns, normalised over the choices of all samples of all examples.
template <class T>
std::vector<std::vector<double>> normalised_over_batch(Sampled<T>& sampled, Credit credit, double epsilon) {
  std::vector<std::vector<double>> all;
  for (int t = 0; t < sampled.steps(); ++t) all.push_back(sampled.returns(t, credit));
  const auto each = [&](auto f) {  // of every choice that is made
    for (std::size_t t = 0; t < all.size(); ++t) {
      const auto& [question, choice] = sampled.episode().steps()[t];
      const std::size_t columns = all[t].size() / sampled.rows();
      for (std::size_t i = 0; i < all[t].size(); ++i)
        if (question.chooses(choice.rows->parent[i / columns])) f(all[t][i]);
    }
  };
  double first = 0, sum = 0, count = 0, squares = 0;
  each([&](double& f) { first = f; });  // equal values become exactly 0
  each([&](double& f) {
    sum += f - first;
    ++count;
  });
  each([&](double& f) { f = f - first - sum / count; });
  each([&](double& f) { squares += f * f; });
  const double deviation = std::sqrt(squares / std::max(count - 1, 1.0));
  each([&](double& f) { f /= deviation + epsilon; });
  return all;
}

}  // namespace hardgrad
