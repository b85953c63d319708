// marginal_likelihood: -log E_p(z)[exp(-f(z))]: the negative log likelihood of the data if f = -log p(y | x, z). With
// independent choices the sum factorises: Deng et al. 2018, Latent Alignment and Variational Attention, eq. 3. The cost of a toy
// without an answer (bits, gaussians, subsets) counts as it is; other networks say if f is no likelihood
// (Structure::no_likelihood).
#include "core/choice/handlers.hpp"
#include "core/estimator/enumeration/objectives.hpp"

namespace hardgrad::targets::marginal_likelihood {
namespace {

template <class T>
Estimate<T> objective(const Target&, const Problem<T>& problem) {
  const auto& structure = problem.model.structure();
  EnumerateHandler<T> handler(structure);
  const auto weights = structure.steps_apart() ? CostWeights::posterior : CostWeights::unknown;
  return estimate_of(problem, handler, weights, marginal_likelihood_loss<T>);
}

}  // namespace

const TargetEntry entry = {
    .name = "marginal_likelihood",
    .summary = "-log E_p(z)[exp(-f(z))]",
    .likelihood = true,
};
HARDGRAD_TARGET(marginal_likelihood, objective, rows_of_enumeration, entry)

}  // namespace hardgrad::targets::marginal_likelihood
