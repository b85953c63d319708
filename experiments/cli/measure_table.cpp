#include "experiments/cli/measure_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "experiments/cli/output.hpp"
#include "experiments/measurement/summary.hpp"

namespace hardgrad::cli {
namespace {

using measurement::bias_of_rounding, measurement::is_exact, measurement::Measurement;
using measurement::Quantity, measurement::OfSamples, measurement::Shown, measurement::Status;

/// A squared bias, or its root over the gradient's norm. An exact value within rounding error of zero is shown as an upper
/// bound if the bound is at least 1e-10 of the gradient; an estimate is shown unchanged.
std::string bias_text(const Measurement& m, double epsilon, bool relative) {
  const auto shown = [&](double squared) { return relative ? std::sqrt(squared) / m.estimand_norm : squared; };
  const auto interval = m.intervals.find("squared_bias");
  const bool near_zero = is_exact(m) && interval != m.intervals.end() && interval->second[0] <= 0;
  if (near_zero && interval->second[1] > std::max(1e-20 * m.estimand_norm * m.estimand_norm, bias_of_rounding(m, epsilon)))
    return "< " + short_number(shown(interval->second[1]));
  if (near_zero || std::abs(m.squared_bias) <= bias_of_rounding(m, epsilon)) return short_number(0);
  return short_number(relative ? m.relative_bias : m.squared_bias);
}

/// The exact relative bias, shown with a sampled one.
std::string exact_bias_text(const Measurement& m, double epsilon) {
  if (m.exact_squared_bias <= bias_of_rounding(m, epsilon)) return short_number(0);
  return short_number(std::sqrt(m.exact_squared_bias) / m.estimand_norm);
}

/// The text of a quantity in the row of a measurement.
std::string text_of(const Quantity& row, const Measurement& m, double epsilon) {
  std::string text;
  if (row.shown == Shown::sampled && is_exact(m)) return "exact";
  if (row.measured == &Measurement::squared_bias)
    text = bias_text(m, epsilon, false);
  else if (row.measured == &Measurement::relative_bias)
    text = bias_text(m, epsilon, true);
  else if (row.measured == &Measurement::exact_squared_bias)
    text = exact_bias_text(m, epsilon);
  else
    text = short_number(m.*row.measured * (row.measured == &Measurement::seconds ? 1e3 : 1));
  return text + (row.sampled == OfSamples::estimate && !m.reliability_warning.empty() ? " ?" : "");
}

/// The quantities that a table of these measurements shows.
std::vector<const Quantity*> shown(const std::vector<Measurement>& measured) {
  const auto any = [&](auto is) { return std::any_of(measured.begin(), measured.end(), is); };
  const bool exact = any([](const auto& m) { return is_exact(m); });
  const bool sampled = any([](const auto& m) { return m.status == Status::ok && !is_exact(m); });
  const bool beside = any([](const auto& m) { return std::isfinite(m.exact_variance); });
  const bool off_policy = any([](const auto& m) { return std::isfinite(m.largest_ratio); });
  std::vector<const Quantity*> all;
  for (const auto& row : measurement::quantities())
    if (*row.heading &&
        (row.shown == Shown::always || (row.shown == Shown::exact && exact) || (row.shown == Shown::sampled && sampled) ||
         (row.shown == Shown::beside_exact && beside) || (row.shown == Shown::off_policy && off_policy)))
      all.push_back(&row);
  return all;
}

void print_table_of(const std::vector<Measurement>& measured, double epsilon) {
  std::vector<std::vector<std::string>> rows{{"ESTIMATOR", "TARGET"}};
  const auto columns = shown(measured);
  for (const auto* column : columns) rows[0].push_back(column->heading);
  for (const auto& m : measured) {
    if (m.status != Status::ok) continue;
    rows.push_back({m.estimator, m.target});
    for (const auto* column : columns) rows.back().push_back(text_of(*column, m, epsilon));
  }
  if (rows.size() > 1) print_table(rows, "ll" + std::string(columns.size(), 'r'));
}

}  // namespace

void print_measured(const std::vector<Measurement>& measured, double epsilon) {
  print_table_of(measured, epsilon);
  for (const auto& m : measured)
    if (m.status == Status::ok && !m.reliability_warning.empty())
      put("? {}: {}{}\n", m.estimator,
          std::isinf(m.variance)
              ? ""
              : counted(static_cast<std::size_t>(m.replicates), "replicate") + " do not support their intervals: ",
          m.reliability_warning);
  for (const auto& m : measured)
    if (m.status == Status::ok && m.variance == 0 && std::all_of(m.mean.begin(), m.mean.end(), [](double g) { return g == 0; }))
      put("{}: no signal: every gradient is 0\n", m.estimator);
  for (const auto& m : measured)
    if (m.status == Status::ok && m.estimand != "enumerated") put("{}: true gradient: {}\n", m.estimator, m.estimand);
  for (const auto& m : measured)
    if (m.status != Status::ok)
      put("{} {}: {}\n", m.status == Status::failed ? red("FAILED") : name_of(m.status, measurement::statuses), m.estimator,
          m.reason);
}

}  // namespace hardgrad::cli
