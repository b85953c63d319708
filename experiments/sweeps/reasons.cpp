#include "experiments/sweeps/reasons.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/support/error.hpp"
#include "experiments/storage/cell.hpp"
#include "experiments/sweeps/identity.hpp"

namespace hardgrad::sweeps {
namespace {

// The axes that two versions of a cell share.
std::string core_of(const AxisValues& axes) {
  std::string core;
  for (const char* name : {"task", "model", "estimator", "seed"})
    if (const auto it = axes.find(name); it != axes.end()) core += it->second + "\n";
  return core;
}

}  // namespace

void Reasons::look_for_others() {
  others_.emplace();
  std::set<std::string> ours;
  for (const auto& cell : plan_.cells) ours.insert(cell.hash);
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.cells(), none)) {
    const auto& file = entry.path();
    if (file.extension() != ".h5" || !file.stem().extension().empty() || ours.contains(file.stem().string())) continue;
    try {
      const auto record = storage::read_cell(file.string());
      if (!record.identity.empty()) (*others_)[core_of(record.axes)].push_back({file.string(), record.identity});
    } catch (const InputError&) {  // `check` names the damage
    }
  }
}

std::string Reasons::operator()(const Cell& cell) {
  if (!cell.skip.empty()) return "skip: " + cell.skip;
  const auto path = folder_.cell(cell.hash);
  const auto reason = [&] { return storage::read_cell(path).reason; };
  switch (cell_state(folder_, cell.hash)) {
    case CellState::ok: return fmt::format("done: {} is complete and has this hash", path);
    case CellState::failed:
      return (cell.round ? "done: the trial failed, and is never chosen: " : "run again: it failed: ") + reason();
    case CellState::skipped: return "run again: it was skipped: " + reason();
    case CellState::damaged: return "run again: " + storage::check_cell(path, "", cell.hash);
    case CellState::pending: break;
  }
  if (!others_) look_for_others();
  const auto now = identity(plan_.precision, plan_.seed, cell);
  const Other* nearest = nullptr;
  std::vector<std::string> least;
  if (const auto it = others_->find(core_of(cell.axes)); it != others_->end())
    for (const auto& other : it->second)
      if (auto found = identity_differences(other.identity, now); !nearest || found.size() < least.size()) {
        nearest = &other;
        least = std::move(found);
      }
  if (const auto step = unfinished_step(folder_, cell.hash))
    return fmt::format("run: {} resumes at step {}", folder_.unfinished(cell.hash), *step);
  if (!nearest) return fmt::format("run: there is no {}", path);
  return fmt::format("stale: {} differs: {}", nearest->path, fmt::join(least, ", "));
}

}  // namespace hardgrad::sweeps
