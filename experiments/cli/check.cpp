// hardgrad check: verifies that a sweep's folder, or a file, is complete.
#include "experiments/storage/result_files.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <memory>

#include "core/support/error.hpp"
#include "experiments/cli/output.hpp"
#include "experiments/cli/verb.hpp"
#include "experiments/storage/cell.hpp"
#include "experiments/support/path_kind.hpp"
#include "experiments/support/text.hpp"
#include "experiments/sweeps/cell_leases.hpp"
#include "experiments/sweeps/folder.hpp"

namespace hardgrad::cli {
namespace {

int check(const std::string& path, bool json) {
  std::vector<std::string> problems;
  std::vector<storage::StaleTempFile> left;
  std::size_t looked = 0, stored = 0, missing = 0, failed = 0;
  const auto kind = path_kind(path);
  if (kind == PathKind::missing) throw InputError(path + ": there is no such file or folder");
  if (kind == PathKind::folder) {
    const sweeps::SweepFolder folder{path};
    storage::CellStore cells(folder.cells());
    left = stale_files(folder, cells);
    looked = cells.files();
    const auto plan = sweeps::read_plan(folder, [&](const auto&, const nlohmann::json& cell) {
      const auto hash = cell.at("hash").get<std::string>();
      if (const auto way = folder.partial(hash); path_kind(way) != PathKind::missing) {
        ++looked;
        for (auto& problem : storage::check_file(way))
          if (path_kind(way) != PathKind::missing) problems.push_back(problem + "; the cell starts again");
      }
      const auto entry = cells.find(hash);
      if (!entry) {
        ++missing;
        return;
      }
      ++stored;
      if (!cells.fault(hash).empty()) {  // a run that goes on may be replacing it
        cells.refresh();
        if (auto fault = cells.fault(hash); !fault.empty() && !sweeps::valid_leases(folder.cells()).contains(hash)) {
          problems.push_back(std::move(fault));
          return;
        }
      }
      failed += entry->cell.status == storage::CellStatus::failed && cell.value("round", 0) == 0;
    });
    cells.refresh();
    for (auto& damage : cells.damage()) problems.push_back(std::move(damage));
    missing += plan.value("to_come", std::size_t{0});
  } else {
    ++looked;
    problems = storage::check_file(path);
  }
  if (json) {
    print_json({{"path", path},
                {"ok", problems.empty()},
                {"files", looked},
                {"cells", stored},
                {"missing", missing},
                {"failed", failed},
                {"leftovers", left.size()},
                {"problems", problems}});
  } else {
    for (const auto& problem : problems) put("{}\n", printable(problem));
    if (!left.empty()) put("{}\n", stale_files_text(left));
    put("{}: {}{} checked, {}{}{}\n", printable(path), kind == PathKind::folder ? counted(stored, "cell") + " in " : "",
        counted(looked, "file"), problems.empty() ? "all complete" : counted(problems.size(), "problem"),
        missing ? fmt::format(", {} not run yet", counted(missing, "cell")) : "",
        failed ? fmt::format(", {} failed", counted(failed, "cell")) : "");
  }
  return !problems.empty() ? 3 : failed ? 1 : 0;
}

}  // namespace

void add_check(CLI::App& app, Action& action) {
  struct Options {
    std::string path;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  Verb verb(app, "check", "verify a sweep's folder or a file, and report faults");
  verb.add("path", options->path, "a sweep's folder, or a .h5 or .cells file").required();
  verb.flag("--json", options->json, "print JSON");
  verb.does(action, [options] { return check(options->path, options->json); });
}

}  // namespace hardgrad::cli
