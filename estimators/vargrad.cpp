// vargrad: the posterior minimises the variance of the log weights, whose gradient is that of the evidence lower bound.
//
//   l_k = f_k + log q(z_k) - log p(z_k),   z_k from q
//   g_q = grad 1/2 Var(l_1..l_K) with the z held = 1/(K-1) sum_k (l_k - mean l) grad log q(z_k)
//   g_p = 1/K sum_k grad (f_k - log p(z_k))
//
// Richter, Boustati, Nuesken, Ruiz & Akyildiz 2020, VarGrad: a low-variance gradient estimator for variational inference
// (the log-variance loss at r = q). It is rloo[target=elbo,kl=sampled] without the path term grad log q(z_k), whose mean is
// 0: grad l_k contains this term, so 1 is subtracted from the factor of the score. g_q has no variance where q is the posterior
// p(z | y), because l is then the same for every z.
// Target: ELBO. Bias: none. Cost: K rows.
// Departure: g_p, the gradient for the network; the paper leaves it to the user.
#include "core/autodiff/elementwise.hpp"
#include "core/estimator/score_function/score_function.hpp"

namespace hardgrad::estimators::vargrad {
namespace {

template <class T>
class VarGrad final : public Estimator<T> {
 public:
  VarGrad(const Settings& settings, const Structure&, Key)
      : samples_(settings.integer("samples")), credit_(credit_of(settings)) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    Sampled<T> sampled(problem, samples_);
    const auto score = sampled.score(credit_, [&](int t, std::vector<double>& l) {
      leave_one_out(l, samples_, sampled.columns(t, credit_));
      for (auto& weight : l) weight -= 1;
    });
    auto surrogate = add(score, sampled.path());
    return {.surrogate = surrogate, .episode = sampled.release(), .loss = sampled.mean_loss()};
  }

 private:
  int samples_;
  Credit credit_;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "vargrad",
    .summary = "gradient of the variance of the log weights: leave-one-out without the path term of log q",
    .paper = "Richter et al. 2020, VarGrad: a low-variance gradient estimator for variational inference",
    .target = "elbo",
    .target_of = [](const Settings&) -> std::string { return "elbo[kl=sampled]"; },
    .unbiased = true,
    .evaluations = "K",
    .parameters = {samples_parameter(4, 2), credit_parameter()},
    .needs = {need::log_density},
    .promises = {promise::unshifted()},
};
HARDGRAD_ESTIMATOR(VarGrad, entry)

}  // namespace hardgrad::estimators::vargrad
