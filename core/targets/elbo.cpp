// elbo: E_q(z)[f(z) + log q(z) - log p(z)], choices drawn from the learned posterior q(z | x, y): the negative evidence lower
// bound.
//
// kl=analytic: KL(q || p) given the earlier choices, summed over the options of every question. kl=sampled: log q(z) - log p(z)
// of the drawn choices, with the same mean but another variance. Deng et al. 2018, Latent Alignment and Variational Attention,
// eq. 4-5.
// weight=w: E_q[f] + w KL(q || p), a bound for w >= 1 only. A weight that grows from 0 to 1 (`train.anneal`) lets the posterior
// begin without the prior: Bowman et al. 2016, Generating sentences from a continuous space; Deng et al. 2018.
#include "core/estimator/enumeration/objectives.hpp"

namespace hardgrad::targets::elbo {
namespace {

enum class Kl { analytic, sampled };
constexpr Named<Kl> kls[] = {{"analytic", Kl::analytic}, {"sampled", Kl::sampled}};

struct Config {
  Kl kl = Kl::analytic;
  double weight = 1;

  void declare(Fields& field) {
    field(kl, "kl", kls, "the divergence: summed over options, or log q - log p of the drawn choices");
    field(weight, "weight", 0, 1e6, "weight of the divergence");
  }
};

TargetTerms terms_of(const Config& config) {
  using enum TargetTerms::Divergence;
  return {.drawn_from = DrawnFrom::posterior,
          .divergence = config.weight == 0          ? none
                        : config.kl == Kl::analytic ? analytic
                                                    : sampled,
          .divergence_weight = config.weight};
}

}  // namespace

const TargetEntry entry = {
    .name = "elbo",
    .summary = "E_q(z)[f(z)] + KL(q || p): the negative evidence lower bound",
    .parameters = declared<Config>(),
    .terms = terms_of,
    .reference_estimator = [](const Target& target) -> std::string {
      return "rloo[samples=16,reward_to_go=true,target=elbo,kl_weight=" + to_string(read<Config>(target.settings()).weight) +
             "]";
    },
};
HARDGRAD_TARGET(elbo, enumerated_mean, rows_of_enumeration, entry)

}  // namespace hardgrad::targets::elbo
