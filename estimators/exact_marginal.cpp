// exact_marginal: the gradient of the log marginal likelihood, every choice enumerated.
//
//   g = -grad log sum_z p(z) exp(-f(z))          (f = -log p(y | x, z))
//
// With independent choices the sum factorises over the steps: Deng et al. 2018, eq. 3 and sec. 3 ("exact EM").
// Target: marginal likelihood. Bias: none. Variance: none. Cost: as `exact`.
#include "core/estimator/enumeration/objectives.hpp"

namespace hardgrad::estimators::exact_marginal {
namespace {

template <class T>
class ExactMarginal final : public Estimator<T> {
 public:
  ExactMarginal(const Settings&, const Structure&, Key) {}
  Estimate<T> estimate(const Problem<T>& problem) const override {
    return exact_objective(this->target(), problem, problem.cap);
  }
};

}  // namespace

const EstimatorEntry entry = {
    .name = "exact_marginal",
    .summary = "enumerates every choice: the gradient of -log sum_z p(z) exp(-f(z))",
    .paper = "Deng et al. 2018, Latent Alignment and Variational Attention, eq. 3",
    .target = "marginal_likelihood",
    .unbiased = true,
    .evaluations = "S; S^D if shared; S^T if joint",
    .needs = {need::enumerable},
};
HARDGRAD_ESTIMATOR(ExactMarginal, entry)

}  // namespace hardgrad::estimators::exact_marginal
