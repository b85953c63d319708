// optimal_baseline: the score function with the constant baseline of least variance, estimated from the other samples.
//
//   g = 1/K sum_k sum_t (f_k - b_kt) s_kt + grad f_k,   b_kt = sum_{j != k} f_j |s_jt|^2 / sum_{j != k} |s_jt|^2
//
// b* = E[f |s|^2] / E[|s|^2] minimises the trace of the variance: Greensmith, Bartlett & Baxter 2004, Variance reduction
// techniques for gradient estimates in reinforcement learning, th. 8; Weaver & Tao 2001:
// one baseline for all parameters. Peters & Schaal 2008: one for each component. Here
// each question t has one, shared by its columns unless these have separate costs.
// Target: expected loss. Bias: none, because b_k does not depend on sample k. Cost: K rows.
// Departure: |s_t|^2 is taken at the parameters of the site, not of the network: |onehot(z_t) - p_t|^2 at the logits of
// categories, (e / scale)^2 + (e^2 - 1)^2 at the mean and log scale of Normals, e = (z - mean) / scale.
#include "core/autodiff/elementwise.hpp"
#include "core/estimator/promises.hpp"
#include "core/estimator/score_function/score_function.hpp"

#include <cmath>

namespace hardgrad::estimators::optimal_baseline {
namespace {

using Config = SamplesAndCredit<4, 2>;

template <class T>
class OptimalBaseline final : public Estimator<T> {
 public:
  OptimalBaseline(const Config& config, const Structure&, Key) : config_(config) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    Sampled<T> sampled(problem, config_.samples);
    std::vector<std::vector<double>> signal;
    for (int t = 0; t < sampled.steps(); ++t) {
      const auto f = sampled.returns(t, config_.credit);
      const int D = sampled.columns(t, config_.credit);
      const auto& [question, choice] = sampled.episode().steps()[t];
      auto weight = question.distribution->squared_scores(choice);  // of each column
      if (D == 1) weight = sums_of(weight, question.site.columns);
      auto& centred = signal.emplace_back(f);
      for (std::size_t i = 0; i < f.size(); ++i) {
        const std::size_t example = i / (D * config_.samples) * (D * config_.samples);
        double above = 0, below = 0;  // subtract before summing: equal losses give exactly 0
        for (std::size_t j = example + i % D; j < example + D * config_.samples; j += D)
          if (j != i) {
            above += weight[j] * (f[i] - f[j]);
            below += weight[j];
          }
        if (below > 0) centred[i] = above / below;
      }
    }
    auto surrogate = add(sampled.score(signal), sampled.path());
    return {.surrogate = surrogate, .episode = sampled.release(), .loss = sampled.mean_loss()};
  }

 private:
  static std::vector<double> sums_of(const std::vector<double>& x, std::size_t count) {
    std::vector<double> sums(x.size() / count);
    for (std::size_t i = 0; i < x.size(); ++i) sums[i / count] += x[i];
    return sums;
  }

  Config config_;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "optimal_baseline",
    .summary = "score function with the constant baseline of least variance, estimated from the other samples",
    .paper = "Greensmith et al. 2004, Variance reduction techniques for gradient estimates, th. 8",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "K",
    .parameters = declared<Config>(),
    .needs = {need::log_density},
    .promises = {promise::best_constant("reinforce", "baseline"), promise::unshifted(),
                 promise::noiseless(Promise::Loss::constant)},
};
HARDGRAD_ESTIMATOR(OptimalBaseline, entry)

}  // namespace hardgrad::estimators::optimal_baseline
