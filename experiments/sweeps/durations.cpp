#include "experiments/sweeps/durations.hpp"

#include <fmt/format.h>

namespace hardgrad::sweeps {
namespace {

std::string task_of(const std::string& kind) { return kind.substr(0, kind.find('\n')); }

}  // namespace

std::string kind_of(const AxisValues& axes) {
  std::string kind = axes.at("task") + "\n";
  for (const auto& [name, value] : axes)
    if (name != "seed" && name != "task") kind += fmt::format("{}={}\n", name, value);
  return kind;
}

void Durations::add(const std::string& kind, double seconds, double work) {
  auto& mean = kinds_[kind];
  mean.sum += seconds;
  mean.weight += work;
}

std::optional<double> Durations::seconds(const Left& left) const {
  std::map<std::string, Mean> tasks;
  Mean all;
  for (const auto& [kind, mean] : kinds_)
    for (auto* into : {&tasks[task_of(kind)], &all}) {
      into->sum += mean.value();
      ++into->weight;
    }
  double total = 0, all_work = 0, unknown = 0;
  for (const auto& [kind, work] : left) {
    all_work += work;
    const auto own = kinds_.find(kind);
    const auto task = tasks.find(task_of(kind));
    if (own != kinds_.end())
      total += work * own->second.value();
    else if (task != tasks.end())
      total += work * task->second.value();
    else
      unknown += work;
  }
  if (all_work == 0) return 0;
  if (2 * unknown > all_work || all.weight == 0) return {};
  return total + unknown * all.value();
}

}  // namespace hardgrad::sweeps
