// The columns of results: one value per run (settings, ending, costs), and logged, evaluated and measured values over steps.
#include "experiments/storage/results.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/support/error.hpp"
#include "experiments/storage/dataset.hpp"
#include "experiments/support/text.hpp"

namespace hardgrad::storage {
namespace {

template <class V, class Get>
void add(ColumnBuilder& b, const Records& records, const std::string& name, Attributes attributes, Get get) {
  auto& out = *b.column(name, {}, V{}, std::move(attributes));
  for (std::size_t r = 0; r < records.size(); ++r) out[r] = get(records[r]);
}
template <class V, class Get>
void add(ColumnBuilder& b, const Records& records, const std::string& name, Get get) {
  add<V>(b, records, name, facts(name), get);
}

// {"accuracy":"higher"}
std::string directions_text(const std::map<std::string, training::MetricFacts>& metrics) {
  auto out = nlohmann::json::object();
  for (const auto& [name, declared] : metrics) out[name] = declared.higher_is_better ? "higher" : "lower";
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void add_state(ColumnBuilder& b, const Records& records) {
  const auto strings = [&](const char* name, auto&& get) { add<std::string>(b, records, name, get); };
  strings("task_settings", [](auto& r) { return r.task_settings; });
  strings("model_settings", [](auto& r) { return r.model_settings; });
  strings("estimator_settings", [](auto& r) { return r.estimator_settings; });
  strings("target_settings", [](auto& r) { return r.target_settings; });
  strings("data_hash", [](auto& r) { return r.data_hash; });
  strings("run_settings", [](auto& r) { return r.run_settings; });
  strings("cell_hash", [](auto& r) { return r.cell_hash; });
  add<std::uint8_t>(b, records, "status", flags_of("status", names_of(measurement::statuses)),
                    [](auto& r) { return static_cast<std::uint8_t>(r.status); });
  strings("reason", [](auto& r) { return r.reason; });
  strings("log", [](auto& r) { return r.log; });
  strings("ended_by", [](auto& r) { return r.result.ended_by; });
  strings("trained_target", [](auto& r) { return r.result.target; });
  strings("metrics_better", [](auto& r) { return directions_text(r.result.metrics); });
  strings("checkpoint", [](auto& r) { return r.checkpoint; });
}

void add_axes(ColumnBuilder& b, const Records& records, std::set<std::string> names) {
  if (names.erase("seed")) {
    auto of_seed = facts("seed");
    of_seed.emplace_back("grid_axis", "seed");
    add<std::int64_t>(b, records, "seed", std::move(of_seed), [](auto& r) {
      auto it = r.axes.find("seed");
      return it == r.axes.end() ? -1 : static_cast<std::int64_t>(parse_seed(it->second));
    });
    add<std::string>(b, records, "seed_hex", [](auto& r) {
      auto it = r.axes.find("seed");
      return it == r.axes.end() ? std::string() : hex_seed(parse_seed(it->second));
    });
  }
  for (const auto& name : names) {
    auto column = safe_name(name);
    static const std::set<std::string> mine = {
        "run",      "step", "evaluation_step", "measurement_step", "parameter_group", "target", "bound",
        "variance", "rows", "seconds"};
    if (b.taken(column) || mine.count(column)) column.insert(0, "axis_");
    add<std::string>(b, records, column, {{"long_name", "axis " + name + " of the grid"}, {"grid_axis", name}}, [&](auto& r) {
      auto it = r.axes.find(name);
      return it == r.axes.end() ? std::string() : it->second;
    });
  }
}

void add_costs(ColumnBuilder& b, const Records& records, const std::set<std::string>& names) {
  add<double>(b, records, "total_seconds", [](auto& r) { return r.result.seconds; });
  add<double>(b, records, "total_rows", [](auto& r) { return r.result.rows; });
  add<double>(b, records, "total_attention_values", [](auto& r) { return r.result.attention_values; });
  for (const auto& name : names) {
    const auto variable = "cost_" + safe_name(name);
    auto attributes = keyed(facts(variable, name), "cost", name);
    attributes.front().second = name.ends_with("seconds") ? "s" : name.ends_with("bytes") ? "bytes" : "1";
    add<double>(b, records, variable, std::move(attributes), [&](auto& r) {
      auto it = r.costs.find(name);
      return it == r.costs.end() ? measurement::not_a_number : it->second;
    });
  }
}

// One value per run: labels, costs.
void add_runs(ColumnBuilder& b, const Records& records, const Labels& labels) {
  add_state(b, records);
  add_axes(b, records, labels.axes);
  add_costs(b, records, labels.costs);
}

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

// The logged, evaluated and measured values, over the steps.
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
  each([&](std::size_t i, const measurement::Measurement& m) { status[i] = m.status != measurement::Status::ok; });
  strings("measurement_reason", [](auto& m) { return m.reason; });
  strings("measurement_unsupported", [](auto& m) { return m.reliability_warning; });
  strings("measured_estimator", [](auto& m) { return m.estimator; });
  strings("own_target", [](auto& m) { return m.target; });
  strings("known_unbiased", [](auto& m) { return m.known_unbiased ? "yes" : "no"; });
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

}  // namespace

Attributes facts(const std::string& variable, const std::string& name) {
  const auto* row = measurement::find_quantity(variable);
  if (!row) throw Bug("the table of quantities has no row for " + variable);
  Attributes all;
  measurement::each_fact(*row, [&](const char* fact, const auto& value) {
    all.emplace_back(fact,
                     std::string_view(fact) == "long_name" ? Attribute(std::string(row->meaning) + name) : Attribute(value));
  });
  if (constexpr std::string_view loss = "heldout_"; row->name.starts_with(loss))  // their rows are in the order of preference
    all.emplace_back("preference",
                     1 + std::count_if(std::begin(measurement::quantities()), std::end(measurement::quantities()),
                                       [&](const auto& other) { return other.name.starts_with(loss) && &other < row; }));
  return all;
}

void Labels::add(const CellRecord& record) {
  const auto names = [](const auto& map, std::set<std::string>& of) {
    for (const auto& [name, value] : map) of.insert(name);
  };
  names(record.axes, axes);
  names(record.costs, costs);
  for (const auto& point : record.result.log) steps.insert(point.step);
  for (const auto& point : record.result.evaluations) {
    evaluations.insert(point.step);
    names(point.losses, losses);
    names(point.metrics, metrics);
    for (const auto& [name, declared] : record.result.metrics) {
      auto& known = facts[name];
      if (point.metrics.contains(name) && std::find(known.begin(), known.end(), declared) == known.end())
        known.push_back(declared);
    }
  }
  for (const auto& point : record.result.measurements) {
    measurements.insert(point.step);
    names(point.measurement.variance_by_group, groups);
    names(point.measurement.entropy_by_site, sites);
    names(point.measurement.bias_against, targets);
    names(point.measurement.intervals, intervals);
  }
}

Dataset columns(const std::vector<CellRecord>& records, const Labels& labels, std::size_t first) {
  ColumnBuilder b(records.size(), first);
  b.axis("step", labels.steps, "training step");
  b.axis("evaluation_step", labels.evaluations, "training steps done before the evaluation");
  b.axis("measurement_step", labels.measurements, "training steps done before the measurement");
  b.axis("parameter_group", labels.groups, "group of parameters");
  b.axis("site", labels.sites, "site of the model's choices");
  b.axis("target", labels.targets, "objective whose gradient is the truth");
  if (!labels.intervals.empty()) b.axis("bound", std::vector<std::string>{"low", "high"}, "end of an interval");
  add_runs(b, records, labels);
  add_training(b, records);
  add_evaluations(b, records, labels);
  add_measurements(b, records, labels);
  return b.take();
}

}  // namespace hardgrad::storage
