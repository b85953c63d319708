// kmax_marginal: the marginal likelihood restricted to the k most probable options.
//
//   g = -grad sum_t log sum_{i in top k of p_t} p_t(i) exp(-f_t(i))       (independent choices)
//   g = -grad log sum_{z in beam of k} p(z) exp(-f(z))                    (choices that depend on each other)
//
// Shankar, Garg & Sarawagi 2018, Surprisingly easy hard-attention for sequence to sequence learning (beam-joint attention).
// Target: marginal likelihood. Bias: from the omitted options; none if k covers all of them. Probabilities are not renormalised
// over the kept options, so the objective is an upper bound of the target's. Variance: none. Cost: k rows a step.
// Departure: the paper feeds the recurrence with deterministic attention. Here, where choices feed the recurrence, a beam
// search of width k keeps whole paths.
#include <algorithm>
#include <cmath>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/estimator/promises.hpp"
#include "core/estimator/without_replacement/subset.hpp"

namespace hardgrad::estimators::kmax_marginal {
namespace {

struct Config {
  int k = 5;

  void declare(Fields& field) { field(k, "k", 1, 1e6, "number of most probable options (or paths) to keep"); }
};

template <class T>
class KmaxMarginal final : public Estimator<T> {
 public:
  KmaxMarginal(const Config& config, const Structure& structure, Key) : config_(config), per_step_(structure.steps_apart()) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    auto subset = Subset<T>::most_probable(problem, config_.k, per_step_);
    auto& episode = subset.episode();
    auto objective = subset.whole() ? problem.tape.constant(1, 1) : subset.root_cost();
    for (const auto& [beams, paths] : subset.groups()) {
      auto log_joint = subtract(path_log_probability(episode, paths), path_cost(episode, paths, subset.whole()));
      auto log_likelihood = segment_logsumexp(log_joint, std::span<const int>(paths.example), episode.examples());
      objective = add(objective, sum(log_likelihood, -1.0 / episode.examples()));
    }
    return {.surrogate = objective, .episode = subset.release(), .loss = static_cast<double>(objective.item())};
  }

 private:
  Config config_;
  bool per_step_;
};

// p summed over the kept options, minus p exp(-f) normalised over them: the gradient of -log sum_kept p exp(-f)
SmallChoice::Vector expected(const Config& config, const SmallChoice& at) {
  const auto p = at.p();
  const int k = std::min(config.k, static_cast<int>(p.size()));
  SmallChoice::Vector joint(0.0, p.size());
  for (std::size_t i = 0; i < p.size(); ++i)
    if (std::count_if(std::begin(p), std::end(p), [&](double other) { return other > p[i]; }) < k)
      joint[i] = p[i] * std::exp(-at.loss(at.one_hot(i)));
  return p - joint / joint.sum();
}

}  // namespace

const EstimatorEntry entry = {
    .name = "kmax_marginal",
    .summary = "marginal likelihood truncated to the most probable options",
    .paper = "Shankar, Garg & Sarawagi 2018, Surprisingly easy hard-attention for sequence to sequence learning",
    .target = "marginal_likelihood",
    .unbiased = false,
    .evaluations = "k",
    .parameters = declared<Config>(),
    .needs = {need::enumerable},
    .promises = {promise::mean(expected), promise::mean(expected, "k=2"), promise::unbiased("k=9"), promise::unshifted()},
};
HARDGRAD_ESTIMATOR(KmaxMarginal, entry)

}  // namespace hardgrad::estimators::kmax_marginal
