// Cells: the columns of one run and its labels.
#include "experiments/storage/cell.hpp"

#include <algorithm>

#include "core/support/error.hpp"
#include "experiments/storage/atomic_file.hpp"
#include "experiments/storage/provenance.hpp"
#include "experiments/storage/results.hpp"

namespace hardgrad::storage {
namespace {

constexpr std::size_t largest_mean = 1000;  // parameters whose mean gradient is kept

// Sorted by step; of several points at one step, the last.
template <class Point>
void put_in_order(std::vector<Point>& points) {
  std::map<int, Point> by_step;
  for (auto& point : points) by_step.insert_or_assign(point.step, std::move(point));
  points.clear();
  for (auto& [step, point] : by_step) points.push_back(std::move(point));
}

// Mean gradient and variance of each entry, over measurement_step and parameter.
void add_moments(Dataset& data, const training::TrainResult& result) {
  std::size_t width = 0;
  for (const auto& point : result.measurements) width = std::max(width, point.measurement.mean.size());
  if (width == 0 || width > largest_mean) return;
  const auto add = [&](const char* name, const char* words, std::vector<double> measurement::Measurement::*field) {
    std::vector<double> values(result.measurements.size() * width, measurement::not_a_number);
    for (std::size_t i = 0; i < result.measurements.size(); ++i) {
      const auto& from = result.measurements[i].measurement.*field;
      std::copy_n(from.begin(), std::min(width, from.size()), values.begin() + static_cast<std::ptrdiff_t>(i * width));
    }
    data.variables.push_back({name, {"measurement_step", "parameter"}, std::move(values), described("1", words)});
  };
  data.axes.push_back({"parameter", count_up(width), {{"long_name", "number of the parameter in the model's order"}}});
  add("mean_gradient", "mean of the gradient estimates", &measurement::Measurement::mean);
  add("gradient_variances", "variance of each entry of the gradient", &measurement::Measurement::variances);
}

void take_moments(const Dataset& data, training::TrainResult& result) {
  auto* axis = data.axis("parameter");
  if (!axis) return;
  const auto width = axis->size();
  const auto take = [&](const char* name, std::vector<double> measurement::Measurement::*field) {
    auto* values = data.values<double>(name);
    for (std::size_t i = 0; values && i < result.measurements.size(); ++i) {
      const auto from = values->begin() + static_cast<std::ptrdiff_t>(i * width);
      const auto missing = [](double x) { return x != x; };
      if (!std::all_of(from, from + static_cast<std::ptrdiff_t>(width), missing))
        (result.measurements[i].measurement.*field).assign(from, from + static_cast<std::ptrdiff_t>(width));
    }
  };
  take("mean_gradient", &measurement::Measurement::mean);
  take("gradient_variances", &measurement::Measurement::variances);
}

template <class V>
V scalar(const Dataset& data, const std::string& name, const std::string& path) {
  auto* values = data.values<V>(name);
  if (!values || values->size() != 1) throw InputError(path + ": has no variable " + name);
  return values->front();
}

}  // namespace

std::string to_string(CellStatus status) {
  static const char* names[] = {"ok", "failed", "skipped"};
  return names[static_cast<int>(status)];
}

Archive archive_of(CellRecord record) {
  put_in_order(record.result.log);
  put_in_order(record.result.evaluations);
  put_in_order(record.result.measurements);
  if (record.provenance.empty()) record.provenance = provenance();
  auto data = columns(record);
  add_moments(data, record.result);
  std::vector<std::string> axis_names, axis_values, provenance_names;
  for (const auto& [name, value] : record.axes) {
    axis_names.push_back(name);
    axis_values.push_back(value);
  }
  for (const auto& [name, value] : record.provenance) provenance_names.push_back(name);
  std::vector<std::string> metrics, metric_units;
  std::vector<std::uint8_t> metric_shares;
  for (const auto& [name, declared] : record.result.metrics) {
    metrics.push_back(name);
    metric_units.push_back(declared.unit);
    metric_shares.push_back(declared.share);
  }
  data.attributes = {{"precision", record.precision},
                     {"metrics", metrics},
                     {"metric_units", metric_units},
                     {"metric_shares", metric_shares},
                     {"plan_hash", record.plan_hash},
                     {"identity", record.identity},
                     {"checkpoint_hash", record.checkpoint_hash},
                     {"axis_names", axis_names},
                     {"axis_values", axis_values},
                     {"provenance", provenance_names}};
  add_provenance(data.attributes, record.provenance);
  Archive archive{.kind = "cell"};
  archive.groups.push_back({"", std::move(data)});
  return archive;
}

CellRecord cell_of(const Archive& archive) {
  const auto& path = archive.path;
  const auto& data = archive.group("");
  CellRecord record;
  const auto list = [&](const char* name) {
    auto* found = find(data.attributes, name);
    auto* strings = found ? std::get_if<std::vector<std::string>>(found) : nullptr;
    return strings ? *strings : std::vector<std::string>{};
  };
  const auto names = list("axis_names"), values = list("axis_values");
  if (names.size() != values.size()) throw InputError(path + ": its axes and their values do not match");
  for (std::size_t i = 0; i < names.size(); ++i) record.axes[names[i]] = values[i];
  for (const auto& name : list("provenance")) record.provenance[name] = text(data.attributes, name);
  record.plan_hash = text(data.attributes, "plan_hash");
  record.precision = text(data.attributes, "precision");
  record.identity = text(data.attributes, "identity");
  record.checkpoint_hash = text(data.attributes, "checkpoint_hash");
  record.cell_hash = scalar<std::string>(data, "cell_hash", path);
  for (const auto& [name, text] : {std::pair{"task_settings", &record.task_settings},
                                   {"model_settings", &record.model_settings},
                                   {"estimator_settings", &record.estimator_settings},
                                   {"target_settings", &record.target_settings},
                                   {"run_settings", &record.run_settings},
                                   {"data_hash", &record.data_hash}})
    if (data.values<std::string>(name)) *text = scalar<std::string>(data, name, path);
  const auto status = scalar<std::uint8_t>(data, "status", path);
  if (status > 2) throw InputError(path + ": has an unknown status " + std::to_string(status));
  record.status = static_cast<CellStatus>(status);
  record.reason = scalar<std::string>(data, "reason", path);
  record.log = scalar<std::string>(data, "log", path);
  record.checkpoint = scalar<std::string>(data, "checkpoint", path);
  for (const auto& variable : data.variables)
    if (text(variable.attributes, "family") == "cost")
      record.costs[text(variable.attributes, "key")] = scalar<double>(data, variable.name, path);
  try {
    record.result = from_columns(data);
  } catch (const InputError& error) {
    throw InputError(path + ": " + error.what());
  } catch (const std::out_of_range&) {
    throw InputError(path + ": its variables do not have the shapes of a cell");
  }
  const auto metrics = list("metrics"), units = list("metric_units");
  const auto* shares = find(data.attributes, "metric_shares");
  for (std::size_t i = 0; i < metrics.size() && shares; ++i) {
    auto& declared = record.result.metrics[metrics[i]];
    declared.unit = units.at(i);
    declared.share = std::get<std::vector<std::uint8_t>>(*shares).at(i) != 0;
  }
  take_moments(data, record.result);
  return record;
}

CheckpointFault check_checkpoint(const std::string& folder, const CellSummary& cell) {
  if (cell.checkpoint.empty()) return {};
  const auto file = folder + "/" + cell.checkpoint, whose = " (the checkpoint of cell " + cell.cell_hash + ")";
  try {
    if (read_seal(file).hash != cell.checkpoint_hash) return {file + ": is not the checkpoint of cell " + cell.cell_hash, true};
    return {};
  } catch (const Unreadable& error) {
    return {error.what() + whose, false};
  } catch (const InputError& error) {
    return {error.what() + whose, true};
  }
}

}  // namespace hardgrad::storage
