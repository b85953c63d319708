// hardgrad merge: merges the cells of a sweep into one file. hardgrad export: a result as tables of text.
#include "experiments/storage/result_files.hpp"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "core/support/error.hpp"
#include "experiments/cli/output.hpp"
#include "experiments/cli/preflight.hpp"
#include "experiments/cli/verb.hpp"
#include "experiments/support/text.hpp"
#include "experiments/sweeps/tuning.hpp"

namespace hardgrad::cli {
namespace {

struct MergeArguments {
  std::string path, out;
  bool partial = false, json = false;
};

// Search, round and setting of all started cells; round 0: the reported runs.
using TrialKey = std::tuple<int, int, int>;
TrialKey place_in(const nlohmann::json& cell) {
  return {cell.value("search", 0), cell.value("round", 0), cell.value("setting", 0)};
}

std::set<std::string> tuned_axes(const nlohmann::json& plan) {
  std::set<std::string> names;
  for (const auto& search : plan.value("searches", nlohmann::json::array()))
    for (const auto& setting : search.at("settings"))
      for (const auto& [name, value] : setting.items()) names.insert(name);
  return names;
}

storage::TuningRole role_of(const nlohmann::json& cell, const storage::CellRecord& record, const nlohmann::json& plan,
                            const std::set<TrialKey>& kept) {
  const auto [number, round, setting] = place_in(cell);
  storage::TuningRole role{
      .round = round, .setting = setting, .estimator = {}, .score = measurement::not_a_number, .quantity = {}, .edge = {}};
  role.estimator = record.axes.at("estimator");
  const auto& searches = plan.at("searches");
  if (searches.empty()) return role;
  const auto& search = searches.at(static_cast<std::size_t>(number));
  if (const auto skip = cell.at("skip").get<std::string>(); !skip.empty() && skip != search.at("stuck").get<std::string>())
    return role;  // no search
  role.estimator = search.at("axes").at("estimator").get<std::string>();
  if (round > 0) {
    const bool last = static_cast<std::size_t>(round) == search.at("rounds").size();
    role.kept = kept.contains({number, last ? 0 : round + 1, setting});
    const auto outcome = sweeps::outcome_of(record, plan.at("metric").get<std::string>());
    role.score = outcome.score;
    role.quantity = outcome.quantity;
  } else {
    role.edge = search.at("edge").get<std::string>();
    role.tried = static_cast<int>(search.at("settings").size());
    role.failed = search.at("failed").get<int>();
  }
  return role;
}

constexpr std::size_t most_warnings = 20;

int merge_folder(const MergeArguments& options) {
  const sweeps::SweepFolder folder{options.path};
  const storage::CellStore cells(folder.cells());
  std::size_t planned = 0, missing = 0, failed = 0, damaged = 0, lost_networks = 0;
  const auto report_damage = [&](const std::string& fault) {
    if (++damaged <= most_warnings) warn("{}; omitted, the next run computes it again", fault);
  };
  const auto state_of = [&](const std::string& hash) {
    return sweeps::cell_state(cells, hash, false);
  };  // without its checkpoint
  const auto is_there = [](sweeps::CellState state) {
    return state != sweeps::CellState::pending && state != sweeps::CellState::damaged && state != sweeps::CellState::unreadable;
  };
  for (const auto& fault : cells.damage()) report_damage(fault);
  std::set<TrialKey> kept;  // started
  const auto plan = sweeps::read_plan(folder, [&](const auto&, const nlohmann::json& cell) {
    ++planned;
    if (cell.at("skip") == "" && cell.contains("search")) kept.insert(place_in(cell));
    const auto hash = cell.at("hash").get<std::string>();
    const auto state = state_of(hash);
    if (state == sweeps::CellState::damaged || state == sweeps::CellState::unreadable) report_damage(cells.fault(hash));
    if (!is_there(state)) {
      ++missing;
      return;
    }
    if (const auto [fault, lost] = storage::check_checkpoint(cells.folder(), cells.find(hash)->cell);
        !fault.empty() && ++lost_networks <= most_warnings)
      warn("{}; the cell's numbers are merged{}", fault, lost ? ", the next run trains its network again" : "");
    failed += state == sweeps::CellState::failed && cell.value("round", 0) == 0;
  });
  const auto to_come = plan.value("to_come", std::size_t{0});  // unknown cells are not done
  planned += to_come;
  missing += to_come;
  for (const auto count : {damaged, lost_networks})
    if (count > most_warnings)
      warn("{} more are damaged; hardgrad check {} names them", count - most_warnings, shell_quoted(options.path));
  require_writable(options.out);
  if (missing && !options.partial)
    throw Error(damaged ? 3 : 1, fmt::format("{}: {} of {} are not done; run again, or merge the finished ones with --partial",
                                             options.path, missing, counted(planned, "cell")));
  const auto each = [&](const std::function<void(storage::CellRecord &&)>& f) {
    sweeps::read_plan(folder, [&](const auto&, const nlohmann::json& cell) {
      const auto hash = cell.at("hash").get<std::string>();
      if (!is_there(state_of(hash))) return;
      auto record = cells.read(hash);
      record.plan_hash = plan.at("hash");  // its hash identifies it, even if it was run for another plan
      if (plan.contains("searches")) record.tuning = role_of(cell, record, plan, kept);
      f(std::move(record));
    });
  };
  const auto merged = storage::write_merged(
      options.out, each,
      {.configuration = plan.at("config"), .plan_hash = plan.at("hash"), .tuned = tuned_axes(plan), .planned = planned});
  if (options.json)
    print_json({{"out", options.out},
                {"cells", merged},
                {"planned", planned},
                {"missing", missing},
                {"damaged", damaged},
                {"lost_networks", lost_networks},
                {"failed", failed}});
  else
    put("{} of {} in {}{}\n", merged, counted(planned, "cell"), printable(options.out),
        failed ? fmt::format("; {} failed", failed) : "");
  return damaged || lost_networks ? 3 : failed ? 1 : 0;
}

}  // namespace

void add_merge(CLI::App& app, Action& action) {
  auto options = std::make_shared<MergeArguments>();
  Verb verb(app, "merge", "merge a sweep's cells into one file");
  verb.add("folder", options->path, "the folder of a sweep").required();
  verb.add("--out", options->out, "the file to write (.h5)").required();
  verb.flag("--partial", options->partial, "merge the finished cells even if others are missing");
  verb.flag("--json", options->json, "print JSON");
  verb.does(action, [options] { return merge_folder(*options); });
}

void add_export(CLI::App& app, Action& action) {
  struct Options {
    std::string path, csv;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  Verb verb(app, "export", "write a result as CSV tables");
  verb.add("file", options->path, "a merged result (.h5)").required();
  verb.add("--csv", options->csv, "the output folder, created if needed").required();
  verb.flag("--json", options->json, "print JSON");
  verb.does(action, [options] {
    const auto paths = storage::export_csv(options->path, options->csv);
    if (options->json)
      print_json({{"files", paths}});
    else
      for (const auto& path : paths) put("{}\n", printable(path));
    return 0;
  });
}

}  // namespace hardgrad::cli
