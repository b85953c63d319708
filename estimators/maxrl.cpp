// maxrl: the score function with rewards divided by their mean over the samples, which maximises the likelihood.
//
//   g = 1/K sum_k (1 - r_k / mean r) grad log p(z_k) + 1/K sum_k r_k / mean r grad f_k,      r_k = exp(-f_k)
//
// Tajwar et al. 2026, Maximum likelihood reinforcement learning (MaxRL). In the paper r
// is 0 or 1 (wrong or right); here it is the likelihood exp(-f), and the logarithm of its
// mean is the objective. r / (K mean r) are the samples' self-normalised weights.
// For rewards 0 and 1 with mean p, E g is exactly -(1 - (1 - p)^(K-1)) grad log p: the gradient of the first K - 1 terms of
// log p = -sum_j (1 - p)^j / j. One term is REINFORCE's objective; all terms are the likelihood.
// Target: marginal likelihood. Bias: of order 1 / K; none as K grows. Cost: K rows.
// Departures: rewards between 0 and 1, and the path term, which rewards do not have. Ratios of exp(-f) are used even if it
// underflows to 0 for all samples.
#include "core/autodiff/elementwise.hpp"
#include "core/estimator/promises.hpp"
#include "core/estimator/score_function/score_function.hpp"
#include "core/estimator/slopes.hpp"

namespace hardgrad::estimators::maxrl {
namespace {

using Config = SamplesConfig<4, 2>;

template <class T>
class MaxRl final : public Estimator<T> {
 public:
  MaxRl(const Config& config, const Structure&, Key) : config_(config) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    Sampled<T> sampled(problem, config_.samples, Costs::weighted);
    auto log_r = sampled.losses();
    for (auto& f : log_r) f = -f;
    std::vector<double> share, signal;  // r / (K mean r), and the factor of the score
    double loss = 0;
    const double examples = problem.batch.examples();
    for (std::size_t b = 0; b < log_r.size(); b += config_.samples) {
      const auto of_example = std::span<const double>(log_r).subspan(b, config_.samples);
      loss -= log_mean_exp(of_example) / examples;
      for (const double v : self_normalised(of_example)) {
        signal.push_back(1 - config_.samples * v);
        share.push_back(v / examples);
      }
    }
    auto surrogate = add(sampled.score(std::vector(sampled.steps(), signal)), sampled.path(share));
    return {.surrogate = surrogate, .episode = sampled.release(), .loss = loss};
  }

 private:
  Config config_;
};

// E 1/K sum_k (1 - r_k / mean r) (one_hot(z_k) - p)
SmallChoice::Vector expected(const Config& config, const SmallChoice& at) {
  const int K = config.samples;
  return mean_over_tuples(at, K, [&](const std::vector<std::size_t>& z) {
    double mean = 0;
    for (const auto k : z) mean += std::exp(-at.loss(at.one_hot(k))) / K;
    SmallChoice::Vector g(0.0, at.logits.size());
    for (const auto k : z) g += (1 - std::exp(-at.loss(at.one_hot(k))) / mean) / K * (at.one_hot(k) - at.p());
    return g;
  });
}

}  // namespace

const EstimatorEntry entry = {
    .name = "maxrl",
    .summary = "score function with likelihoods over their mean as rewards",
    .paper = "Tajwar et al. 2026, Maximum likelihood reinforcement learning",
    .target = "marginal_likelihood",
    .unbiased = false,
    .evaluations = "K",
    .parameters = declared<Config>(),
    .needs = {need::log_density},
    .promises = {promise::mean(expected, "samples=2"), promise::mean(expected, "samples=3"), promise::consistent("samples"),
                 promise::unshifted(), promise::noiseless(Promise::Loss::constant)},
};
HARDGRAD_ESTIMATOR(MaxRl, entry)

}  // namespace hardgrad::estimators::maxrl
