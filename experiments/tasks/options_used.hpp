// Metrics of a network's most probable choices: how evenly it uses its options, and how often it finds planted ones.
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

/// Of tasks with the integer field "planted" [B, n], 1 for the options that the "label" [B] depends on: accuracy; planted_hit, the
/// share of the picked options that are planted; options_used.
inline std::vector<Metric> planted_metrics() {
  return {{.name = "accuracy", .unit = "1", .share = true}, {.name = "planted_hit", .unit = "1"}, options_used()};
}
inline void score_planted(const Batch& batch, const Observation& seen, std::vector<Metric>& metrics) {
  for (std::size_t b = 0; b < batch.id.size(); ++b) {
    const auto said = row_of(seen.predictions, b);
    metrics[0].add(!said.empty() && said.front() == batch.ints("label")(b));
    const auto planted = row_of(batch.ints("planted"), b);
    for (int option : row_of(seen.choices, b)) {
      if (option < 0) continue;
      const auto i = static_cast<std::size_t>(option);
      metrics[1].add(i < planted.size() && planted[i] == 1);
    }
    count_options(row_of(seen.choices, b), metrics[2]);
  }
}

}  // namespace hardgrad::tasks
