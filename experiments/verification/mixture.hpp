// A number that depends on all observable values of a run, for gradient checks of whole models.
#pragma once

#include <cmath>
#include <span>
#include <vector>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/choice/episode.hpp"

namespace hardgrad::verification {

/// A sum with different weights of every cost, log probability (under the prior and, if present, the posterior) or entropy
/// (for choices without a probability), and state.
inline Var<double> mixture(Episode<double>& episode, bool with_log_probabilities = true) {
  auto& tape = episode.tape();
  auto total = tape.constant(1, 1);
  int n = 0;
  const auto include = [&](Var<double> x) {
    std::vector<double> weight(x.value().size());
    for (auto& w : weight) w = 1 + std::sin(++n * 1.7);
    total = add(total, weighted_sum(x, std::span<const double>(weight)));
  };
  for (const auto& cost : episode.costs()) include(cost.loss);
  for (std::size_t t = 0; with_log_probabilities && t < episode.steps().size(); ++t) {
    const auto& [question, choice] = episode.steps()[t];
    if (choice.has_probability() && choice.hard()) {
      include(episode.log_probability(static_cast<int>(t)));
      if (episode.terms().drawn_from == DrawnFrom::posterior)
        include(episode.log_probability(static_cast<int>(t), DrawnFrom::prior));
    } else {
      include(question.distribution->entropy());
    }
    if (question.site.state) include(question.site.state);
  }
  return total;
}

}  // namespace hardgrad::verification
