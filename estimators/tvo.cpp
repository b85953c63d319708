// tvo: the thermodynamic variational objective with its covariance gradient estimator.
//
//   L = -sum_j (b_j+1 - b_j) E_pi_j[l],  l = log w = log p(z) - f - log q(z),  pi_j ~ (p exp(-f))^b_j q^(1 - b_j)
//   grad E_pi[l] = E_pi[grad l] + Cov_pi(l, grad log pi~)
//
// Masrani, Le & Wood 2019, The thermodynamic variational objective, eq. 7 (pi) and 11-13 (gradient): a left Riemann sum over
// 0 = b_0 < b_1 < ... < b_J = 1, b_1..b_J evenly spaced in their logarithm. Expectations under pi_j are weighted by
// w_k^b_j / sum_l w_l^b_j over K samples of q; the covariance is multiplied by K / (K - 1).
// Target: L. Bias: from the normalised weights, like 1/K if many count. The first term (b_0 = 0, equal weights) has none, so
// with partitions = 1 this is the unbiased leave-one-out estimator of the evidence lower bound. Cost: K rows.
#include "core/estimator/importance/importance.hpp"
#include "core/estimator/promises.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <numeric>

namespace hardgrad::estimators::tvo {
namespace {

struct Config {
  int samples = 4, partitions = 2;
  double beta1 = 0.1;

  void declare(Fields& field) {
    samples_field(field, samples, 2);
    field(partitions, "partitions", 1, 1000, "terms of the Riemann sum; 1 is the evidence lower bound");
    field(beta1, "beta1", 0, 1, "first partition point above 0, if there are two terms or more").above().below();
  }
};

std::vector<double> log_uniform(int partitions, double beta1) {
  std::vector<double> b = {0};
  for (int j = 1; j < partitions; ++j) b.push_back(std::pow(beta1, double(partitions - j) / (partitions - 1)));
  b.push_back(1);
  return b;
}

template <class T>
class Tvo final : public Estimator<T> {
 public:
  Tvo(const Config& config, const Structure&, Key)
      : config_(config), partition_(log_uniform(config.partitions, config.beta1)) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    ImportanceSamples<T> drawn(problem, config_.samples);
    const auto& b = partition_;
    const double unbiased = config_.samples / (config_.samples - 1.0);
    return drawn.estimate([&](int example, Slopes& slope) {
      const auto l = drawn.log_weights(example);
      double value = 0;
      for (std::size_t j = 0; j + 1 < b.size(); ++j) {
        const double width = b[j + 1] - b[j];
        std::vector<double> heated;
        for (double log_w : l) heated.push_back(b[j] * log_w);
        const auto pi = self_normalised(heated);
        const double mean = std::inner_product(pi.begin(), pi.end(), l.begin(), 0.0);
        value -= width * mean;
        for (int k = 0; k < config_.samples; ++k) {
          const double covariance = unbiased * (l[k] - mean);
          slope.add_log_joint(k, -width * pi[k] * (1 + b[j] * covariance));
          slope.log_q[k] -= width * pi[k] * ((1 - b[j]) * covariance - 1);
        }
      }
      return value;
    });
  }

 private:
  Config config_;
  std::vector<double> partition_;
};

std::string thermodynamic_target(const Config& config) {
  return fmt::format("thermodynamic[partition={}]", fmt::join(log_uniform(config.partitions, config.beta1), ";"));
}

}  // namespace

const EstimatorEntry entry = {
    .name = "tvo",
    .summary = "thermodynamic variational objective, covariance gradient estimator",
    .paper = "Masrani, Le & Wood 2019, The thermodynamic variational objective, eq. 11-13",
    .target = "thermodynamic",
    .target_of = thermodynamic_target,
    .unbiased = false,
    .evaluations = "K",
    .parameters = declared<Config>(),
    .needs = {need::log_density},
    .promises = {promise::unbiased("partitions=1"), promise::consistent("samples"),
                 promise::consistent("samples", "partitions=3,beta1=0.3"), promise::unshifted()},
};
HARDGRAD_ESTIMATOR(Tvo, entry)

}  // namespace hardgrad::estimators::tvo
