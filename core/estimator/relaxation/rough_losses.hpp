// Losses too rough for the derivative at relaxed weights.
#pragma once

#include <fmt/format.h>

#include <string>

#include "core/choice/structure.hpp"

namespace hardgrad {

/// Why the derivative of the loss at relaxed weights has infinite variance; empty if it is not known to. The weights have a
/// density everywhere between the options, so the square of a slope like |distance|^a is integrable only if a > -1/2.
inline std::string no_variance_of_slopes(const Structure& structure) {
  if (structure.steepest > -0.5) return "";
  return fmt::format(
      "the loss grows so steeply between the options (its slope like the distance to the power of {:.3g}) that the square of "
      "its "
      "derivative at relaxed weights has no integral",
      structure.steepest);
}

}  // namespace hardgrad
