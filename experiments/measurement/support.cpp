#include "experiments/measurement/support.hpp"

#include <fmt/format.h>

#include <cmath>

namespace hardgrad::measurement {

std::string unsupported(const Measurement& m, const Replicates& replicates, bool claims) {
  const bool unseen = m.unvisited_mass > 0;
  const auto left = unseen ? fmt::format(", and choices of probability {:.2g} were never made", m.unvisited_mass) : "";
  const bool exact = std::isfinite(m.exact_variance);
  if (exact) {
    const auto wide = replicates.variance_interval(0.999);
    const double slack = 1e-6 * m.exact_variance;
    if (m.exact_variance < wide[0] - slack || m.exact_variance > wide[1] + slack)
      return fmt::format("the exact variance is {:.3g}{}", m.exact_variance, left);
  }
  if (m.variance == 0) return unseen && !exact ? "they show no noise" + left : "";
  if (m.effective_sample_size < 5)
    return fmt::format("{:.1f} of {} carry the variance{}", m.effective_sample_size, replicates.count(), left);
  if (claims && m.bias_p_value < 1e-3) return "they show a bias where the estimator claims none" + left;
  if (exact) return "";  // it is within the interval
  if (const auto tail = replicates.tail(); tail.index * (1 + 2 * tail.error) < 2)
    return fmt::format("the squared deviations have tail index {:.2g}, so that the variance {}{}", tail.index,
                       tail.index < 1 ? "may be infinite" : "has itself none", left);
  return "";
}

}  // namespace hardgrad::measurement
