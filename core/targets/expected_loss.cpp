// expected_loss: E_p(z)[f(z)], choices drawn from the prior; L_s of Xu et al. 2015, Show, Attend and Tell.
#include "core/estimator/enumeration/objectives.hpp"

namespace hardgrad::targets::expected_loss {

const TargetEntry entry = {
    .name = "expected_loss",
    .summary = "E_p(z)[f(z)]: the mean loss under the prior",
    .reference_estimator = [](const Target&) -> std::string { return "rloo[samples=16,reward_to_go=true]"; },
};
HARDGRAD_TARGET(expected_loss, enumerated_mean, rows_of_enumeration, entry)

}  // namespace hardgrad::targets::expected_loss
