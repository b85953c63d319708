// near_reference: E_p(z)[f(z)] + beta KL(p || r), with a fixed reference policy r of the model: the objective of fine-tuning by
// rewards (Ziegler et al. 2019, Fine-tuning language models from human preferences).
//
// KL(p || r) is the sum over questions of the divergence given the earlier choices, exact over the options.
#include "core/estimator/enumeration/objectives.hpp"

namespace hardgrad::targets::near_reference {

const TargetEntry entry = {
    .name = "near_reference",
    .summary = "E_p(z)[f(z)] + beta KL(p || reference): the mean loss near a reference policy",
    .parameters = {ParameterInfo::real("beta", 0.1, 0, 1e6, "weight of the divergence")},
    .terms = [](const Settings& settings) -> TargetTerms { return {.to_reference = settings.real("beta")}; },
    .stand_in = [](const Target& target) -> std::string {
      return "rloo[samples=16,reward_to_go=true,target=near_reference,near=" + to_string(target.settings().real("beta")) + "]";
    },
};
HARDGRAD_TARGET(near_reference, enumerated_mean, rows_of_enumeration, entry)

}  // namespace hardgrad::targets::near_reference
