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

// {"accuracy":"higher"}
std::string directions_text(const std::map<std::string, bool>& higher_is_better) {
  auto out = nlohmann::json::object();
  for (const auto& [name, higher] : higher_is_better) out[name] = higher ? "higher" : "lower";
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void add_state(ColumnBuilder& b, const Records& records) {
  const auto strings = [&](const char* name, const char* words, auto&& get) {
    add<std::string>(b, records, name, {{"long_name", words}}, get);
  };
  strings("task_settings", "every parameter of the task, defaults included, as JSON", [](auto& r) { return r.task_settings; });
  strings("model_settings", "every parameter of the model, defaults included, as JSON",
          [](auto& r) { return r.model_settings; });
  strings("estimator_settings", "every parameter of the estimator, defaults included, as JSON",
          [](auto& r) { return r.estimator_settings; });
  strings("target_settings", "every parameter of the estimator's target, defaults included, as JSON",
          [](auto& r) { return r.target_settings; });
  strings("data_hash", "hash of the contents of the task's files; empty for generated data",
          [](auto& r) { return r.data_hash; });
  strings("run_settings", "every setting of training and measurement, defaults included, as JSON",
          [](auto& r) { return r.run_settings; });
  strings("cell_hash", "hash of the cell", [](auto& r) { return r.cell_hash; });
  add<std::uint8_t>(b, records, "status", flags("how the run ended", {"ok", "failed", "skipped"}),
                    [](auto& r) { return static_cast<std::uint8_t>(r.status); });
  strings("reason", "why the run failed or was skipped", [](auto& r) { return r.reason; });
  strings("log", "printed output of the run", [](auto& r) { return r.log; });
  strings("ended_by", "what ended the training: steps, rows, attention_values, cpu_seconds, target_loss, patience",
          [](auto& r) { return r.result.ended_by; });
  strings("trained_target", "target of the estimator that trains", [](auto& r) { return r.result.target; });
  strings("metrics_better", "whether higher or lower values of each metric of the task are better, as JSON",
          [](auto& r) { return directions_text(r.result.higher_is_better); });
  strings("checkpoint", "file of the final parameters, relative to the cells' folder", [](auto& r) { return r.checkpoint; });
}

void add_axes(ColumnBuilder& b, const Records& records, std::set<std::string> names) {
  if (names.erase("seed")) {
    add<std::int64_t>(
        b, records, "seed",
        {{"long_name", "root seed; from 2^63 on it wraps to negative numbers: seed_hex is exact"}, {"grid_axis", "seed"}},
        [](auto& r) {
          auto it = r.axes.find("seed");
          return it == r.axes.end() ? -1 : static_cast<std::int64_t>(parse_seed(it->second));
        });
    add<std::string>(b, records, "seed_hex", {{"long_name", "root seed, hexadecimal"}}, [](auto& r) {
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
  const auto numbers = [&](const std::string& name, Attributes attributes, auto&& get) {
    add<double>(b, records, name, std::move(attributes), get);
  };
  numbers("total_seconds", described("s", "wall time of the training"), [](auto& r) { return r.result.seconds; });
  numbers("total_rows", described("1", "model rows of all training gradients"), [](auto& r) { return r.result.rows; });
  numbers("total_attention_values", described("1", "attention values of all training gradients"),
          [](auto& r) { return r.result.attention_values; });
  for (const auto& name : names) {
    const char* units = name.ends_with("seconds") ? "s" : name.ends_with("bytes") ? "bytes" : "1";
    numbers("cost_" + safe_name(name), keyed(described(units, "cost: " + name), "cost", name), [&](auto& r) {
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
