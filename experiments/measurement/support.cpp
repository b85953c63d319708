#include "experiments/measurement/support.hpp"

#include <fmt/format.h>

#include <cmath>
#include <functional>

namespace hardgrad::measurement {

/// Flat laws spread the squared deviations over decades, so that their tail index is low although they are bounded: it counts only
/// where few replicates carry the variance.
constexpr double enough_weighted = 20;

std::string why_unreliable(const Measurement& m, const Replicates& replicates, bool claims) {
  const bool unseen = m.unvisited_mass > 0;
  const auto left = unseen ? fmt::format(", and choices of probability {:.2g} were never made", m.unvisited_mass) : "";
  const bool exact = std::isfinite(m.exact_variance);
  if (exact) {
    const auto wide = replicates.variance_interval(mark_level);
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
  if (replicates.weighted() && m.effective_sample_size >= enough_weighted) return "";
  if (const auto tail = replicates.tail(); tail.index * (1 + 2 * tail.error) < 2)
    return fmt::format("the squared deviations have tail index {:.2g}, so that the variance {}{}", tail.index,
                       tail.index < 1 ? "may be infinite" : "has an infinite variance itself", left);
  return "";
}

std::string missed(const Measurement& m, const Replicates& replicates) {
  const struct {
    const char *interval, *name;
    double exact, rounding;
    std::function<Interval()> wide;
  } known[] = {{"squared_bias", "squared bias", m.exact_squared_bias,
                1e-4 * m.exact_squared_bias + 1e-10 * (m.estimand_norm * m.estimand_norm + m.exact_variance),
                [&] { return replicates.distance(replicates.reference()).interval(mark_level); }},
               {"cosine", "cosine", m.exact_cosine, 1e-5, [&] { return replicates.cosine_interval(mark_level); }}};
  std::string found;
  for (const auto& [interval, name, exact, rounding, wide] : known) {
    if (!std::isfinite(exact) || !m.intervals.contains(interval)) continue;
    const auto [low, high] = wide();
    if (exact < low - rounding || exact > high + rounding)
      found += fmt::format("{}the exact {} is {:.3g}, outside its interval [{:.3g}, {:.3g}] of level {}",
                           found.empty() ? "" : "; ", name, exact, low, high, mark_level);
  }
  return found;
}

}  // namespace hardgrad::measurement
