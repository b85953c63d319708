// Converts columns without runs to their record.
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/support/error.hpp"
#include "experiments/storage/results.hpp"

namespace hardgrad::storage {
namespace {

bool only_nan(const std::vector<double>& values, std::size_t first = 0, std::size_t stride = 1) {
  for (std::size_t i = first; i < values.size(); i += stride)
    if (!std::isnan(values[i])) return false;
  return true;
}

/// Look-up of a cell's variables. One that the file lacks, of a program before or after, reads as missing: NaN, or empty.
class Columns {
 public:
  explicit Columns(const Dataset& data) : data_(data) {}
  /// Labels of an axis; none if it is not there.
  template <class L>
  std::vector<L> labels(const std::string& name) const {
    auto* axis = data_.axis(name);
    auto* found = axis ? std::get_if<std::vector<L>>(&axis->labels) : nullptr;
    return found ? *found : std::vector<L>{};
  }
  template <class V>
  V value(const std::string& name, std::size_t i, V missing) const {
    auto* found = data_.values<V>(name);
    return found ? found->at(i) : missing;
  }
  double number(const std::string& name, std::size_t i) const { return value(name, i, measurement::not_a_number); }
  /// True if entries first, first + stride, ... are all NaN: they were then stored as NaN and are not absent.
  bool only_nan(const std::string& name, std::size_t first, std::size_t stride) const {
    auto* found = data_.values<double>(name);
    return found && storage::only_nan(*found, first, stride);
  }
  std::string word(const std::string& name, std::size_t i) const { return value(name, i, std::string()); }

 private:
  const Dataset& data_;
};

measurement::Measurement measurement(const Columns& columns, std::size_t i) {
  measurement::Measurement m;
  m.estimator = columns.word("measured_estimator", i);
  m.reason = columns.word("measurement_reason", i);
  m.why_unreliable = columns.word("measurement_unsupported", i);
  m.status = columns.value("measurement_status", i, std::uint8_t{2}) == 0 ? "ok" : "skipped";
  m.target = columns.word("own_target", i);
  m.known_unbiased = columns.word("known_unbiased", i);
  for (const auto& row : measurement::quantities())
    if (row.measured) m.*row.measured = columns.number(std::string(row.name), i);
  const auto family = [&](const char* variable, const char* axis, std::map<std::string, double>& out) {
    const auto names = columns.labels<std::string>(axis);
    for (std::size_t k = 0; k < names.size(); ++k)
      if (const double value = columns.number(variable, i * names.size() + k);
          !std::isnan(value) || columns.only_nan(variable, k, names.size()))
        out[names[k]] = value;
  };
  family("variance_by_group", "parameter_group", m.variance_by_group);
  family("attention_entropy_by_site", "site", m.entropy_by_site);
  family("bias_against", "target", m.bias_against);
  return m;
}

// Columns for one key of a map each: losses, metrics, intervals.
void take_keyed(const Dataset& data, training::TrainResult& result) {
  for (const auto& variable : data.variables) {
    const auto kind = text(variable.attributes, "family"), key = text(variable.attributes, "key");
    auto* values = std::get_if<std::vector<double>>(&variable.values);
    if (kind.empty() || !values) continue;
    const bool none = only_nan(*values);
    for (std::size_t i = 0; i < result.evaluations.size(); ++i)
      if ((kind == "heldout" || kind == "metric") && (none || !std::isnan(values->at(i))))
        (kind == "heldout" ? result.evaluations[i].losses : result.evaluations[i].metrics)[key] = values->at(i);
    for (std::size_t i = 0; i < result.measurements.size(); ++i)
      if (kind == "interval" && (none || !(std::isnan(values->at(2 * i)) && std::isnan(values->at(2 * i + 1)))))
        result.measurements[i].measurement.intervals[key] = {values->at(2 * i), values->at(2 * i + 1)};
  }
}

}  // namespace

training::TrainResult from_columns(const Dataset& data) {
  const Columns columns(data);
  training::TrainResult result;
  result.seconds = columns.number("total_seconds", 0);
  result.rows = columns.number("total_rows", 0);
  result.attention_values = columns.number("total_attention_values", 0);
  result.ended_by = columns.word("ended_by", 0);
  result.target = columns.word("trained_target", 0);
  if (const auto better = nlohmann::json::parse(columns.word("metrics_better", 0), nullptr, false); better.is_object())
    for (const auto& [name, words] : better.items()) result.metrics[name].higher_is_better = words == "higher";
  for (auto step : columns.labels<std::int64_t>("step")) {
    const auto i = result.log.size();
    result.log.push_back({static_cast<int>(step), columns.number("train_loss", i), columns.number("train_seconds", i),
                          columns.number("gradient_norm", i), columns.number("train_rows", i),
                          columns.number("train_attention_values", i), columns.number("train_cpu_seconds", i)});
  }
  for (auto step : columns.labels<std::int64_t>("evaluation_step"))
    result.evaluations.push_back({static_cast<int>(step), {}, {}});
  for (auto step : columns.labels<std::int64_t>("measurement_step"))
    result.measurements.push_back({static_cast<int>(step), measurement(columns, result.measurements.size())});
  take_keyed(data, result);
  return result;
}

}  // namespace hardgrad::storage
