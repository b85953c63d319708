// Columns with one value per run: settings, ending, costs.
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "experiments/storage/column_builder.hpp"
#include "experiments/storage/seed.hpp"

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
  add<std::uint8_t>(b, records, "status", flags_of("status", {"ok", "failed", "skipped"}),
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

}  // namespace

void add_runs(ColumnBuilder& b, const Records& records, const Labels& labels) {
  add_state(b, records);
  add_axes(b, records, labels.axes);
  add_costs(b, records, labels.costs);
}

}  // namespace hardgrad::storage
