#include "experiments/training/monitor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/support/error.hpp"
#include "core/support/text.hpp"

namespace hardgrad::training {

const std::vector<std::string> evaluated_losses = [] {
  constexpr std::string_view prefix = "heldout_";
  std::vector<std::string> names;
  for (const auto& row : measurement::quantities())
    if (row.name.starts_with(prefix)) names.emplace_back(row.name.substr(prefix.size()));
  return names;
}();

bool higher_is_better(const tasks::Task& task, const std::string& what, const std::string& where) {
  std::vector<std::string> known{"loss"};
  known.insert(known.end(), evaluated_losses.begin(), evaluated_losses.end());
  if (std::find(known.begin(), known.end(), what) != known.end()) return false;
  for (const auto& metric : task.metrics()) {
    if (metric.name == what) return metric.higher_is_better;
    known.push_back(metric.name);
  }
  throw UsageError(
      fmt::format("{} has no \"{}\"{}; it has: {}", where, what, did_you_mean(what, known), fmt::join(known, ", ")));
}

std::optional<Monitored> monitored(const EvaluationPoint& point, const std::string& what) {
  for (const auto& name : what == "loss" ? evaluated_losses : std::vector<std::string>{what})
    if (const auto it = point.losses.find(name); it != point.losses.end()) return Monitored{it->second, "heldout_" + name};
  if (const auto it = point.metrics.find(what); it != point.metrics.end()) return Monitored{it->second, "metric_" + what};
  return {};
}

std::string nothing_to_monitor(const EvaluationPoint& point, const std::string& what) {
  std::vector<std::string> there;
  for (const auto& [name, value] : point.losses) there.push_back(name);
  for (const auto& [name, value] : point.metrics) there.push_back(name);
  return fmt::format("its evaluation has no {}; it has: {}", what, fmt::join(there, ", "));
}

}  // namespace hardgrad::training
