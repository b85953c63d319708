// james_stein: leave-one-out with baselines shrunk towards the mean loss of the batch's other examples.
//
//   g = 1/(B K) sum_b sum_k [ (f_bk - a_bk) grad log p(z_bk) + grad f_bk ]
//   a_bk = (1 - lambda_b) mean_{j != k} f_bj + lambda_b m_b,   lambda_b = v_b / (v_b + s_b)
// where, over the other examples c != b of a batch of B, with F_c the mean of f_c1 .. f_cK:
//   m_b = mean_c F_c,   v_b = mean_c var(f_c) / K  (var with K - 1),   s_b = mean_c (F_c - m_b)^2
//
// Zeng, Zhou, Arora & Zanette 2025, Shrinking the variance: shrinkage baselines for reinforcement learning with verifiable
// rewards, as in their program (the estimator of means: James & Stein 1961). v_b is the noise variance of a group's mean. s_b
// is the variance between groups, noise included: if it is mostly noise, all examples share a baseline.
// Target: expected loss. Bias: none, because m_b and lambda_b do not depend on example b. Cost: K rows. It couples examples; a
// single example has leave-one-out.
// Departures: where v_b + s_b is 0 (all losses equal), lambda_b is 0; they add 1e-6 to the divisor.
#include <cmath>
#include <numeric>

#include "core/autodiff/elementwise.hpp"
#include "core/estimator/promises.hpp"
#include "core/estimator/score_function/score_function.hpp"

namespace hardgrad::estimators::james_stein {
namespace {

using Config = SamplesAndCredit<4, 2>;

/// The mean towards which an example's baselines are shrunk, and the weight.
struct Shrinkage {
  double towards, lambda;
};

/// For one example, from the others' F and var(f) / K, [B] each.
Shrinkage from_others(const std::vector<double>& mean, const std::vector<double>& noise, std::size_t example) {
  double m = 0, v = 0, s = 0, count = 0;
  for (std::size_t c = 0; c < mean.size(); ++c) {  // subtract before summing: equal losses have a spread of exactly 0
    if (c == example) continue;
    const double before = mean[c] - m;
    m += before / ++count;
    s += (before * (mean[c] - m) - s) / count;
    v += (noise[c] - v) / count;
  }
  return {m, v + s > 0 ? v / (v + s) : 0};
}

template <class T>
class JamesStein final : public Estimator<T> {
 public:
  JamesStein(const Config& config, const Structure&, Key) : config_(config) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    return score_estimate(Sampled<T>(problem, config_.samples), config_.credit,
                          [this](std::vector<double>& f, int columns) { shrink(f, columns); });
  }

 private:
  /// Turns losses f [B K, columns] into f - a.
  void shrink(std::vector<double>& f, std::size_t columns) const {
    const std::size_t K = config_.samples, examples = f.size() / (K * columns);
    auto own = f;  // f minus the mean of the example's other samples
    leave_one_out(own, config_.samples, static_cast<int>(columns));
    for (std::size_t d = 0; d < columns; ++d) {
      const auto at = [&](std::size_t b, std::size_t k) { return (b * K + k) * columns + d; };
      std::vector<double> mean(examples), noise(examples);
      for (std::size_t b = 0; b < examples; ++b) {
        double squares = 0;
        for (std::size_t k = 0; k < K; ++k) {
          const double before = f[at(b, k)] - mean[b];
          mean[b] += before / static_cast<double>(k + 1);
          squares += before * (f[at(b, k)] - mean[b]);
        }
        noise[b] = squares / static_cast<double>((K - 1) * K);
      }
      for (std::size_t b = 0; b < examples; ++b) {
        const auto [towards, lambda] = from_others(mean, noise, b);
        for (std::size_t k = 0; k < K; ++k) f[at(b, k)] = (1 - lambda) * own[at(b, k)] + lambda * (f[at(b, k)] - towards);
      }
    }
  }

  Config config_;
};

// f_bk - (1 - lambda_b) (mean of the example's other samples) - lambda_b m_b, with m_b the others' mean
Promise::Losses advantages(const Config&, const Promise::Losses& f, const std::vector<Promise::Losses>&) {
  const auto mean = [](const std::vector<double>& x) { return std::accumulate(x.begin(), x.end(), 0.0) / x.size(); };
  auto advantage = f;
  for (std::size_t b = 0; b < f.size(); ++b) {
    const double K = f[b].size(), others = f.size() - 1;
    double m = 0, v = 0, s = 0;
    for (std::size_t c = 0; c < f.size(); ++c) m += c == b ? 0 : mean(f[c]) / others;
    for (std::size_t c = 0; c < f.size(); ++c) {
      if (c == b) continue;
      for (double x : f[c]) v += std::pow(x - mean(f[c]), 2) / (K - 1) / K / others;
      s += std::pow(mean(f[c]) - m, 2) / others;
    }
    const double lambda = v + s > 0 ? v / (v + s) : 0;
    for (double& a : advantage[b]) a -= (1 - lambda) * (K * mean(f[b]) - a) / (K - 1) + lambda * m;
  }
  return advantage;
}

}  // namespace

const EstimatorEntry entry = {
    .name = "james_stein",
    .summary = "leave-one-out with baselines shrunk towards the mean loss of the batch's other examples",
    .paper =
        "Zeng, Zhou, Arora & Zanette 2025, Shrinking the variance: shrinkage baselines for reinforcement learning with "
        "verifiable rewards",
    .target = "expected_loss",
    .unbiased = true,
    .couples_examples = true,
    .evaluations = "K",
    .parameters = declared<Config>(),
    .needs = {need::log_density},
    .promises = {promise::advantages(advantages, "samples=2,reward_to_go=true"), promise::unshifted(),
                 promise::same_moments("rloo[samples=3]", "samples=3")},
};
HARDGRAD_ESTIMATOR(JamesStein, entry)

}  // namespace hardgrad::estimators::james_stein
