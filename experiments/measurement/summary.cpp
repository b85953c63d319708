#include "experiments/measurement/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "experiments/measurement/lengths.hpp"

namespace hardgrad::measurement {
namespace {

/// The distance from zero of the mean of a run around zero.
SquaredLength of_zero(const ReplicateStatistics& run) { return run.distance(run.reference()); }

/// The quotient of two numbers known within bounds; the second is positive.
Interval quotient(const Interval& a, const Interval& b) {
  const auto infinite = std::numeric_limits<double>::infinity();
  return {a[0] / b[1], b[0] > 0 ? a[1] / b[0] : infinite};
}

/// Noise makes the mean of a long run, of this length, longer than the true gradient, and the mean cosine to it smaller in the same
/// ratio. Takes that back; unknown if the noise is more than half of the squared length.
void take_back_noise(Measurement& m, double length) {
  const double ratio = m.estimand_norm / length;
  const bool known = ratio * ratio > 0.5;
  const auto corrected = [&](double cosine) { return known ? std::clamp(cosine / ratio, -1.0, 1.0) : not_a_number; };
  m.cosine = corrected(m.cosine);
  for (double& bound : m.intervals["cosine"]) bound = corrected(bound);
}

}  // namespace

void take_variance(Measurement& m, const ReplicateStatistics& replicates, double level) {
  m.variance = replicates.variance();
  m.intervals["variance"] = replicates.variance_interval(level);
}

void take_long_run(Measurement& m, const ReplicateStatistics& long_run) {
  m.estimand_standard_error = std::sqrt(long_run.variance() / long_run.effective_count());
  m.estimand_norm = std::sqrt(std::max(of_zero(long_run).unbiased(), 0.0));
}

void take_bias(Measurement& m, const ReplicateStatistics& replicates, double level, const ReplicateStatistics* long_run) {
  const auto distance = replicates.distance(replicates.reference(), long_run);
  m.squared_bias = distance.unbiased();
  if (long_run) m.bias_p_value_plain = distance.p_value();
  const auto bias = m.intervals["squared_bias"] = distance.interval(level);
  m.cosine = replicates.cosine();
  m.intervals["cosine"] = replicates.cosine_interval(level);
  if (long_run) take_back_noise(m, length_of(replicates.reference()));
  const double known = m.estimand_norm * m.estimand_norm;
  const auto square = long_run ? of_zero(*long_run).interval(level) : Interval{known, known};
  if (!(square[1] > 0)) return;
  const auto relative = quotient(bias, square);
  m.intervals["relative_bias"] = {std::sqrt(relative[0]), std::sqrt(relative[1])};
  if (m.variance > 0) m.intervals["snr"] = quotient(square, m.intervals["variance"]);
}

void test_bias(Measurement& m, const ReplicateStatistics& replicates, double rounding, double doubt) {
  const double resolution = rounding * std::max(length_of(replicates.reference()), 1e-6);  // a floor for a gradient of zero
  m.bias_p_value_plain = replicates.bias_p_value(resolution, doubt);
  if (doubt <= resolution) m.bias_p_value = replicates.corrected_bias_p_value(resolution);
}

void derive(Measurement& m) {
  m.relative_bias = m.estimand_norm > 0 ? std::sqrt(std::max(m.squared_bias, 0.0)) / m.estimand_norm : not_a_number;
  m.mse = m.variance + m.squared_bias;
  m.snr = m.estimand_norm * m.estimand_norm / m.variance;
  m.work_normalised_variance = m.variance * m.rows;
}

double bias_of_rounding(const Measurement& m, double epsilon) {
  const double variance = std::isfinite(m.variance) ? m.variance : 0;
  return std::max(std::pow(rounding_share(epsilon), 2) * (m.estimand_norm * m.estimand_norm + variance), least_squared_bias);
}

void drop_ratios_of_rounding(Measurement& m, double epsilon) {
  const double off = rounding_share(epsilon), spread = std::isfinite(m.variance) ? std::sqrt(std::max(0.0, m.variance)) : 0;
  const bool gradient_lost = m.estimand_norm <= std::max(off * spread, 1e-290);
  const bool variance_lost = spread > 0 && spread <= off * m.estimand_norm;
  if (gradient_lost) {
    m.relative_bias = m.cosine = not_a_number;
    m.intervals.erase("relative_bias");
    m.intervals.erase("cosine");
  }
  if (const auto interval = m.intervals.find("variance"); variance_lost && interval != m.intervals.end())
    interval->second[0] = 0;
  if (gradient_lost || variance_lost) {
    m.snr = not_a_number;
    m.intervals.erase("snr");
  }
}

/// Flat laws spread the squared deviations over decades, so that their tail index is low although they are bounded: it counts only
/// where few replicates carry the variance.
/// More are asked for while there may be more, because the first count with few of them is one of the luckier ones.
constexpr double enough_weighted = 40, enough_at_last = 10;

std::string reliability_warning(const Measurement& m, const ReplicateStatistics& replicates, bool claims, bool last) {
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
  if (replicates.weighted() && m.effective_sample_size >= (last ? enough_at_last : enough_weighted)) return "";
  if (const auto tail = replicates.tail(); tail.index * (1 + 2 * tail.error) < 2)
    return fmt::format("the squared deviations have tail index {:.2g}, so that the variance {}{}", tail.index,
                       tail.index < 1 ? "may be infinite" : "has an infinite variance itself", left);
  return "";
}

std::string missed(const Measurement& m, const ReplicateStatistics& replicates) {
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
