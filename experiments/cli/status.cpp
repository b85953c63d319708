// hardgrad status: the progress of a sweep, during or after a run.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <map>
#include <memory>

#include "experiments/cli/output.hpp"
#include "experiments/cli/verb.hpp"
#include "experiments/support/text.hpp"
#include "experiments/sweeps/folder.hpp"
#include "experiments/sweeps/progress.hpp"

namespace hardgrad::cli {
namespace {

constexpr std::size_t most_lines = 20;  // of each kind: ten thousand damaged cells need no complete list

int show_status(const std::string& path, bool json) {
  const sweeps::SweepFolder folder{path};
  const storage::CellStore cells(folder.cells());
  const auto status = sweeps::sweep_status(folder, cells);
  const auto left = stale_files(folder, cells);
  const auto ok = status.count(sweeps::CellState::ok), trials = status.failed_trials(),
             failed = status.count(sweeps::CellState::failed) - trials, skipped = status.count(sweeps::CellState::skipped);
  const auto damaged = status.count(sweeps::CellState::damaged) + status.damage.size(),
             unreadable = status.count(sweeps::CellState::unreadable), pending = status.count(sweeps::CellState::pending);
  if (json) {
    auto failures = nlohmann::json::array(), lines = nlohmann::json::array();
    for (const auto& cell : status.cells) {
      lines.push_back({{"hash", cell.hash},
                       {"label", cell.label},
                       {"state", cell.running ? "running" : to_string(cell.state)},
                       {"step", cell.step ? nlohmann::json(*cell.step) : nlohmann::json()},
                       {"reason", cell.reason}});
      if (cell.state == sweeps::CellState::failed && !cell.trial)
        failures.push_back({{"hash", cell.hash}, {"label", cell.label}, {"reason", cell.reason}});
    }
    print_json({{"name", status.name},
                {"hash", status.hash},
                {"all", status.cells.size()},
                {"ok", ok},
                {"skipped", skipped},
                {"failed", failed},
                {"failed_trials", trials},
                {"damaged", damaged},
                {"unreadable", unreadable},
                {"pending", pending},
                {"to_come", status.to_come},
                {"running", status.running()},
                {"leftovers", left.size()},
                {"seconds_left", status.seconds_left ? number(*status.seconds_left) : nlohmann::json()},
                {"failures", failures},
                {"cells", lines}});
    return damaged + unreadable ? 3 : failed ? 1 : 0;
  }
  put("{}\n", status.summary());
  if (status.to_come) put("{} more to come during the search for settings\n", counted(status.to_come, "cell"));
  if (pending + failed + damaged + unreadable && status.seconds_left)
    put("about {} of work left on one core\n", sweeps::clock_text(*status.seconds_left));
  if (!left.empty()) put("{}\n", stale_files_text(left));
  std::map<std::string, std::size_t> lines;
  const auto put_cell = [&](const std::string& kind, const std::string& rest) {
    if (++lines[kind] <= most_lines) put("{}{}\n", kind, printable(rest));
  };
  for (const auto& cell : status.cells) {
    if (cell.running) put_cell("at work", ": " + cell.label);
    if (cell.step && !cell.running) put_cell("resumes", fmt::format(" at step {}: {}", *cell.step, cell.label));
    if (cell.state == sweeps::CellState::failed)
      put_cell(cell.trial ? "trial failed" : "failed", ": " + cell.label + ": " + cell.reason);
    if (cell.state == sweeps::CellState::damaged) put_cell("damaged", ": " + cell.label);
    if (cell.state == sweeps::CellState::unreadable) put_cell("unreadable", ": " + cells.fault(cell.hash));
  }
  for (const auto& line : status.damage) put_cell("damaged", ": " + line);
  for (const auto& [kind, count] : lines)
    if (count > most_lines) put("{}: {} more; --json has them all\n", kind, count - most_lines);
  return damaged + unreadable ? 3 : failed ? 1 : 0;
}

}  // namespace

void add_status(CLI::App& app, Action& action) {
  struct Options {
    std::string path;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  Verb verb(app, "status", "show the progress of a sweep");
  verb.add("folder", options->path, "the folder of a sweep").required();
  verb.flag("--json", options->json, "print JSON");
  verb.does(action, [options] { return show_status(options->path, options->json); });
}

}  // namespace hardgrad::cli
