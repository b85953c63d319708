// The columns of results: which numbers of a measurement, and over which axes.
#include "experiments/storage/results.hpp"

#include <algorithm>

#include "core/support/error.hpp"
#include "experiments/storage/column_builder.hpp"

namespace hardgrad::storage {

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
