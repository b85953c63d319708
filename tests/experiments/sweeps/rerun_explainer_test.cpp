// The reasons to run a cell: its differences from the existing file.
#include "experiments/sweeps/rerun_explainer.hpp"

#include <doctest/doctest.h>

#include <filesystem>

#include "experiments/sweeps/run.hpp"
#include "tests/experiments/sweeps/files.hpp"

namespace hardgrad::testing::reasons_test {
using namespace measurement;
using namespace storage;
using namespace sweeps;
using namespace tasks;
using namespace training;

TEST_CASE("differences of identities") {
  CHECK(identity_difference("a=1\nb=2\n", "a=1\nb=2\n").empty());
  CHECK(identity_difference("a=1\nb=2\nroot=0\n", "a=1\nb=3\nroot=7\n") == "b 2 -> 3, seed 0 -> 7");
  CHECK(identity_difference("a=1\n", "a=1\ntrain.steps=5\n") == "train.steps (none) -> 5");
  CHECK(identity_difference("plugin.estimator=aa\n", "plugin.estimator=bb\n") == "the estimator's plugin is another build");
}

TEST_CASE("done, skipped, stale, damaged, missing") {
  const std::string text =
      "[grid]\ntask = \"bits\"\nestimator = [\"rloo\", \"arm\", \"exact\"]\nmodel = \"bits[options=3]\"\n[train]\nsteps = 2\n";
  TestFolder folder;
  const SweepFolder sweep{folder / "run"};
  TaskPool tasks;
  const auto plan = make_plan(config_of(text), tasks);
  const auto report =
      run_plan(plan, tasks, {.out = sweep.path, .jobs = 1, .only = {"estimator=rloo"}, .progress = ProgressMode::none});
  REQUIRE(report.ok == 1);
  const auto cell = [](const Plan& plan, const std::string& estimator) {
    for (const auto& c : plan.cells)
      if (c.axes.at("estimator") == estimator) return c;
    throw Bug("no such cell");
  };
  CellStore cells(sweep.cells());
  RerunExplainer why(plan, sweep, cells);
  CHECK(why(cell(plan, "rloo")).starts_with("done: "));
  CHECK(why(cell(plan, "arm")).starts_with("skip: needs bits"));
  CHECK(why(cell(plan, "exact")) == "run: no record of it is in " + sweep.cells());

  const auto longer = make_plan(config_of(text, {"train.steps=3", "seed=4"}), tasks);
  RerunExplainer later(longer, sweep, cells);
  CHECK(later(cell(longer, "rloo")) == "stale: cell " + cell(plan, "rloo").hash + " differs: seed 0 -> 4, train.steps 2 -> 3");
  CHECK(later(cell(longer, "exact")).starts_with("run: "));

  const auto file = cells.find(cell(plan, "rloo").hash)->path;
  auto bytes = get(file);
  bytes[bytes.size() / 2] ^= 1;
  put(file, bytes);
  const CellStore damaged(sweep.cells());
  CHECK(RerunExplainer(plan, sweep, damaged)(cell(plan, "rloo")).starts_with("run again: " + file + ": damaged"));
}

}  // namespace hardgrad::testing::reasons_test
