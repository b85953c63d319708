// hardgrad merge: the cells of a sweep become one file.
#include "experiments/storage/merge.hpp"

#include <fmt/format.h>

#include <memory>

#include "core/support/error.hpp"
#include "experiments/cli/common.hpp"
#include "experiments/cli/output.hpp"
#include "experiments/cli/verbs.hpp"
#include "experiments/sweeps/folder.hpp"

namespace hardgrad::cli {
namespace {

struct Options {
  std::string path, out;
  bool partial = false, json = false;
};

int merge_folder(const Options& options) {
  const SweepFolder folder{options.path};
  const auto plan = read_plan(folder);
  require_writable(options.out);
  std::size_t missing = 0, failed = 0, damaged = 0;
  const auto planned = plan.at("cells").size();
  Merger merger({.configuration = plan.at("config"), .plan_hash = plan.at("hash"), .planned = planned});
  for (const auto& cell : plan.at("cells")) {
    const auto hash = cell.at("hash").get<std::string>();
    const auto state = cell_state(folder, hash, false);  // its numbers alone
    if (state == CellState::damaged) {
      ++damaged;
      warn("{}; left out, the next run makes it anew", check_cell(folder.cell(hash), "", hash));
    }
    if (state == CellState::pending || state == CellState::damaged) {
      ++missing;
      continue;
    }
    auto record = read_cell(folder.cell(hash));
    record.plan_hash = plan.at("hash");  // its hash proves that it belongs, whichever plan it was run for
    failed += record.status == CellStatus::failed;
    merger.add(std::move(record));
  }
  if (missing && !options.partial)
    throw Error(damaged ? 3 : 1, fmt::format("{}: {} of {} are not done; run again, or merge with --partial what there is",
                                             options.path, missing, counted(planned, "cell")));
  const auto merged = merger.cells();
  write_merged(options.out, std::move(merger));
  if (options.json)
    print_json({{"out", options.out},
                {"cells", merged},
                {"planned", planned},
                {"missing", missing},
                {"damaged", damaged},
                {"failed", failed}});
  else
    put("{} of {} in {}{}\n", merged, counted(planned, "cell"), options.out, failed ? fmt::format("; {} failed", failed) : "");
  return damaged ? 3 : failed ? 1 : 0;
}

}  // namespace

void add_merge(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* sub = app.add_subcommand("merge", "make one file of a sweep's cells");
  sub->add_option("folder", options->path, "the folder of a sweep")->required();
  sub->add_option("--out", options->out, "the file to write (.h5)")->required();
  sub->add_flag("--partial", options->partial, "merge what there is, though cells are missing");
  sub->add_flag("--json", options->json, "print JSON");
  sub->callback([options, &action] { action = [options] { return merge_folder(*options); }; });
}

}  // namespace hardgrad::cli
