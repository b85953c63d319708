// How evenly a network uses its options: a metric of its most probable choices.
#pragma once

#include <cmath>
#include <limits>
#include <span>

#include "experiments/tasks/task.hpp"

namespace hardgrad::tasks {

/// The exponential of the entropy of all choices' options (codes: their perplexity), in nats: 1 if they are always the same.
inline Metric options_used() {
  Metric used{.name = "options_used", .unit = "1"};
  used.formula = [](const std::vector<double>& counts) {
    double total = 0, entropy = 0;
    for (double n : counts) total += n;
    for (double n : counts) entropy -= n > 0 ? n / total * std::log(n / total) : 0;
    return total > 0 ? std::exp(entropy) : std::numeric_limits<double>::quiet_NaN();
  };
  return used;
}

/// Counts the options of an example's choices; -1 is none.
inline void count_options(std::span<const int> chosen, Metric& used) {
  for (int option : chosen) {
    if (option < 0) continue;
    const auto i = static_cast<std::size_t>(option);
    if (used.sums.size() <= i) used.sums.resize(i + 1);
    ++used.sums[i];
  }
}

}  // namespace hardgrad::tasks
