// near_reference: E_p(z)[f(z)] + beta KL(p || r), with a fixed reference policy r of the model: the objective of fine-tuning by
// rewards (Ziegler et al. 2019, Fine-tuning language models from human preferences).
//
// KL(p || r) is the sum over questions of the divergence given the earlier choices, exact over the options.
#include "core/estimator/enumeration/objectives.hpp"

namespace hardgrad::targets::near_reference {
namespace {

struct Config {
  double beta = 0.1;
  void declare(Fields& field) { field(beta, "beta", 0, 1e6, "weight of the divergence"); }
};

}  // namespace

const TargetEntry entry = {
    .name = "near_reference",
    .summary = "E_p(z)[f(z)] + beta KL(p || reference): the mean loss near a reference policy",
    .parameters = declared<Config>(),
    .terms = [](const Config& config) -> TargetTerms { return {.to_reference = config.beta}; },
    .reference_estimator = [](const Target& target) -> std::string {
      return "rloo[samples=16,reward_to_go=true,target=near_reference,near=" + to_string(read<Config>(target.settings()).beta) +
             "]";
    },
};
HARDGRAD_TARGET(near_reference, enumerated_mean, rows_of_enumeration, entry)

}  // namespace hardgrad::targets::near_reference
