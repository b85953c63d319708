// The recurrent model that estimators are proven on.
#pragma once

#include "experiments/verification/recurrent.hpp"

namespace hardgrad::testing {
using verification::Recurrent;
}  // namespace hardgrad::testing
