// best_of: E_p(z_1..z_K)[min_k f(z_k)], the loss of the best of K independent samples: pass@K of rewards 0 and 1, which is 1 less
// the probability that all K are wrong (Chen et al. 2021, Evaluating large language models trained on code).
//
// With the outcomes in ascending order of f, and S_i = sum_(j >= i) p_j the probability of none before i:
//   E = sum_i f_i (S_i^K - S_(i+1)^K) = sum_i (f_i - f_(i-1)) S_i^K,      f_0 = 0
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/estimator/enumeration/objectives.hpp"
#include "core/estimator/enumeration/outcome_objectives.hpp"

namespace hardgrad::targets::best_of {
namespace {

struct Config {
  int samples = 1;
  void declare(Fields& field) { field(samples, "samples", 1, 1e6, "number of samples K"); }
};

OutcomeObjective loss_of_best(std::span<const Outcome> outcomes, int samples) {
  const std::size_t n = outcomes.size();
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto i, auto j) { return outcomes[i].loss < outcomes[j].loss; });
  std::vector<double> none_before(n + 1);  // S, by rank
  for (std::size_t rank = n; rank-- > 0;) none_before[rank] = none_before[rank + 1] + std::exp(outcomes[order[rank]].log_p);
  OutcomeObjective result{0, Slopes(n)};
  // dE / dp_i = K sum_(j <= i) (f_j - f_(j-1)) S_j^(K-1). From the smallest loss on: a constant less for all has no effect.
  double slope = 0;
  for (std::size_t rank = 0; rank < n; ++rank) {
    const auto& outcome = outcomes[order[rank]];
    const double first = std::pow(none_before[rank], samples) - std::pow(none_before[rank + 1], samples);
    result.value += outcome.loss * first;
    if (rank > 0) slope += samples * (outcome.loss - outcomes[order[rank - 1]].loss) * std::pow(none_before[rank], samples - 1);
    result.slopes.log_p[order[rank]] = std::exp(outcome.log_p) * slope;
    result.slopes.loss[order[rank]] = first;
  }
  return result;
}

template <class T>
Estimate<T> objective(const Target& target, const Problem<T>& problem) {
  const int samples = read<Config>(target.settings()).samples;
  return enumerated_outcomes<T>(problem, false, [&](const auto& outcomes) { return loss_of_best(outcomes, samples); });
}
template <class T>
std::vector<double> terms(const Target&, const Model<T>& model, const Batch& batch) {
  return model.outcomes(batch);
}

}  // namespace

const TargetEntry entry = {
    .name = "best_of",
    .summary = "E_p[min_k f(z_k)]: the loss of the best of K samples; pass@K of rewards 0 and 1",
    .parameters = declared<Config>(),
    .counted = "outcomes",
    .reference_estimator = [](const Target& target) -> std::string {
      const int best = read<Config>(target.settings()).samples;
      return "best_of[best=" + std::to_string(best) + ",samples=" + std::to_string(std::max(16, 2 * best)) + "]";
    },
};
HARDGRAD_TARGET(best_of, objective, terms, entry)

}  // namespace hardgrad::targets::best_of
