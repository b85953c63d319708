// local_expectation: enumerates every choice in turn, with all others as sampled.
//
//   g = 1/K sum_k sum_t sum_i q(i | z_{-t}) (f(i, z_{-t}) - b) grad log p(i | z_{<t}) + path,
//   q(i | z_{-t}) proportional to p(i | z_{<t}) prod_{u > t} p(z_u | z_{<t}, i, z_{t+1..u-1})
//
// Titsias & Lazaro-Gredilla 2015, Local expectation gradients for black box variational inference; where choices depend on
// each other, q is the exact conditional of z_t given all others, later ones included.
// Target: expected loss. Bias: none: each term is E[(f - b) grad log p(z_t | z_{<t}) | z_{-t}].
// Cost: K (1 + sum (S - 1)) rows at the last question, the sum over all columns of all questions; one run. If choices have
// separate costs, q = p and this is `exact`: S rows a step, nothing sampled. The path term is sum_i q(i | z_{-t}) grad
// f(i, z_{-t}), averaged over the T steps with a choice. T may depend on the choices, but must not change with z_t. So 1 / T is
// replaced by 1 / (largest T of these i), and grad f(z) has the remaining weight up to 1. Departures: b is an addition
// (0: as published); K samples are averaged.
// Subsets are refused. Swapping one pick of k, given the others, would be unbiased and take 1 + k (n - k) rows. But the mean of
// grad log p(S) over that pick alone is not 0, as it is for a category: costs that the pick does not change would add variance,
// and no baseline that knows the other picks would be allowed.
#include <algorithm>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/choice/branching.hpp"
#include "core/estimator/enumeration/objectives.hpp"
#include "core/estimator/paths.hpp"
#include "core/estimator/promises.hpp"
#include "core/estimator/score_function/score_function.hpp"
#include "core/estimator/slopes.hpp"

namespace hardgrad::estimators::local_expectation {
namespace {

struct Config {
  int samples = 1;
  double baseline = 0;

  void declare(Fields& field) {
    samples_field(field, samples);
    baseline_field(field, baseline);
  }
};

template <class T>
class LocalExpectation final : public Estimator<T> {
 public:
  LocalExpectation(const Config& config, const Structure& structure, Key)
      : config_(config), dependent_(!structure.factorised()) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    if (!dependent_) return exact_objective(this->target(), problem, problem.cap);

    BranchingHandler<T> handler(config_.samples, problem.random, problem.batch.id, problem.cap);
    auto episode = problem.run(handler);
    const bool one_run = handler.runs().size() == 1;
    auto surrogate = problem.tape.constant(1, 1);
    double loss = 0;
    for (const auto& run : handler.runs()) surrogate = add(surrogate, expectations(*episode, run, one_run, loss));
    if (!one_run)  // costs of the root are not part of a run
      for (const auto& cost : episode->costs())
        if (cost.rows->is_root()) {
          const auto mean = sum(cost.loss, 1.0 / problem.batch.examples());
          surrogate = add(surrogate, mean);
          loss += static_cast<double>(mean.item());
        }
    return {.surrogate = surrogate, .episode = std::move(episode), .loss = loss};
  }

 private:
  /// The terms of all choices of one run; adds the samples' mean loss to `loss`.
  Var<T> expectations(Episode<T>& episode, const typename BranchingHandler<T>::Run& run, bool with_root, double& loss) const {
    const auto paths = paths_to(episode, run.last);
    const auto f = path_cost_values(episode, paths, with_root);
    const auto log_p = path_log_probability_values(episode, paths);
    const auto& branches = run.branches;
    const std::size_t samples = run.choosing.size();
    const double share = 1.0 / static_cast<double>(samples);

    std::vector<std::vector<std::size_t>> leaves(samples);
    for (std::size_t n = 0; n < branches.size(); ++n) leaves[branches[n].sample].push_back(n);
    std::vector<std::vector<double>> score;  // [steps][rows of the step, D]
    for (int t = paths.from; t <= run.last; ++t) score.emplace_back(episode.steps()[t].choice.option().size());
    std::vector<double> path(branches.size());
    for (std::size_t n = 0; n < branches.size(); ++n)
      if (branches[n].is_sample()) {
        loss += share * f[n];
      }
    std::vector<double> left(samples, 1.0);  // remaining weights of the samples' path terms
    for (std::size_t sample = 0; sample < samples; ++sample)
      for (int choice : run.choosing[sample]) {
        std::vector<std::size_t> group;
        std::vector<double> log_joint;
        for (std::size_t n : leaves[sample])
          if (branches[n].is_sample() || (branches[n].left == choice && branches[n].possible)) {
            group.push_back(n);
            log_joint.push_back(log_p[n]);
          }
        const auto q = self_normalised(log_joint);  // of the choice, given all others
        int most = 0;
        for (const auto n : group) most = std::max(most, branches[n].choosing);
        const double weight = 1.0 / most;
        left[sample] -= weight;
        const auto [step, column] = run.choices[choice];
        const int t = step - paths.from, D = episode.steps()[step].question.site.columns;
        for (std::size_t i = 0; i < group.size(); ++i) {
          const auto n = group[i];
          score[t][paths.row[t][n] * D + column] += share * q[i] * (f[n] - config_.baseline);
          path[n] += share * q[i] * weight;
        }
      }
    for (std::size_t n = 0; n < branches.size(); ++n)
      if (branches[n].is_sample()) path[n] += share * left[branches[n].sample];
    auto surrogate = weighted_sum(path_cost(episode, paths, with_root), std::span<const double>(path));
    for (std::size_t t = 0; t < score.size(); ++t)
      surrogate = add(surrogate, weighted_sum(episode.log_probability_by_column(paths.from + static_cast<int>(t)),
                                              std::span<const double>(score[t])));
    return surrogate;
  }

  Config config_;
  bool dependent_;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "local_expectation",
    .summary = "enumerates every choice in turn, with the others as sampled",
    .paper = "Titsias & Lazaro-Gredilla 2015, Local expectation gradients for black box variational inference",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "S; K (1 + T (S - 1)) if shared",
    .parameters = declared<Config>(),
    .needs = {need::categorical},
    .promises = {promise::variance(0.4579397977)},
};
HARDGRAD_ESTIMATOR(LocalExpectation, entry)

}  // namespace hardgrad::estimators::local_expectation
