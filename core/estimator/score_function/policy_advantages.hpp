// Advantages of sampled sequences: their returns f, in losses, less a baseline. Equations and sources: the head of
// estimators/policy_gradient.cpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "core/estimator/score_function/group.hpp"
#include "core/estimator/score_function/score_function.hpp"

namespace hardgrad {

/// True if the advantage of a sample depends on the others of its example.
inline bool compares_samples(std::string_view advantage) {
  return advantage != "none" && advantage != "greedy" && advantage != "batch_std" && advantage != "critic";
}

/// Turns the returns [B K, columns] of a question into advantages, from those of an example's K samples alone. n [B K]: the
/// samples' choices.
inline void compare_samples(std::string_view advantage, std::vector<double>& f, int K, int columns,
                            const std::vector<double>& n, double epsilon) {
  if (advantage == "leave_one_out") leave_one_out(f, K, columns);
  if (advantage == "group_mean" || advantage == "group_std") centre(f, K, columns);
  if (advantage == "group_std") scale_by_deviation(f, K, columns, epsilon);
  if (advantage == "length_weighted") centre_by_length(f, K, columns, n);
  if (advantage == "relative") {
    const auto before = f;
    centre(f, K, columns);
    divide_by_mean(f, before, K, columns);
  }
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
