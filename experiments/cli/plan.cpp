// hardgrad plan: what a sweep would do, before it does it.
#include "experiments/sweeps/plan.hpp"

#include <fmt/format.h>

#include <memory>
#include <thread>

#include "core/support/error.hpp"
#include "experiments/cli/common.hpp"
#include "experiments/cli/sweep_options.hpp"
#include "experiments/cli/verbs.hpp"
#include "experiments/sweeps/folder.hpp"

namespace hardgrad::cli {
namespace {

constexpr double seconds_of_trials = 20;

struct Options {
  SweepOptions sweep;
  bool json = false, why = false, quick = false;
};

int show_plan(const Options& options) {
  const auto config = options.sweep.config();
  const auto run = options.sweep.run_options(config);
  TaskPool tasks;
  const auto plan = make_plan(config, tasks);
  for (const auto& warning : plan.warnings) fmt::print(stderr, "hardgrad: warning: {}\n", warning);
  const SweepFolder folder{config.out};
  std::string conflict;
  if (std::filesystem::exists(folder.plan())) {
    try {
      conflict = plan_difference(read_plan(folder), plan);
    } catch (const InputError& e) {
      conflict = e.what();
    }
  }
  std::vector<const Cell*> todo;
  std::map<CellState, std::size_t> counts;
  std::size_t selected = 0, skips = 0;
  auto list = nlohmann::json::array();
  std::vector<std::vector<std::string>> rows{{"CELL", "", ""}};
  for (std::size_t i = 0; i < plan.cells.size(); ++i) {
    const auto& cell = plan.cells[i];
    if (i % run.shards != run.shard - 1 || !filter_keeps(run.only, cell)) continue;
    ++selected;
    const auto state = cell_state(folder, cell.hash);
    const bool done = state == CellState::ok || (state == CellState::skipped && !cell.skip.empty());
    ++counts[state];
    skips += !cell.skip.empty();
    if (!done && cell.skip.empty()) todo.push_back(&cell);
    std::string what = !cell.skip.empty()            ? "skip: " + cell.skip
                       : done                        ? "done"
                       : state == CellState::failed  ? "run again: it failed"
                       : state == CellState::damaged ? "run again: its file is damaged"
                                                     : "run";
    if (options.why && cell.skip.empty())
      what += state == CellState::pending ? fmt::format(": there is no {}", folder.cell(cell.hash))
              : done ? fmt::format(": {} is whole and of this hash", folder.cell(cell.hash))
                     : fmt::format(": {}", check_cell(folder.cell(cell.hash), "", cell.hash));
    rows.push_back({cell.hash, cell.label(), what});
    list.push_back(
        {{"hash", cell.hash}, {"axes", cell.axes}, {"state", to_string(state)}, {"skip", cell.skip}});
  }
  const auto cost = options.quick ? CostEstimate{} : estimate_cost(plan, todo, tasks, seconds_of_trials);
  const int jobs =
      run.jobs > 0 ? run.jobs : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const double parallel = std::max(1.0, std::min<double>(jobs, static_cast<double>(todo.size())));
  if (options.json) {
    nlohmann::json estimate;
    if (!options.quick)
      estimate = {
          {"seconds", number(cost.seconds / parallel)}, {"bytes", number(cost.bytes)}, {"jobs", jobs}};
    print_json({{"name", plan.name},
                {"hash", plan.hash},
                {"out", config.out},
                {"conflict", conflict},
                {"cells", list},
                {"counts",
                 {{"all", selected},
                  {"run", todo.size()},
                  {"skip", skips},
                  {"done", counts[CellState::ok]},
                  {"failed", counts[CellState::failed]},
                  {"damaged", counts[CellState::damaged]}}},
                {"estimate", estimate}});
    return 0;
  }
  print_table(rows, "");
  fmt::print("\n{} of plan {}: {} to run, {} done, {} skipped\n", counted(selected, "cell"), plan.hash,
             todo.size(), counts[CellState::ok], skips);
  if (!options.quick && !todo.empty())
    fmt::print("about {} with {}, {} on disk\n", clock_text(cost.seconds / parallel),
               counted(static_cast<std::size_t>(jobs), "job"), size_text(cost.bytes));
  if (!conflict.empty())
    fmt::print("{} holds another plan: {}; `run` will ask for another --out, or --force\n", config.out,
               conflict);
  return 0;
}

}  // namespace

void add_plan(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* sub = app.add_subcommand("plan", "cells, skips with reasons, what is done, estimated time and disk");
  options->sweep.add(*sub);
  sub->add_flag("--why", options->why, "tell of each cell why it would (not) be run");
  sub->add_flag("--quick", options->quick, "no trials: leave out the estimate");
  sub->add_flag("--json", options->json, "print JSON");
  sub->callback([options, &action] { action = [options] { return show_plan(*options); }; });
}

}  // namespace hardgrad::cli
