#include "experiments/sweeps/rerun_explainer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "core/support/error.hpp"

namespace hardgrad::sweeps {
namespace {

std::map<std::string, std::string> lines_of(const std::string& identity) {
  std::map<std::string, std::string> lines;
  std::istringstream in(identity);
  for (std::string line; std::getline(in, line);)
    if (const auto equals = line.find('='); equals != std::string::npos)
      lines[line.substr(0, equals)] = line.substr(equals + 1);
  return lines;
}

}  // namespace

std::vector<std::string> identity_differences(const std::string& before, const std::string& now) {
  const auto old_lines = lines_of(before), new_lines = lines_of(now);
  std::set<std::string> names;
  for (const auto* lines : {&old_lines, &new_lines})
    for (const auto& [name, value] : *lines) names.insert(name);
  std::vector<std::string> found;
  for (const auto& name : names) {
    const auto was = old_lines.find(name), is = new_lines.find(name);
    if (was != old_lines.end() && is != new_lines.end() && was->second == is->second) continue;
    if (name == "data")
      found.push_back("the contents of the task's files have changed");
    else if (name.starts_with("plugin."))
      found.push_back(fmt::format("the {}'s plugin is another build", name.substr(7)));
    else
      found.push_back(fmt::format("{} {} -> {}", name == "root" ? "seed" : name,
                                  was == old_lines.end() ? "(none)" : was->second,
                                  is == new_lines.end() ? "(none)" : is->second));
  }
  return found;
}

std::string identity_difference(const std::string& before, const std::string& now) {
  return fmt::format("{}", fmt::join(identity_differences(before, now), ", "));
}

namespace {

// The axes that two versions of a cell share.
std::string core_of(const AxisValues& axes) {
  std::string core;
  for (const char* name : {"task", "model", "estimator", "seed"})
    if (const auto it = axes.find(name); it != axes.end()) core += it->second + "\n";
  return core;
}

}  // namespace

void RerunExplainer::look_for_others() {
  others_.emplace();
  std::set<std::string> ours;
  for (const auto& cell : plan_.cells) ours.insert(cell.hash);
  for (const auto& hash : cells_.hashes()) {
    if (ours.contains(hash)) continue;
    try {
      const auto record = cells_.read(hash);
      if (!record.identity.empty()) (*others_)[core_of(record.axes)].push_back({hash, record.identity});
    } catch (const InputError&) {  // `check` names the damage
    }
  }
}

std::string RerunExplainer::operator()(const Cell& cell) {
  if (!cell.skip.empty()) return "skip: " + cell.skip;
  const auto reason = [&] { return cells_.read(cell.hash).reason; };
  switch (cell_state(cells_, cell.hash)) {
    case CellState::ok: return fmt::format("done: its record is complete, in {}", cells_.find(cell.hash)->path);
    case CellState::failed:
      return (cell.round ? "done: the trial failed, and is never chosen: " : "run again: it failed: ") + reason();
    case CellState::skipped: return "run again: it was skipped: " + reason();
    case CellState::damaged:
    case CellState::unreadable: return "run again: " + cells_.fault(cell.hash);
    case CellState::pending: break;
  }
  if (!others_) look_for_others();
  const auto now = identity(plan_.precision, plan_.seed, cell);
  const Other* nearest = nullptr;
  std::vector<std::string> least;
  if (const auto it = others_->find(core_of(cell.axes)); it != others_->end())
    for (const auto& other : it->second)
      if (auto differences = identity_differences(other.identity, now); !nearest || differences.size() < least.size()) {
        nearest = &other;
        least = std::move(differences);
      }
  if (const auto step = partial_step(folder_, cell.hash))
    return fmt::format("run: {} resumes at step {}", folder_.partial(cell.hash), *step);
  if (!nearest) return fmt::format("run: no record of it is in {}", folder_.cells());
  return fmt::format("stale: cell {} differs: {}", nearest->hash, fmt::join(least, ", "));
}

}  // namespace hardgrad::sweeps
