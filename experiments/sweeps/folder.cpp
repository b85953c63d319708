#include "experiments/sweeps/folder.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "core/support/error.hpp"
#include "experiments/storage/atomic_file.hpp"
#include "experiments/storage/cell.hpp"
#include "experiments/sweeps/journal.hpp"

namespace hardgrad {

std::string to_string(CellState state) {
  switch (state) {
    case CellState::pending:
      return "pending";
    case CellState::ok:
      return "ok";
    case CellState::failed:
      return "failed";
    case CellState::skipped:
      return "skipped";
    case CellState::damaged:
      return "damaged";
  }
  throw Bug("unknown cell state");
}

CellState cell_state(const SweepFolder& folder, const std::string& hash) {
  const auto path = folder.cell(hash);
  if (!std::filesystem::exists(path)) return CellState::pending;
  try {
    const auto summary = peek_cell(path);
    if (summary.cell_hash != hash) return CellState::damaged;
    return summary.status == CellStatus::ok       ? CellState::ok
           : summary.status == CellStatus::failed ? CellState::failed
                                                  : CellState::skipped;
  } catch (const InputError&) {
    return CellState::damaged;
  }
}

nlohmann::json read_plan(const SweepFolder& folder) {
  if (!std::filesystem::exists(folder.plan()))
    throw InputError(fmt::format("{}: not the folder of a sweep: it has no plan.json", folder.path));
  auto plan = nlohmann::json::parse(read_file(folder.plan()), nullptr, false);
  const auto text = [](const nlohmann::json& object, const char* key) {
    return object.contains(key) && object.at(key).is_string();
  };
  bool good = plan.is_object() && text(plan, "hash") && text(plan, "name") && text(plan, "config") &&
              plan.contains("cells") && plan.at("cells").is_array();
  if (good)
    for (const auto& cell : plan.at("cells"))
      good = good && cell.is_object() && text(cell, "hash") && text(cell, "skip") && cell.contains("axes") &&
             cell.at("axes").is_object() && text(cell.at("axes"), "task") && text(cell.at("axes"), "model") &&
             text(cell.at("axes"), "estimator") && text(cell.at("axes"), "seed");
  if (!good)
    throw InputError(fmt::format(
        "{}: damaged; `hardgrad run --force` writes it anew, finished cells are kept", folder.plan()));
  return plan;
}

std::size_t SweepStatus::count(CellState state) const {
  return std::count_if(cells.begin(), cells.end(), [&](const auto& cell) { return cell.state == state; });
}
std::size_t SweepStatus::running() const {
  return std::count_if(cells.begin(), cells.end(), [](const auto& cell) { return cell.running; });
}

SweepStatus sweep_status(const SweepFolder& folder) {
  const auto plan = read_plan(folder);
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  std::map<std::string, std::string> reasons;
  std::map<std::string, std::set<long long>> started;  // cell -> processes at work on it
  double seconds = 0;
  std::size_t timed = 0;
  for (const auto& event : Journal::read(folder.journal())) {
    try {
      const auto kind = event.value("event", "");
      const auto cell = event.value("cell", "");
      if (kind == "start" && event.value("host", "") == host) started[cell].insert(event.value("pid", 0LL));
      if (kind != "end" && kind != "interrupted") continue;
      started.erase(cell);
      reasons[cell] = event.value("reason", "");
      if (event.value("status", "") != "ok") continue;
      seconds += event.value("seconds", 0.0);
      ++timed;
    } catch (const nlohmann::json::exception&) {  // a line of another shape says nothing
    }
  }
  SweepStatus status{plan.at("name"), plan.at("hash"), {}, timed ? seconds / timed : 0};
  for (const auto& cell : plan.at("cells")) {
    CellStatusLine line;
    line.hash = cell.at("hash");
    Cell named;
    for (const auto& [name, value] : cell.at("axes").items())
      named.axes[name] = value.is_string() ? value.get<std::string>() : value.dump();
    line.label = named.label();
    line.state = cell_state(folder, line.hash);
    line.reason = line.state == CellState::failed ? reasons[line.hash] : cell.at("skip").get<std::string>();
    if (line.state != CellState::ok && line.state != CellState::skipped)
      for (const auto pid : started[line.hash])
        line.running |= pid > 0 && (kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM);
    status.cells.push_back(std::move(line));
  }
  return status;
}

}  // namespace hardgrad
