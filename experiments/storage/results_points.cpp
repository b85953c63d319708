// Columns over steps: logged, evaluated and measured values.
#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "experiments/storage/column_builder.hpp"

namespace hardgrad::storage {
namespace {

// The facts that the tasks declare of a metric; one on which they differ is left out.
Attributes declared(const Labels& labels, const std::string& metric) {
  auto all = facts("metric_" + metric, metric);
  const auto it = labels.facts.find(metric);
  if (it == labels.facts.end() || it->second.empty()) return all;
  const auto& first = it->second.front();
  const auto same = [&](auto fact) {
    return std::all_of(it->second.begin(), it->second.end(), [&](const auto& other) { return other.*fact == first.*fact; });
  };
  using Facts = training::MetricFacts;
  if (same(&Facts::unit)) all.front().second = first.unit;
  if (same(&Facts::higher_is_better)) all.emplace_back("better", first.higher_is_better ? "higher" : "lower");
  if (same(&Facts::share) && first.share) all.emplace_back("share", std::int64_t{1});
  return all;
}

}  // namespace

void add_training(ColumnBuilder& b, const Records& records) {
  const std::size_t n = b.length("step");
  for (const auto& row : measurement::quantities()) {
    if (!row.logged) continue;
    auto* out = b.column(std::string(row.name), {"step"}, measurement::not_a_number);
    if (!out) return;
    for (std::size_t r = 0; r < records.size(); ++r)
      for (const auto& point : records[r].result.log)
        (*out)[r * n + b.place<std::int64_t>("step", point.step)] = point.*row.logged;
  }
}

void add_evaluations(ColumnBuilder& b, const Records& records, const Labels& labels) {
  const std::size_t n = b.length("evaluation_step");
  const auto family = [&](const std::string& prefix, const std::set<std::string>& names, auto&& facts_of,
                          std::map<std::string, double> training::EvaluationPoint::*field) {
    for (const auto& name : names) {
      auto* out = b.column(prefix + "_" + safe_name(name), {"evaluation_step"}, measurement::not_a_number,
                           keyed(facts_of(name), prefix, name));
      for (std::size_t r = 0; r < records.size(); ++r)
        for (const auto& point : records[r].result.evaluations)
          if (auto it = (point.*field).find(name); it != (point.*field).end())
            (*out)[r * n + b.place<std::int64_t>("evaluation_step", point.step)] = it->second;
    }
  };
  const auto of_loss = [](const std::string& name) { return facts("heldout_" + name, name); };
  family("heldout", labels.losses, of_loss, &training::EvaluationPoint::losses);
  family(
      "metric", labels.metrics, [&](const auto& name) { return declared(labels, name); }, &training::EvaluationPoint::metrics);
  if (auto* out = b.column("evaluated", {"evaluation_step"}, std::uint8_t{}, flags_of("evaluated", {"no", "yes"})))
    for (std::size_t r = 0; r < records.size(); ++r)
      for (const auto& point : records[r].result.evaluations)
        (*out)[r * n + b.place<std::int64_t>("evaluation_step", point.step)] = 1;
}

void add_measurements(ColumnBuilder& b, const Records& records, const Labels& labels) {
  const std::size_t n = b.length("measurement_step");
  if (n == 0) return;
  // Calls f(flat index, measurement) for every measurement.
  const auto each = [&](const std::function<void(std::size_t, const measurement::Measurement&)>& f) {
    for (std::size_t r = 0; r < records.size(); ++r)
      for (const auto& point : records[r].result.measurements)
        f(r * n + b.place<std::int64_t>("measurement_step", point.step), point.measurement);
  };
  const auto strings = [&](const char* name, auto&& get) {
    auto& out = *b.column(name, {"measurement_step"}, std::string());
    each([&](std::size_t i, const measurement::Measurement& m) { out[i] = get(m); });
  };
  auto& status = *b.column("measurement_status", {"measurement_step"}, std::uint8_t{2},
                           flags_of("measurement_status", {"ok", "skipped", "absent"}));
  each([&](std::size_t i, const measurement::Measurement& m) { status[i] = m.status == "ok" ? 0 : 1; });
  strings("measurement_reason", [](auto& m) { return m.reason; });
  strings("measurement_unsupported", [](auto& m) { return m.why_unreliable; });
  strings("measured_estimator", [](auto& m) { return m.estimator; });
  strings("own_target", [](auto& m) { return m.target; });
  strings("known_unbiased", [](auto& m) { return m.known_unbiased; });
  for (const auto& name : labels.intervals) {
    const auto variable = safe_name(name) + "_interval";
    auto& out = *b.column(variable, {"measurement_step", "bound"}, measurement::not_a_number,
                          keyed(facts(variable, name), "interval", name));
    each([&](std::size_t i, const measurement::Measurement& m) {
      if (auto it = m.intervals.find(name); it != m.intervals.end())
        std::copy(it->second.begin(), it->second.end(), out.begin() + static_cast<std::ptrdiff_t>(2 * i));
    });
  }
  for (const auto& row : measurement::quantities()) {
    const std::string name(row.name);
    if (row.measured) {
      auto& out = *b.column(name, {"measurement_step"}, measurement::not_a_number);
      each([&](std::size_t i, const measurement::Measurement& m) { out[i] = m.*row.measured; });
    }
    if (!row.measured_by) continue;
    const std::string axis = row.label;
    if (auto* out = b.column(name, {"measurement_step", axis}, measurement::not_a_number))
      each([&](std::size_t i, const measurement::Measurement& m) {
        for (const auto& [label, value] : m.*row.measured_by)
          (*out)[i * b.length(axis) + b.place<std::string>(axis, label)] = value;
      });
  }
}

}  // namespace hardgrad::storage
