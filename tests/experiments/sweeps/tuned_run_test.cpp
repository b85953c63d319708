// A sweep with [tune] under `run`: trials, choices and numbers do not depend on jobs, shards and interruptions.
#include <nlohmann/json.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "experiments/sweeps/run.hpp"
#include "experiments/sweeps/tuning.hpp"
#include "files.hpp"

namespace hardgrad::testing::tuned_run_test {
using namespace measurement;
using namespace storage;
using namespace sweeps;
using namespace tasks;
using namespace training;

namespace {

const std::string sweep = R"(
name = "tuned"
seed = 5
[grid]
task = "bits"
estimator = ["rloo[samples=2]", "reinforce"]
seed = [1, 2]
[train]
steps = 20
batch = 2
evaluate_split = "test"
evaluate_examples = 4
[measure]
at = []
[tune]
seeds = [11, 12]
trials = 4
rounds = [0.2, 0.6]
keep = 0.5
train.learning_rate = { low = 1e-2, high = 1 }
)";
// 2 searches of 4 x 2 and 2 x 2 trials, and 2 reported runs each.
constexpr std::size_t all = 2 * (8 + 4 + 2);

RunReport run(const std::string& out, RunOptions options = {}, const std::vector<std::string>& sets = {}) {
  TaskPool tasks;
  const auto plan = make_plan(config_of(sweep, sets), tasks);
  options.out = out;
  options.idle_checks = 2;
  options.progress = ProgressMode::none;
  options.print = [](const std::string&) {};
  return run_plan(plan, tasks, options);
}

// {hash: last loss} of each cell in plan.json; -1 for a missing cell.
std::map<std::string, double> losses(const std::string& out) {
  std::map<std::string, double> found;
  const auto frozen = read_plan(SweepFolder{out});
  const CellStore cells(SweepFolder{out}.cells());
  for (const auto& cell : frozen.at("cells")) {
    const auto hash = cell.at("hash").get<std::string>();
    found[hash] = cells.find(hash) ? cells.read(hash).result.evaluations.back().losses.at("expected_loss") : -1;
  }
  return found;
}

}  // namespace

TEST_CASE("cells and numbers do not depend on jobs and interruptions") {
  TestFolder folder;
  const auto whole = run(folder / "one", {.jobs = 1});
  CHECK(whole.ok == all);
  CHECK(whole.selected == all);
  CHECK(whole.exit_status() == 0);
  CHECK(whole.tuned.size() == 2);
  const auto expected = losses(folder / "one");
  REQUIRE(expected.size() == all);
  for (const auto& [hash, loss] : expected) CHECK(loss >= 0);
  CHECK(read_plan(SweepFolder{folder / "one"}).at("to_come") == 0);

  CHECK(run(folder / "two", {.jobs = 2}).tuned == whole.tuned);
  CHECK(losses(folder / "two") == expected);
  CHECK(run(folder / "two", {.jobs = 2}).already == all);

  std::size_t rounds = 0, done = 0;
  for (int allowed = 4; done < all; allowed += 40, ++rounds) {
    std::atomic<int> polls = 0;
    const auto report = run(folder / "torn", {.jobs = 2, .interrupted = [&] { return ++polls > allowed; }});
    CHECK(report.already == done);
    done += report.ok;
    REQUIRE(rounds < 100);
  }
  CHECK(rounds > 3);
  CHECK(losses(folder / "torn") == expected);
}

TEST_CASE("a shard runs its cells of a round, reports that it waits for the other shards, and continues when they are done") {
  TestFolder folder;
  run(folder / "one", {.jobs = 1});
  const auto out = folder / "shards";
  const auto first = run(out, {.jobs = 1, .shard = 1, .shards = 2});
  CHECK(first.ok == 8);  // half of the 16 trials of the first round
  CHECK(first.waiting == 8);
  CHECK(first.exit_status() == 4);
  std::size_t turns = 0, ok = first.ok;
  for (std::size_t shard = 2; ok < all; shard = 3 - shard, ++turns) {
    const auto report = run(out, {.jobs = 1, .shard = shard, .shards = 2});
    CHECK(report.exit_status() == (report.waiting ? 4 : 0));
    CHECK(report.ok > 0);
    ok += report.ok;
    REQUIRE(turns < 10);
  }
  CHECK(turns >= 3);
  CHECK(losses(out) == losses(folder / "one"));
  CHECK(run(out, {.jobs = 1, .shard = 1, .shards = 2}).exit_status() == 0);

  // Concurrent shards wait for each other.
  const auto together = folder / "together";
  RunReport reports[2];
  {
    std::vector<std::jthread> threads;
    for (std::size_t k = 0; k < 2; ++k)
      threads.emplace_back([&, k] {
        do {
          reports[k] = run(together, {.jobs = 1, .shard = k + 1, .shards = 2});
        } while (reports[k].waiting);  // one may start before the other
      });
  }
  CHECK(losses(together) == losses(folder / "one"));
}

TEST_CASE("a run whose filter excludes trials waits for them") {
  TestFolder folder;
  const auto report = run(folder / "out", {.jobs = 1, .only = {"seed=11"}});
  CHECK(report.ok == 8);
  CHECK(report.waiting == 8);  // those of seed 12: the next round needs both seeds
  CHECK(report.exit_status() == 4);
  const auto one = run(folder / "out", {.jobs = 1, .only = {"estimator=rloo*"}});
  CHECK(one.ok == 4 + 4 + 2);
  CHECK(one.exit_status() == 0);
}

TEST_CASE("a diverged trial does not fail the sweep and is not repeated, but if all diverge, the sweep fails") {
  TestFolder folder;
  const std::vector<std::string> burst{"tune.train.learning_rate=[0.1, 1e30]",
                                       "tune.rounds=[0.5]",
                                       "train.optimizer=sgd",
                                       "train.steps=40",
                                       "grid.task=qa[stories=20,people=2,places=3,memory=8]",
                                       "grid.estimator=[\"rloo[samples=2]\"]",
                                       "tune.trials=2"};
  const auto report = run(folder / "out", {.jobs = 1}, burst);
  CHECK(report.failed_trials == 2);
  CHECK(report.failures.empty());
  CHECK(report.exit_status() == 0);
  REQUIRE(report.tuned.size() == 1);
  CHECK(report.tuned[0].find("train.learning_rate=0.1, the best of 2 settings") != std::string::npos);
  CHECK(report.tuned[0].find("2 of its trials failed and were never chosen") != std::string::npos);
  const auto again = run(folder / "out", {.jobs = 1}, burst);
  CHECK(again.already == again.selected);
  CHECK(again.failed_trials == 0);

  const auto none = run(folder / "none", {.jobs = 1},
                        {burst[1], burst[2], burst[3], burst[4], burst[5], burst[6], "tune.train.learning_rate=[1e29, 1e30]"});
  CHECK(none.exit_status() == 1);
  REQUIRE(none.failures.size() == 1);
  CHECK(none.failures[0].find("no setting can be chosen: none of 2 has a finite result") != std::string::npos);
  CHECK(none.skipped == 2);
}

TEST_CASE("a plan includes its later work from the beginning, with trials at their share of a run") {
  TaskPool tasks;
  const auto plan = make_plan(config_of(sweep), tasks);
  double known = 0, to_come = 0;
  for (const auto& cell : plan.cells) known += cell.share;
  const auto frozen = plan.json();
  for (const auto& [kind, work] : frozen.at("work_to_come").items()) to_come += work.get<double>();
  CHECK(known == doctest::Approx(2 * 8 * .2));
  CHECK(to_come == doctest::Approx(2 * (4 * .6 + 2)));
}

}  // namespace hardgrad::testing::tuned_run_test
