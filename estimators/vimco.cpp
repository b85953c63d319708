// vimco: the K-sample bound with a separate learning signal for every sample.
//
//   L_-k = -log 1/K (sum_l!=k w_l + m_k),  m_k the geometric (or arithmetic) mean of the other samples' weights
//   g = sum_k (L - L_-k) grad log q(z_k) - sum_k v_k grad log w_k        (L, w, v as in iwae_reinforce)
//
// Mnih & Rezende 2016, Variational inference for Monte Carlo objectives, the local learning signals: L_-k is the bound with the
// weight of sample k replaced by the mean of the others. It does not depend on z_k, so it is a baseline.
// Target: the K-sample bound. Bias: none. Cost: K rows.
#include "core/estimator/importance/importance.hpp"
#include "core/estimator/promises.hpp"

#include <numeric>

namespace hardgrad::estimators::vimco {
namespace {

enum class Mean { geometric, arithmetic };
constexpr Named<Mean> means[] = {{"geometric", Mean::geometric}, {"arithmetic", Mean::arithmetic}};

struct Config {
  int samples = 2;
  Mean mean = Mean::geometric;

  void declare(Fields& field) {
    samples_field(field, samples, 2);
    field(mean, "mean", means, "mean of the other weights that replaces a sample's own");
  }
};

template <class T>
class Vimco final : public Estimator<T> {
 public:
  Vimco(const Config& config, const Structure&, Key) : config_(config) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    ImportanceSamples<T> drawn(problem, config_.samples);
    return drawn.estimate([&](int b, Slopes& slope) {
      const auto log_w = drawn.log_weights(b);
      const auto v = self_normalised(log_w);
      const double bound = -log_mean_exp(log_w);
      for (int k = 0; k < config_.samples; ++k) {
        auto without = all_but(log_w, k);
        without.push_back(log_mean(without));
        slope.add_log_joint(k, -v[k]);
        slope.log_q[k] = bound + log_mean_exp(without) + v[k];  // L - L_-k + v_k
      }
      return bound;
    });
  }

 private:
  /// log m_k of the other samples' log weights
  double log_mean(std::span<const double> log_w) const {
    if (config_.mean != Mean::geometric) return log_mean_exp(log_w);
    return std::accumulate(log_w.begin(), log_w.end(), 0.0) / static_cast<double>(log_w.size());
  }
  Config config_;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "vimco",
    .summary = "K-sample importance-weighted bound, leave-one-out learning signals",
    .paper = "Mnih & Rezende 2016, Variational inference for Monte Carlo objectives (local learning signals)",
    .target = "importance_bound",
    .target_of = samples_of_bound,
    .unbiased = true,
    .evaluations = "K",
    .parameters = declared<Config>(),
    .needs = {need::log_density},
    .promises = {promise::unshifted(), promise::unshifted("mean=arithmetic"), promise::unbiased("mean=arithmetic"),
                 promise::variance(1.140920669, "samples=3"), promise::variance(1.343973598, "samples=3,mean=arithmetic")},
};
HARDGRAD_ESTIMATOR(Vimco, entry)

}  // namespace hardgrad::estimators::vimco
