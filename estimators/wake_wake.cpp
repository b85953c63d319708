// wake_wake: reweighted wake-sleep in which the posterior also learns from the data (the wake phase of q).
//
//   v_k = w_k / sum_l w_l,  w_k = p(z_k) exp(-f_k) / q(z_k),  z_k from q
//   g = sum_k v_k grad (f_k - log p(z_k)) - sum_k v_k grad log q(z_k)
//
// Bornschein & Bengio 2015, Reweighted wake-sleep (wake phase of p and of q); Le et al. 2019, Revisiting reweighted
// wake-sleep for models with stochastic control flow (wake-theta, wake-phi).
// Target: the field -log p(y) for the network, the inclusive KL(p(z|y) || q) for the posterior, summed where they share
// parameters. Bias: from normalising the weights by their sum; like 1/K if many weights count.
// Cost: K rows.
#include "core/estimator/importance/importance.hpp"
#include "core/estimator/promises.hpp"

namespace hardgrad::estimators::wake_wake {
namespace {

using Config = SamplesConfig<4, 2>;

template <class T>
class WakeWake final : public Estimator<T> {
 public:
  WakeWake(const Config& config, const Structure&, Key) : config_(config) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    ImportanceSamples<T> drawn(problem, config_.samples);
    return drawn.estimate([&](int b, Slopes& slope) {
      const auto log_w = drawn.log_weights(b);
      const auto v = self_normalised(log_w);
      for (int k = 0; k < config_.samples; ++k) {
        slope.add_log_joint(k, -v[k]);
        slope.log_q[k] = -v[k];
      }
      return -log_mean_exp(log_w);
    });
  }

 private:
  Config config_;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "wake_wake",
    .summary = "reweighted wake-sleep: self-normalised weights for the network and for the posterior",
    .paper = "Bornschein & Bengio 2015, Reweighted wake-sleep; Le et al. 2019, Revisiting reweighted wake-sleep",
    .target = "wake",
    .unbiased = false,
    .evaluations = "K",
    .parameters = declared<Config>(),
    .needs = {need::log_density},
    .promises = {promise::consistent("samples"), promise::unshifted()},
};
HARDGRAD_ESTIMATOR(WakeWake, entry)

}  // namespace hardgrad::estimators::wake_wake
