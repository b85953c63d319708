#include "experiments/measurement/support.hpp"

#include <fmt/format.h>

#include <cmath>

namespace hardgrad::measurement {

std::string why_unreliable(const Measurement& m, const Replicates& replicates, bool claims) {
  const bool unseen = m.unvisited_mass > 0;
  const auto left = unseen ? fmt::format(", and choices of probability {:.2g} were never made", m.unvisited_mass) : "";
  const bool exact = std::isfinite(m.exact_variance);
  if (exact) {
    const auto wide = replicates.variance_interval(0.999);
    const double slack = 1e-6 * m.exact_variance;
    if (m.exact_variance < wide[0] - slack || m.exact_variance > wide[1] + slack)
      return fmt::format("the exact variance is {:.3g}{}", m.exact_variance, left);
  }
  const bool unclaimed = claims && m.bias_p_value < 1e-3;
  const auto bias_shown = "they show a bias where the estimator claims none" + left;
  if (m.variance == 0) return unseen && !exact ? "they show no noise" + left : unclaimed ? bias_shown : "";
  if (m.effective_sample_size < 5)
    return fmt::format("{:.1f} of {} carry the variance{}", m.effective_sample_size, replicates.count(), left);
  if (unclaimed) return bias_shown;
  if (exact) return "";  // within the interval
  if (const auto tail = replicates.tail(); tail.index * (1 + 2 * tail.error) < 2)
    return fmt::format("the squared deviations have tail index {:.2g}, so that the variance {}{}", tail.index,
                       tail.index < 1 ? "may be infinite" : "has an infinite variance itself", left);
  return "";
}

std::string missed(const Measurement& m) {
  const struct {
    const char *interval, *name;
    double exact, rounding;
  } known[] = {{"variance", "variance", m.exact_variance, 1e-6 * m.exact_variance},
               {"squared_bias", "squared bias", m.exact_squared_bias,
                1e-4 * m.exact_squared_bias + 1e-10 * (m.estimand_norm * m.estimand_norm + m.exact_variance)},
               {"cosine", "cosine", m.exact_cosine, 1e-5}};
  std::string found;
  for (const auto& [interval, name, exact, rounding] : known) {
    const auto at = m.intervals.find(interval);
    if (!std::isfinite(exact) || at == m.intervals.end()) continue;
    const auto [low, high] = at->second;
    if (exact < low - rounding || exact > high + rounding)
      found += fmt::format("{}the exact {} is {:.3g}, outside its interval [{:.3g}, {:.3g}]", found.empty() ? "" : "; ", name,
                           exact, low, high);
  }
  return found;
}

}  // namespace hardgrad::measurement
