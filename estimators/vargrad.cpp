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
#include "core/estimator/promises.hpp"
#include "core/estimator/score_function/score_function.hpp"

namespace hardgrad::estimators::vargrad {
namespace {

using Config = SamplesAndCredit<4, 2>;

template <class T>
class VarGrad final : public Estimator<T> {
 public:
  VarGrad(const Config& config, const Structure&, Key) : config_(config) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    return score_estimate(Sampled<T>(problem, config_.samples), config_.credit, [this](std::vector<double>& l, int columns) {
      leave_one_out(l, config_.samples, columns);
      for (auto& weight : l) weight -= 1;
    });
  }

 private:
  Config config_;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "vargrad",
    .summary = "gradient of the variance of the log weights: leave-one-out without the path term of log q",
    .paper = "Richter et al. 2020, VarGrad: a low-variance gradient estimator for variational inference",
    .target = "elbo",
    .target_of = [](const Config&) -> std::string { return "elbo[kl=sampled]"; },
    .unbiased = true,
    .evaluations = "K",
    .parameters = declared<Config>(),
    .needs = {need::log_density},
    .promises = {promise::unshifted()},
};
HARDGRAD_ESTIMATOR(VarGrad, entry)

}  // namespace hardgrad::estimators::vargrad
