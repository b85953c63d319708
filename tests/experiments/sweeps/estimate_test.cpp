// Estimates: one trial per kind, scaled to all cells. The estimated disk space is within a fifth.
#include "experiments/sweeps/estimate.hpp"

#include <doctest/doctest.h>

#include <filesystem>

#include "experiments/sweeps/run.hpp"
#include "tests/experiments/sweeps/files.hpp"

namespace hardgrad::testing::estimate_test {
using namespace measurement;
using namespace storage;
using namespace sweeps;
using namespace tasks;
using namespace training;

namespace {

std::vector<const Cell*> all(const Plan& plan) {
  std::vector<const Cell*> cells;
  for (const auto& cell : plan.cells) cells.push_back(&cell);
  return cells;
}

CostEstimate estimate(const std::string& text) {
  TaskPool tasks;
  const auto plan = make_plan(config_of(text), tasks);
  return estimate_cost(plan, all(plan), tasks, 1, 20);
}

const std::string sweep = R"(
[grid]
task = ["bits", "not_gate"]
estimator = ["rloo", "reinforce"]
train.learning_rate = [0.1, 0.2, 0.3]
seed = [1, 2]
[train]
steps = 20000
[measure]
replicates = 4
)";

}  // namespace

TEST_CASE("one trial for all settings and seeds") {
  const auto cost = estimate(sweep);
  CHECK(cost.kinds == 4);
  CHECK(cost.tried == 4);
  CHECK_FALSE(cost.at_least);
  CHECK(cost.core_seconds > 0);
  CHECK(cost.seconds >= cost.longest);
}

TEST_CASE("a trial is scaled to each cell") {
  const auto cost =
      estimate("[grid]\ntask = \"bits\"\nestimator = \"rloo\"\ntrain.steps = [10, 1000000]\n[measure]\nat = []\n");
  CHECK(cost.kinds == 1);
  CHECK(cost.longest > 0.9 * cost.core_seconds);  // the long cell is nearly all of it
}

TEST_CASE("the disk") {
  TestFolder folder;
  TaskPool tasks;
  const auto plan = make_plan(config_of(sweep, {"train.steps=500", "train.checkpoint=true"}), tasks);
  const auto cost = estimate_cost(plan, all(plan), tasks, 1, 20);
  run_plan(plan, tasks, {.out = folder / "run", .jobs = 1, .progress = ProgressMode::none});
  double bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "run/cells"))
    bytes += static_cast<double>(entry.file_size());
  CHECK(cost.bytes > 0.8 * bytes);
  CHECK(cost.bytes < 1.2 * bytes);
}

}  // namespace hardgrad::testing::estimate_test
