// ovis: the K-sample bound with a nearly optimal control variate for every sample.
//
//   d_k = log 1/K sum_l w_l - v_k                          (w, v as in iwae_reinforce)
//   g = -sum_k (d_k - c_k) grad log q(z_k) - sum_k v_k grad (log p(z_k) - f_k)
//   mc:         c_k = 1/S sum_s d_k with z_k replaced by an auxiliary sample z'_s of q
//   asymptotic: c_k = log 1/(K-1) sum_l!=k w_l - gamma v_k + (1 - gamma) log(1 - 1/K)
//
// Lievin, Dittadi, Christensen & Winther 2020, Optimal variance control of the score-function gradient estimator for
// importance-weighted bounds, eq. 12 (OVIS_MC) and 17 (OVIS_~; gamma = 1 if many samples have weight, 0 if few do).
// Target: the K-sample bound. Bias: none for mc and for gamma = 0, where c_k does not depend on z_k. With gamma > 0 it is
// -gamma sum_k E[v_k grad log q(z_k)]: at gamma = 1 the posterior follows the wake phase of reweighted wake-sleep.
// Cost: K rows, K + S for mc.
// Departures: the auxiliary samples are used in the control variate only. The default is mc, which is unbiased.
#include "core/estimator/importance/importance.hpp"
#include "core/estimator/promises.hpp"

#include <cmath>

namespace hardgrad::estimators::ovis {
namespace {

enum class Variant { mc, asymptotic };
constexpr Named<Variant> variants[] = {{"mc", Variant::mc}, {"asymptotic", Variant::asymptotic}};

struct Config {
  int samples = 2;
  Variant variant = Variant::mc;
  int auxiliary = 1;
  double gamma = 1;

  void declare(Fields& field) {
    samples_field(field, samples, 2);
    field(variant, "variant", variants, "how the control variate is computed");
    field(auxiliary, "auxiliary", 1, 1e6, "auxiliary samples S of variant=mc");
    field(gamma, "gamma", 0, 1, "for variant=asymptotic: 1 if many samples have weight, 0 if few do; biased above 0");
  }
};

template <class T>
class Ovis final : public Estimator<T> {
 public:
  Ovis(const Config& config, const Structure&, Key)
      : config_(config), auxiliary_(config.variant == Variant::mc ? config.auxiliary : 0) {}
  bool exchangeable() const override { return auxiliary_ == 0; }  // auxiliary samples cannot be exchanged with the others

  Estimate<T> estimate(const Problem<T>& problem) const override {
    ImportanceSamples<T> drawn(problem, config_.samples + auxiliary_);
    return drawn.estimate([&](int b, Slopes& slope) {
      const auto log_w = drawn.log_weights(b).first(config_.samples);
      const auto v = self_normalised(log_w);
      for (int k = 0; k < config_.samples; ++k) {
        slope.add_log_joint(k, -v[k]);
        slope.log_q[k] = auxiliary_ ? -sampled_signal(drawn.log_weights(b), k) : -asymptotic_signal(log_w, k, v[k]);
      }
      return -log_mean_exp(log_w);
    });
  }

 private:
  /// d_k - c_k; the auxiliary samples follow the first K.
  double sampled_signal(std::span<const double> log_w, int k) const {
    std::vector<double> w(log_w.begin(), log_w.begin() + config_.samples);
    const auto d = [&](double own) {
      w[k] = own;
      const double whole = log_sum_exp(w);
      return whole - std::exp(own - whole);
    };
    const double mine = d(log_w[k]);
    double signal = 0;
    for (double other : log_w.subspan(config_.samples)) signal += (mine - d(other)) / auxiliary_;
    return signal;
  }
  /// d_k - c_k = gamma log(1 - 1/K) - log(1 - v_k) - (1 - gamma) v_k; 1 - v_k is computed without cancellation.
  double asymptotic_signal(std::span<const double> log_w, int k, double v) const {
    return config_.gamma * std::log1p(-1.0 / config_.samples) + log_sum_exp(log_w) - log_sum_exp(all_but(log_w, k)) -
           (1 - config_.gamma) * v;
  }

  Config config_;
  int auxiliary_;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "ovis",
    .summary = "K-sample importance-weighted bound, nearly optimal control variates",
    .paper =
        "Lievin et al. 2020, Optimal variance control of the score-function gradient estimator for "
        "importance-weighted bounds, eq. 12 and 17",
    .target = "importance_bound",
    .target_of = samples_of_bound,
    .unbiased = true,
    .biased_by = [](const Config& config) { return config.variant == Variant::asymptotic && config.gamma != 0; },
    .evaluations = "K; K + auxiliary if variant=mc",
    .parameters = declared<Config>(),
    .needs = {need::log_density},
    .promises = {promise::unshifted(), promise::unbiased("variant=asymptotic,gamma=0"),
                 promise::unshifted("variant=asymptotic,gamma=0"), promise::variance(3.233772351),
                 promise::variance(3.535537926, "variant=asymptotic,gamma=0.5")},
};
HARDGRAD_ESTIMATOR(Ovis, entry)

}  // namespace hardgrad::estimators::ovis
