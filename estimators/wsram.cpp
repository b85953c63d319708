// wsram: the learning rule of the wake-sleep recurrent attention model: reweighted wake-sleep with control variates.
//
//   v_k = w_k / sum_l w_l,  w_k = p(z_k) exp(-f_k) / q(z_k);   u_k = r_k / sum_l r_l,  r_k = p(z_k) / q(z_k);   z_k from q
//   g = sum_k v_k grad f_k - sum_k (v_k - u_k) grad log p(z_k) - sum_k (v_k - 1/K) grad log q(z_k)
//
// Ba, Grosse, Salakhutdinov & Frey 2015, Learning wake-sleep recurrent attention models.
// Both control variates are scores with mean zero under their own distribution: the
// prior's score is averaged with importance weights, the posterior's over its samples.
// Target: the field of wake_wake. Bias: that of wake_wake plus E[sum_k u_k grad log p(z_k)], because the prior's control
// variate is self-normalised, too; the posterior's adds none. Both vanish like 1/K, but the prior's only once samples of q
// cover p: on a trained network, whose posterior is sharp, it stays near the whole gradient (estimators/README.md). Cost: K
// rows. Departures: the paper's heuristics for exploration and its smoothing of the attention maps are left out.
#include "core/estimator/importance/importance.hpp"
#include "core/estimator/promises.hpp"

namespace hardgrad::estimators::wsram {
namespace {

using Config = SamplesConfig<4, 2>;

template <class T>
class WsRam final : public Estimator<T> {
 public:
  WsRam(const Config& config, const Structure&, Key) : config_(config) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    ImportanceSamples<T> drawn(problem, config_.samples);
    return drawn.estimate([&](int b, Slopes& slope) {
      const auto log_w = drawn.log_weights(b);
      const auto v = self_normalised(log_w), u = self_normalised(drawn.log_ratios(b));
      for (int k = 0; k < config_.samples; ++k) {
        slope.loss[k] = v[k];
        slope.log_p[k] = u[k] - v[k];
        slope.log_q[k] = 1.0 / config_.samples - v[k];
      }
      return -log_mean_exp(log_w);
    });
  }

 private:
  Config config_;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "wsram",
    .summary = "reweighted wake-sleep with control variates for prior and posterior",
    .paper = "Ba et al. 2015, Learning wake-sleep recurrent attention models",
    .target = "wake",
    .unbiased = false,
    .evaluations = "K",
    .parameters = declared<Config>(),
    .needs = {need::log_density},
    .promises = {promise::consistent("samples"), promise::unshifted(), promise::noiseless(Promise::Loss::constant)},
};
HARDGRAD_ESTIMATOR(WsRam, entry)

}  // namespace hardgrad::estimators::wsram
