// hardgrad plan: shows the work of a sweep without running it.
#include "experiments/sweeps/plan.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <utility>

#include "core/registry/plugins.hpp"
#include "core/support/error.hpp"
#include "experiments/cli/candidates.hpp"
#include "experiments/cli/output.hpp"
#include "experiments/cli/preflight.hpp"
#include "experiments/cli/sweep_command.hpp"
#include "experiments/cli/verb.hpp"
#include "experiments/support/parallel.hpp"
#include "experiments/support/path_kind.hpp"
#include "experiments/support/text.hpp"
#include "experiments/sweeps/estimate.hpp"
#include "experiments/sweeps/folder.hpp"
#include "experiments/sweeps/rerun_explainer.hpp"
#include "experiments/sweeps/tuning.hpp"

namespace hardgrad::cli {
namespace {

// For a folder with another plan.
constexpr const char* way_out =
    "give another --out; or --force, to go on here with this plan: cells that both have, as when seeds are added, are not run "
    "again";

struct PlanArguments {
  SweepOptions sweep;
  std::string why;
  std::size_t tasks = 0;
  bool json = false, explain = false, quick = false, slurm = false, force = false;
};

/// Whether a cell matches the first digits of its hash, or a pattern as for --only.
bool asked_for(const std::string& why, const sweeps::Cell& cell) {
  const bool digits = why.size() >= 4 && why.find_first_not_of("0123456789abcdef") == std::string::npos;
  return why.empty() || (digits && cell.hash.starts_with(why)) || sweeps::filter_keeps({why}, cell);
}

std::string conflict_of(const sweeps::SweepFolder& folder, const sweeps::Plan& plan) {
  if (path_kind<UsageError>(folder.plan()) == PathKind::missing) return {};
  try {
    return sweeps::plan_difference(sweeps::read_plan(folder), plan);
  } catch (const InputError& e) {
    return e.what();
  }
}

SlurmJob slurm_job(const PlanArguments& options, const sweeps::SweepConfig& config,
                   const std::vector<const sweeps::Cell*>& pending, const sweeps::CostEstimate& cost) {
  SlurmJob job{.name = config.name,
               .program = std::filesystem::read_symlink("/proc/self/exe"),
               .where = std::filesystem::current_path(),
               .run = {options.sweep.file},
               .folder = config.out,
               .result = config.name + ".h5",
               .cells = pending.size(),
               .tasks = options.tasks,
               .cores = std::max(1, options.sweep.jobs),
               .core_seconds = cost.core_seconds,
               .longest = cost.longest};
  const auto add = [&](const char* option, const std::string& value) { job.run.insert(job.run.end(), {option, value}); };
  if (!options.sweep.out.empty()) add("--out", options.sweep.out);
  for (const auto& set : options.sweep.sets) add("--set", set);
  for (const auto& only : options.sweep.only) add("--only", only);
  if (options.force) job.run.push_back("--force");
  for (const auto& plugin : loaded_plugins())  // the sweep's file loads its own plugins
    if (std::find(config.plugins.begin(), config.plugins.end(), plugin.path) == config.plugins.end())
      add("--plugin", plugin.path);
  return job;
}

struct Listing {
  std::vector<const sweeps::Cell*> pending;
  std::map<sweeps::CellState, std::size_t> counts;
  std::size_t selected = 0, skips = 0;
  nlohmann::json cells = nlohmann::json::array();
  std::vector<std::vector<std::string>> rows{{"CELL", "", "ROWS", ""}};
};

Listing list_cells(const PlanArguments& options, const sweeps::Plan& plan, const sweeps::SweepFolder& folder,
                   const storage::CellStore& cells, const sweeps::RunOptions& run) {
  Listing list;
  sweeps::RerunExplainer why(plan, folder, cells);
  for (const auto* cell : sweeps::selected_cells(plan, run.only, run.shard, run.shards)) {
    ++list.selected;
    const auto state = sweeps::cell_state(cells, cell->hash);
    const bool done = sweeps::is_done(state, *cell);
    ++list.counts[state];
    list.skips += !cell->skip.empty();
    if (!done && cell->skip.empty()) list.pending.push_back(cell);
    if (!asked_for(options.why, *cell)) continue;
    const auto what = options.explain       ? why(*cell)
                      : !cell->skip.empty() ? "skip: " + cell->skip
                      : done ? state == sweeps::CellState::failed ? "done: it failed and is never chosen" : "done"
                      : state == sweeps::CellState::failed     ? "run again: it failed"
                      : state == sweeps::CellState::damaged    ? "run again: its record is damaged"
                      : state == sweeps::CellState::unreadable ? "run again: its record cannot be read"
                      : state == sweeps::CellState::skipped    ? "run again: it was skipped"
                                                               : "run";
    list.rows.push_back({cell->hash, cell->label(), cell->rows ? fmt::format("{:.6g}", *cell->rows) : "", what});
    list.cells.push_back({{"hash", cell->hash},
                          {"axes", cell->axes},
                          {"state", to_string(state)},
                          {"skip", cell->skip},
                          {"what", what},
                          {"rows", cell->rows ? number(*cell->rows) : nlohmann::json()}});
  }
  const auto to_come = sweeps::selected_cells(plan, run.only, run.shard, run.shards, true).size();
  if (list.selected + to_come == 0) throw UsageError("--only or --shard leaves no cell to run");
  if (list.cells.empty() && (options.explain || !to_come))
    throw UsageError(
        fmt::format("--why {}: there is no such cell; give a hash of `hardgrad plan`, or a pattern such as "
                    "estimator=rloo*",
                    options.why));
  return list;
}

// Table rows for each round of each search.
std::vector<std::vector<std::string>> round_rows(const sweeps::Plan& plan) {
  std::vector<std::vector<std::string>> rows{{"SEARCH", "ROUND", "SETTINGS", "CELLS", "STEPS", ""}};
  const auto seeds = plan.tuning->config->tune->seeds.size();
  for (const auto& search : plan.tuning->searches) {
    for (const auto& round : search.rounds) {
      const auto size = round.settings.empty() ? round.size : round.settings.size();
      rows.push_back({search.label(), fmt::format("{} of {}", round.number, search.rounds.size()), std::to_string(size),
                      std::to_string(size * seeds), std::to_string(round.steps),
                      round.settings.empty() ? "to come: the best of the round before"
                      : round.scores.empty() ? "now"
                                             : "over"});
    }
    rows.push_back({search.label(), "reported", "1", std::to_string(search.wanted.size()),
                    std::to_string(search.wanted.front().settings.train.steps),
                    search.chosen          ? "now"
                    : search.stuck.empty() ? "to come: the best of the last round"
                                           : "skip"});
  }
  return rows;
}

int show_plan(const PlanArguments& options) {
  const auto config = options.sweep.config();
  const auto run = options.sweep.run_options(config);
  if (options.slurm && run.shards > 1) throw UsageError("plan --slurm: it creates the shards itself; remove --shard");
  sweeps::TaskPool tasks;
  auto plan = sweeps::make_plan(config, tasks);
  for (const auto& warning : plan.warnings) warn("{}", warning);
  const sweeps::SweepFolder folder{config.out};
  const storage::CellStore cells(folder.cells());
  if (plan.tuning) grow(plan, sweeps::outcomes_in(cells, config.tune->metric));
  const auto conflict = conflict_of(folder, plan);
  const auto list = list_cells(options, plan, folder, cells, run);
  if (options.slurm && !conflict.empty() && !options.force)
    throw UsageError(fmt::format("plan --slurm: {} holds another plan: {}; {}", config.out, conflict, way_out));
  auto pending = list.pending;
  const auto to_come = sweeps::selected_cells(plan, run.only, run.shard, run.shards, true);
  const auto now = pending.size();
  if (options.slurm && pending.empty() && to_come.empty())
    throw UsageError(fmt::format("plan --slurm: nothing is left to run; next: hardgrad merge {} --out {}",
                                 shell_quoted(config.out), shell_quoted(config.name + ".h5")));
  pending.insert(pending.end(), to_come.begin(), to_come.end());  // their cost is known, although their settings are not
  const int jobs = useful_jobs(run.jobs);
  const auto cost =
      options.quick ? sweeps::CostEstimate{} : sweeps::estimate_cost(plan, pending, tasks, jobs, sweeps::seconds_of_trials);
  const auto count = [&](sweeps::CellState state) { return list.counts.contains(state) ? list.counts.at(state) : 0; };
  if (options.json) {
    nlohmann::json estimate;
    if (!options.quick)
      estimate = {{"seconds", number(cost.seconds)},
                  {"core_seconds", number(cost.core_seconds)},
                  {"bytes", number(cost.bytes)},
                  {"jobs", jobs},
                  {"kinds", cost.kinds},
                  {"tried", cost.tried},
                  {"at_least", cost.at_least}};
    print_json({{"name", plan.name},
                {"hash", plan.hash},
                {"out", config.out},
                {"conflict", conflict},
                {"cells", list.cells},
                {"searches", plan.tuning ? sweeps::tuning_json(plan) : nlohmann::json()},
                {"counts",
                 {{"all", list.selected},
                  {"run", now},
                  {"to_come", to_come.size()},
                  {"skip", list.skips},
                  {"done", count(sweeps::CellState::ok)},
                  {"failed", count(sweeps::CellState::failed)},
                  {"damaged", count(sweeps::CellState::damaged)},
                  {"unreadable", count(sweeps::CellState::unreadable)}}},
                {"estimate", estimate},
                {"slurm",
                 options.slurm ? nlohmann::json(slurm_script(slurm_job(options, config, pending, cost))) : nlohmann::json()}});
    return 0;
  }
  if (options.slurm) {
    put("{}", slurm_script(slurm_job(options, config, pending, cost)));
    return 0;
  }
  print_table(list.rows, "llrl");
  if (plan.tuning) {
    put("\n");
    print_table(round_rows(plan), "llrrrl");
    for (const auto& line : sweeps::tuning_lines(plan, true)) put("{}\n", printable(line));
  }
  put("\n{} of plan {}: {} to run, {} done, {} skipped{}\n", counted(list.selected, "cell"), plan.hash, now,
      count(sweeps::CellState::ok), list.skips,
      to_come.empty() ? "" : fmt::format("; {} more to come during the search", to_come.size()));
  if (!options.quick && !pending.empty())
    put("{} {} with {}, {} on disk{}\n", cost.at_least ? "at least" : "about", sweeps::clock_text(std::ceil(cost.seconds)),
        counted(static_cast<std::size_t>(jobs), "job"), size_text(cost.bytes),
        cost.tried < cost.kinds ? fmt::format(" (tried: {} of {} kinds of cell)", cost.tried, cost.kinds) : "");
  if (!conflict.empty()) put("{} holds another plan: {}; {}\n", printable(config.out), printable(conflict), way_out);
  return 0;
}

}  // namespace

void add_plan(CLI::App& app, Action& action) {
  auto options = std::make_shared<PlanArguments>();
  Verb verb(app, "plan", "list cells, skipped ones with reasons, finished ones, estimated time and disk space");
  options->sweep.add(verb);  // the file is not required, because `--why FILE` may parse it as its value
  const auto why = verb.add("--why", options->why,
                            "why a cell would (not) run: digits of its hash, or a pattern as for --only; without: all")
                       .value_may_lack("[CELL]")
                       .completed_by(axis_patterns);
  verb.flag("--quick", options->quick, "no trials: omit the estimate");
  verb.flag("--slurm", options->slurm, "print an sbatch script (a job array) for the cells to run; --jobs: cores per task");
  verb.flag("--force", options->force, "--slurm: for a folder that holds another plan");
  verb.add("--tasks", options->tasks, "--slurm: tasks of the array; 0: about half an hour per task").from_to(0, 1000);
  verb.flag("--json", options->json, "print JSON");
  verb.does(action, [options, why] {
    options->explain = why.given();
    if (options->sweep.file.empty()) {
      if (path_kind<UsageError>(options->why) != PathKind::file) throw UsageError("plan: sweep is required");
      options->sweep.file = std::exchange(options->why, {});
    }
    if (!options->quick) warn_about_kernel();
    return show_plan(*options);
  });
}

}  // namespace hardgrad::cli
