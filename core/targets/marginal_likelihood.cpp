// marginal_likelihood: -log E_p(z)[exp(-f(z))], the likelihood of the data if f = -log p(y | x, z). With independent choices
// the sum factorises over them: Deng et al. 2018, Latent Alignment and Variational Attention, eq. 3.
#include "core/choice/choosers.hpp"
#include "core/estimator/enumeration/objectives.hpp"

namespace hardgrad {
namespace {

template <class T>
Estimate<T> objective(const Target&, const Problem<T>& problem) {
  EnumerateChooser<T> chooser;
  const auto& structure = problem.model.structure();
  auto episode = problem.run(chooser, structure.factorised() ? CostWeights::posterior : CostWeights::unknown);
  auto loss = marginal_likelihood_loss(*episode);
  return {.surrogate = loss, .episode = std::move(episode), .loss = static_cast<double>(loss.item())};
}

}  // namespace

const TargetEntry entry = {
    .name = "marginal_likelihood",
    .summary = "-log E_p(z)[exp(-f(z))]",
};
HARDGRAD_TARGET(marginal_likelihood, objective, rows_of_enumeration, entry)

}  // namespace hardgrad
