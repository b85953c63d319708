// wake_sleep: reweighted wake-sleep in which the posterior learns from dreams (the sleep phase of q).
//
//   wake:   v_k = w_k / sum_l w_l,  w_k = p(z_k) exp(-f_k) / q(z_k),  z_k from q(z | x, y):   sum_k v_k grad (f_k - log p(z_k))
//   sleep:  z' from p(z | x), y' from p(y | x, z'):                                           -grad log q(z' | x, y')
//
// Hinton, Dayan, Frey & Neal 1995, The wake-sleep algorithm for unsupervised neural networks (samples = 1); Bornschein &
// Bengio 2015, Reweighted wake-sleep (wake phase of p, sleep phase of q); Le et al. 2019, Revisiting reweighted wake-sleep
// (wake-theta, sleep-phi). x is the network's input, y the answer that its loss is computed for; the dream keeps x.
// Target: the field -log p(y) for the network, KL(p(z | x, y) || q) averaged over y from p(y | x) for the posterior, summed
// where they share parameters. Bias: none in the sleep phase; that of wake_wake in the wake phase. Cost: K rows and two more.
// Departures: one dream per example, for any K.
#include "core/estimator/importance/importance.hpp"

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/choice/handlers.hpp"
#include "core/estimator/promises.hpp"
#include "core/models/parts/answer_sampler.hpp"

namespace hardgrad::estimators::wake_sleep {
namespace {

using Config = SamplesConfig<4>;

template <class T>
class WakeSleep final : public Estimator<T> {
 public:
  WakeSleep(const Config& config, const Structure&, Key) : config_(config) {}
  bool exchangeable() const override { return false; }  // the dream is not one of the samples

  Estimate<T> estimate(const Problem<T>& problem) const override {
    ImportanceSamples<T> drawn(problem, config_.samples);
    auto estimate = drawn.estimate([&](int b, Slopes& slope) {
      const auto log_w = drawn.log_weights(b);
      const auto v = self_normalised(log_w);
      for (int k = 0; k < config_.samples; ++k) slope.add_log_joint(k, -v[k]);
      return -log_mean_exp(log_w);
    });
    auto dreamt = dream(problem.model, problem.batch, problem.tape, problem.random, config_.samples);
    RepeatHandler<T> handler(*dreamt.episode);
    auto sleep = Problem<T>{problem.tape, problem.model, dreamt.batch, problem.random, false, problem.terms}.run(handler);
    const double share = 1.0 / problem.batch.examples();
    for (int t = 0; t < static_cast<int>(sleep->steps().size()); ++t)
      estimate.surrogate = add(estimate.surrogate, sum(sleep->log_probability(t), -share));
    estimate.others.push_back(std::move(dreamt.episode));
    estimate.others.push_back(std::move(sleep));
    return estimate;
  }

 private:
  Config config_;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "wake_sleep",
    .summary = "reweighted wake-sleep: weighted samples for the network, dreams of the network for the posterior",
    .paper = "Hinton et al. 1995, The wake-sleep algorithm; Bornschein & Bengio 2015, Reweighted wake-sleep",
    .target = "wake_sleep",
    .unbiased = false,
    .evaluations = "K + 2",
    .parameters = declared<Config>(),
    .needs = {need::log_density, need::dreams},
    .promises = {promise::consistent("samples")},
};
HARDGRAD_ESTIMATOR(WakeSleep, entry)

}  // namespace hardgrad::estimators::wake_sleep
