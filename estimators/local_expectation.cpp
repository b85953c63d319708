// local_expectation: every choice in turn is enumerated, all others kept as sampled.
//
//   g = 1/K sum_k sum_t sum_i q(i | z_{-t}) (f(i, z_{-t}) - b) grad log p(i | z_{<t}) + path,
//   q(i | z_{-t}) proportional to p(i | z_{<t}) prod_{u > t} p(z_u | z_{<t}, i, z_{t+1..u-1})
//
// Titsias & Lazaro-Gredilla 2015, Local expectation gradients for black box variational inference; where choices depend on
// each other q is the exact conditional of z_t given all others, later ones included.
// Target: expected loss. Bias: none: each term is E[(f - b) grad log p(z_t | z_{<t}) | z_{-t}].
// Cost: K (1 + sum_t (S_t - 1)) rows at the last choice, one run. With independent choices q = p and only the step's own
// cost can matter, so that this is `exact`: S rows a step, nothing sampled.
// The path term is sum_i q(i | z_{-t}) grad f(i, z_{-t}), averaged over the steps that choose. Departures: b is an addition
// (0: as published); several samples K are averaged.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/choice/branching.hpp"
#include "core/estimator/enumeration/objectives.hpp"
#include "core/estimator/paths.hpp"
#include "core/estimator/score_function/score_function.hpp"

namespace hardgrad {
namespace {

template <class T>
class LocalExpectation final : public Estimator<T> {
 public:
  LocalExpectation(const Settings& settings, const Structure& structure, Key)
      : samples_(settings.integer("samples")), baseline_(settings.real("baseline")), dependent_(!structure.factorised()) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    if (!dependent_) return exact_objective(this->target(), problem, std::numeric_limits<double>::infinity());

    BranchingChooser<T> chooser(samples_, problem.random, problem.batch.id);
    auto episode = problem.run(chooser);
    const auto paths = paths_to_leaves(*episode);
    const auto f = path_cost_values(*episode, paths, true);
    const auto log_p = path_log_probability_values(*episode, paths);
    const auto& branches = chooser.branches();
    const std::size_t samples = chooser.choosing().size();
    const double share = 1.0 / static_cast<double>(samples);

    std::vector<std::vector<std::size_t>> leaves(samples);
    for (std::size_t n = 0; n < branches.size(); ++n) leaves[branches[n].sample].push_back(n);
    std::vector<std::vector<double>> score;  // [steps][rows of the step]
    for (const auto& step : episode->steps()) score.emplace_back(step.choice.rows->size());
    std::vector<double> path(branches.size());
    double loss = 0;
    for (std::size_t n = 0; n < branches.size(); ++n)
      if (branches[n].is_sample()) {
        loss += share * f[n];
        if (chooser.choosing()[branches[n].sample].empty()) path[n] = share;  // no choice anywhere: the one path there is
      }
    for (std::size_t sample = 0; sample < samples; ++sample)
      for (int t : chooser.choosing()[sample]) {
        std::vector<std::size_t> group;
        double most = -std::numeric_limits<double>::infinity(), total = 0;
        for (std::size_t n : leaves[sample])
          if (branches[n].is_sample() || (branches[n].left == t && branches[n].possible)) {
            group.push_back(n);
            most = std::max(most, log_p[n]);
          }
        for (std::size_t n : group) total += std::exp(log_p[n] - most);
        for (std::size_t n : group) {
          const double q = std::exp(log_p[n] - most) / total;  // given all choices but t
          score[t][paths.row[t][n]] += share * q * (f[n] - baseline_);
          path[n] += share * q / static_cast<double>(chooser.choosing()[sample].size());
        }
      }
    auto surrogate = weighted_sum(path_cost(*episode, paths, true), std::span<const double>(path));
    for (std::size_t t = 0; t < score.size(); ++t)
      surrogate =
          add(surrogate, weighted_sum(episode->log_probability(static_cast<int>(t)), std::span<const double>(score[t])));
    return {.surrogate = surrogate, .episode = std::move(episode), .loss = loss};
  }

 private:
  int samples_;
  double baseline_;
  bool dependent_;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "local_expectation",
    .summary = "enumerates every choice in turn and keeps the others as sampled",
    .paper = "Titsias & Lazaro-Gredilla 2015, Local expectation gradients for black box variational inference",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "S per step; K (1 + T (S - 1)) if sequential",
    .parameters = {samples_parameter(), baseline_parameter()},
    .needs = {need::enumerable, need::one_column},
};
HARDGRAD_ESTIMATOR(LocalExpectation, entry)

}  // namespace hardgrad
