#include "experiments/cli/measure_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "experiments/cli/manual.hpp"
#include "experiments/cli/output.hpp"
#include "experiments/cli/readable.hpp"
#include "experiments/measurement/summary.hpp"

namespace hardgrad::cli {
namespace {

using measurement::bias_of_rounding;
using measurement::Measurement;

struct Column {
  std::string title;
  std::function<std::string(const Measurement&)> text;
  char side = 'r';
};

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

std::string marked(const Measurement& m, const std::string& text) { return text + (m.why_unreliable.empty() ? "" : " ?"); }

/// `exact`, `sampled`, `off_policy`: whether there are such rows. `exact_beside`: sampled rows with exact values.
std::vector<Column> columns(bool exact, bool sampled, bool exact_beside, bool off_policy, double epsilon) {
  std::vector<Column> all;
  const auto add = [&](const char* title, std::function<std::string(const Measurement&)> text) {
    all.push_back({title, text});
  };
  const auto number = [&](const char* title, double Measurement::*field) {
    add(title, [field](const Measurement& m) { return short_number(m.*field); });
  };
  const auto estimated = [&](const char* title, double Measurement::*field) {
    add(title, [=](const Measurement& m) { return marked(m, short_number(m.*field)); });
  };
  const auto p_value = [&](const char* title, double Measurement::*field) {
    add(title, [=](const Measurement& m) { return is_exact(m) ? "exact" : marked(m, short_number(m.*field)); });
  };
  all.push_back({"ESTIMATOR", [](const Measurement& m) { return m.estimator; }, 'l'});
  all.push_back({"TARGET", [](const Measurement& m) { return m.target; }, 'l'});
  number("|GRADIENT|", &Measurement::estimand_norm);
  const auto bias = [=](bool relative) {
    return [=](const Measurement& m) { return marked(m, bias_text(m, epsilon, relative)); };
  };
  add("BIAS^2", bias(false));
  add("REL.BIAS", bias(true));
  if (exact_beside) add("EXACT", [=](const Measurement& m) { return exact_bias_text(m, epsilon); });
  estimated("VARIANCE", &Measurement::variance);
  if (exact_beside) number("EXACT", &Measurement::exact_variance);
  estimated("SNR", &Measurement::snr);
  estimated("COSINE", &Measurement::cosine);
  if (exact) number("OUTCOMES", &Measurement::outcomes);
  if (sampled) p_value("P(UNBIASED)", &Measurement::bias_p_value_plain);
  if (sampled) p_value("P(CORRECTED)", &Measurement::bias_p_value);
  if (off_policy) number("RATIO SHARE", &Measurement::effective_ratio_share);
  if (off_policy) number("MAX RATIO", &Measurement::largest_ratio);
  number("ROWS", &Measurement::rows);
  add("MS", [](const Measurement& m) { return short_number(1e3 * m.seconds); });
  estimated("VAR x ROWS", &Measurement::work_normalised_variance);
  return all;
}

void print_table_of(const std::vector<Measurement>& measured, double epsilon) {
  const auto any = [&](auto is) { return std::any_of(measured.begin(), measured.end(), is); };
  std::vector<std::vector<std::string>> rows(1);
  std::string sides;
  const auto shown = columns(any([](const auto& m) { return measurement::is_exact(m); }),
                             any([](const auto& m) { return m.status == "ok" && !measurement::is_exact(m); }),
                             any([](const auto& m) { return std::isfinite(m.exact_variance); }),
                             any([](const auto& m) { return std::isfinite(m.largest_ratio); }), epsilon);
  for (const auto& column : shown) {
    rows[0].push_back(column.title);
    sides += column.side;
  }
  for (const auto& m : measured) {
    if (m.status != "ok") continue;
    rows.emplace_back();
    for (const auto& column : shown) rows.back().push_back(column.text(m));
  }
  if (rows.size() > 1) print_table(rows, sides.c_str());
}

}  // namespace

void print_measured(const std::vector<Measurement>& measured, double epsilon) {
  print_table_of(measured, epsilon);
  for (const auto& m : measured)
    if (m.status == "ok" && !m.why_unreliable.empty())
      put("? {}: {}{}\n", m.estimator,
          std::isinf(m.variance)
              ? ""
              : counted(static_cast<std::size_t>(m.replicates), "replicate") + " do not support their intervals: ",
          m.why_unreliable);
  for (const auto& m : measured)
    if (m.status == "ok" && m.variance == 0 && std::all_of(m.mean.begin(), m.mean.end(), [](double g) { return g == 0; }))
      put("{}: no signal: every gradient is 0\n", m.estimator);
  for (const auto& m : measured)
    if (m.status == "ok" && m.estimand != "enumerated") put("{}: true gradient: {}\n", m.estimator, m.estimand);
  for (const auto& m : measured)
    if (m.status != "ok") put("{} {}: {}\n", m.status == "failed" ? red("FAILED") : m.status, m.estimator, m.reason);
}

}  // namespace hardgrad::cli
