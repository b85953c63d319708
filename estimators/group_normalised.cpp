// group_normalised: the score function with losses that are centred, and scaled, within the group of an example's samples.
//
//   g = 1/K sum_k A_k grad log p(z_k) + 1/K sum_k grad f_k
//   A_k = (f_k - mean f) / (std f + epsilon)          scale=std:  GRPO
//   A_k =  f_k - mean f                               scale=none: Dr. GRPO
//
// Shao et al. 2024, DeepSeekMath, sec. 4.1 (group relative policy optimisation, outcome supervision); Liu et al. 2025,
// Understanding R1-Zero-like training (Dr. GRPO, without the division). Their rewards are -f. This is the first step after
// sampling: the ratio of probabilities is 1, so nothing is clipped.
// Target: expected loss. Bias: with scale=none the score term has the mean (K - 1) / K of the gradient, since the baseline
// includes the sample itself. With scale=std each example's term is also divided by the spread of its losses, a bias that stays
// as K grows. Cost: K rows.
// Departures: std has K - 1 degrees of freedom, and epsilon is added to it, as in published code (the papers state neither).
// The path term, which rewards do not have, is not scaled: the network behind the choices is trained on f itself. With
// reward_to_go, the credited costs are centred and scaled, among the samples at that step.
#include "core/estimator/score_function/score_function.hpp"

#include <cmath>

#include "core/autodiff/elementwise.hpp"
#include "core/estimator/promises.hpp"
#include "core/estimator/score_function/group.hpp"

namespace hardgrad::estimators::group_normalised {
namespace {

enum class Scale { std, none };
constexpr Named<Scale> scales[] = {{"std", Scale::std}, {"none", Scale::none}};

struct Config {
  int samples = 4;
  Scale scale = Scale::std;
  double epsilon = 1e-4;
  Credit credit = Credit::whole;

  void declare(Fields& field) {
    samples_field(field, samples, 2);
    field(scale, "scale", scales, "divisor of a group's centred losses");
    field(epsilon, "epsilon", 0, 1e6, "added to the group's std").above();
    credit_field(field, credit);
  }
};

template <class T>
class GroupNormalised final : public Estimator<T> {
 public:
  GroupNormalised(const Config& config, const Structure&, Key) : config_(config) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    return score_estimate(Sampled<T>(problem, config_.samples), config_.credit, [this](std::vector<double>& f, int columns) {
      centre(f, config_.samples, columns);
      if (config_.scale == Scale::std) scale_by_deviation(f, config_.samples, columns, config_.epsilon);
    });
  }

 private:
  Config config_;
};

// E 1/K sum_k A_k (one_hot(z_k) - p); std^2 is half the mean square difference of two samples
SmallChoice::Vector expected(const Config& config, const SmallChoice& at) {
  const int K = config.samples;
  return mean_over_tuples(at, K, [&](const std::vector<std::size_t>& z) {
    double mean = 0, differences = 0;
    for (const auto k : z) mean += at.loss(at.one_hot(k)) / K;
    for (const auto k : z)
      for (const auto l : z) differences += std::pow(at.loss(at.one_hot(k)) - at.loss(at.one_hot(l)), 2);
    const double scale = config.scale == Scale::std ? std::sqrt(differences / (2 * K * (K - 1.0))) + config.epsilon : 1;
    SmallChoice::Vector g(0.0, at.logits.size());
    for (const auto k : z) g += (at.loss(at.one_hot(k)) - mean) / scale / K * (at.one_hot(k) - at.p());
    return g;
  });
}

}  // namespace

const EstimatorEntry entry = {
    .name = "group_normalised",
    .summary = "score function with losses centred and scaled within the group of samples",
    .paper = "Shao et al. 2024, DeepSeekMath (GRPO), sec. 4.1; Liu et al. 2025, Understanding R1-Zero-like training (Dr. GRPO)",
    .target = "expected_loss",
    .unbiased = false,
    .evaluations = "K",
    .parameters = declared<Config>(),
    .needs = {need::log_density},
    .promises = {promise::mean(expected, "samples=2"), promise::mean(expected, "samples=3,epsilon=0.2"),
                 promise::mean(expected, "samples=3,scale=none"), promise::consistent("samples", "scale=none"),
                 promise::unshifted(), promise::noiseless(Promise::Loss::constant)},
};
HARDGRAD_ESTIMATOR(GroupNormalised, entry)

}  // namespace hardgrad::estimators::group_normalised
