// The setting `reduce` of toy problems: the sum or the mean of the costs of D choices.
#pragma once

#include "core/registry/fields.hpp"

namespace hardgrad {

enum class Reduce { sum, mean };
inline constexpr Named<Reduce> reductions[] = {{"sum", Reduce::sum}, {"mean", Reduce::mean}};

/// The weight of each of D costs.
inline double share_of_each(Reduce reduce, int D) { return reduce == Reduce::mean ? 1.0 / D : 1.0; }

}  // namespace hardgrad
