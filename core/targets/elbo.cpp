// elbo: E_q(z)[f(z) + log q(z) - log p(z)], choices drawn from the learned posterior q(z | x, y): the negative evidence lower
// bound.
//
// kl=analytic: KL(q || p) given the earlier choices, summed over the options of every question. kl=sampled: log q(z) - log p(z)
// of the drawn choices, with the same mean but another variance. Deng et al. 2018, Latent Alignment and Variational Attention,
// eq. 4-5.
#include "core/estimator/enumeration/objectives.hpp"

namespace hardgrad::targets::elbo {
namespace {

TargetTerms terms_of(const Settings& settings) {
  using enum TargetTerms::Divergence;
  return {DrawnFrom::posterior, settings.text("kl") == "analytic" ? analytic : sampled};
}

}  // namespace

const TargetEntry entry = {
    .name = "elbo",
    .summary = "E_q(z)[f(z)] + KL(q || p): the negative evidence lower bound",
    .parameters = {ParameterInfo::choice("kl", "analytic", {"analytic", "sampled"},
                                         "the divergence: summed over options, or log q - log p of the drawn choices")},
    .terms = terms_of,
    .stand_in = [](const Target&) -> std::string { return "rloo[samples=16,reward_to_go=true,target=elbo]"; },
};
HARDGRAD_TARGET(elbo, enumerated_mean, rows_of_enumeration, entry)

}  // namespace hardgrad::targets::elbo
