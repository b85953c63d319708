// iwae_reinforce: the K-sample bound of importance-weighted autoencoders, by the plain score function.
//
//   L = -log 1/K sum_k w_k,  w_k = p(z_k) exp(-f_k) / q(z_k),  v_k = w_k / sum_l w_l
//   g = sum_k L grad log q(z_k) - sum_k v_k grad log w_k
//
// The bound: Burda, Grosse & Salakhutdinov 2016, Importance weighted autoencoders. Its "naive Monte Carlo estimator",
// in which every sample is credited with the same L: Mnih & Rezende 2016, Variational inference for Monte Carlo objectives.
// Target: the K-sample bound. Bias: none. Cost: K rows.
#include "core/estimator/importance/importance.hpp"

namespace hardgrad::estimators::iwae_reinforce {
namespace {

using Config = SamplesConfig<2>;

template <class T>
class IwaeReinforce final : public Estimator<T> {
 public:
  IwaeReinforce(const Config& config, const Structure&, Key) : config_(config) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    ImportanceSamples<T> drawn(problem, config_.samples);
    return drawn.estimate([&](int b, Slopes& slope) {
      const auto log_w = drawn.log_weights(b);
      const auto v = self_normalised(log_w);
      const double bound = -log_mean_exp(log_w);
      for (int k = 0; k < config_.samples; ++k) {
        slope.add_log_joint(k, -v[k]);
        slope.log_q[k] = bound + v[k];
      }
      return bound;
    });
  }

 private:
  Config config_;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "iwae_reinforce",
    .summary = "K-sample importance-weighted bound, plain score function for the posterior",
    .paper =
        "Burda et al. 2016, Importance weighted autoencoders (bound); Mnih & Rezende 2016, Variational inference for "
        "Monte Carlo objectives (naive estimator)",
    .target = "importance_bound",
    .target_of = samples_of_bound,
    .unbiased = true,
    .evaluations = "K",
    .parameters = declared<Config>(),
    .needs = {need::log_density},
};
HARDGRAD_ESTIMATOR(IwaeReinforce, entry)

}  // namespace hardgrad::estimators::iwae_reinforce
