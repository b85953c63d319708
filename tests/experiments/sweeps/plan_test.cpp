// Expansion, hashes and random streams depend on names and values, never on order.
#include "experiments/sweeps/plan.hpp"

#include "experiments/storage/archive.hpp"
#include "experiments/sweeps/folder.hpp"

#include <nlohmann/json.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>

#include "files.hpp"

namespace hardgrad::testing::plan_test {
using namespace measurement;
using namespace sweeps;
using namespace tasks;
using namespace training;

namespace {

std::set<std::string> hashes(const Plan& plan) {
  std::set<std::string> result;
  for (const auto& cell : plan.cells) result.insert(cell.hash);
  return result;
}
std::set<std::string> labels(const Plan& plan) {
  std::set<std::string> result;
  for (const auto& cell : plan.cells) result.insert(cell.label());
  return result;
}

}  // namespace

TEST_CASE("product, zip, exclude and override") {
  const auto plan = plan_of(R"(
name = "p"
[grid]
estimator = ["rloo[samples=2]", "exact"]
seed = [1, 2]
[[zip]]
task = ["bits", "not_gate"]
train.steps = [10, 20]
[[exclude]]
task = "not_gate"
estimator = "ex*"
seed = 2
[[override]]
when = { estimator = "rloo" }
set = { train.batch = 5, measure.replicates = 9 }
)");
  CHECK(plan.cells.size() == 2 * 2 * 2 - 1);
  for (const auto& cell : plan.cells) {
    INFO(cell.label());
    const bool bits = cell.axes.at("task") == "bits", rloo = cell.axes.at("estimator").starts_with("rloo");
    CHECK(cell.axes.at("model") == (bits ? "bits" : "not_gate"));
    CHECK(cell.settings.train.steps == (bits ? 10 : 20));
    CHECK((cell.settings.train.batch == 5) == rloo);
    CHECK((cell.settings.train.measure.replicates == 9) == rloo);
    CHECK_FALSE((!bits && !rloo && cell.seed() == 2));
    CHECK(cell.hash.size() == 16);
  }
  CHECK(hashes(plan).size() == plan.cells.size());
  CHECK(plan.warnings.empty());
}

TEST_CASE("order in the file changes neither hashes nor streams") {
  const auto a = plan_of(
      "name = \"x\"\n[grid]\ntask = [\"bits\", \"not_gate\"]\nestimator = [\"rloo\", \"exact\"]\nseed = [1, "
      "2]\n");
  const auto b = plan_of(
      "name = \"x\"\n[grid]\nseed = [2, 1]\nestimator = [\"exact\", \"rloo[samples=4]\"]\ntask = "
      "[\"not_gate\", \"bits\"]\n");
  CHECK(hashes(a) == hashes(b));
  CHECK(a.hash == b.hash);
  CHECK(labels(a) == labels(b));
  CHECK(a.cells.front().label() != b.cells.front().label());  // though their order differs

  // Fixed: a change of these values invalidates the finished cells of all users and changes their results.
  const auto keys = CellKeys(7, {{"task", "bits"}, {"model", "bits"}, {"estimator", "rloo"}, {"seed", "1"}});
  const AxisValues more{{"task", "bits"}, {"model", "bits"}, {"estimator", "exact"}, {"seed", "1"}, {"train.steps", "3"}};
  const auto others = CellKeys(7, more);
  CHECK(run_seed(7, more) == run_seed(7, {{"task", "bits"}, {"seed", "1"}}));
  CHECK(keys.init.value() == others.init.value());
  CHECK(keys.order.value() == others.order.value());
  CHECK(keys.noise.value() != others.noise.value());
  auto model = more, seed = more;
  model.at("model") = std::string("other");
  seed.at("seed") = std::string("2");
  CHECK(run_seed(7, model) == run_seed(7, more));
  CHECK(CellKeys(7, model).init.value() != keys.init.value());
  CHECK(run_seed(7, seed) != run_seed(7, more));
  CHECK(run_seed(8, more) != run_seed(7, more));
}

TEST_CASE("a hash changes with every setting that can change a number") {
  const std::string grid = "[grid]\ntask = \"bits\"\nestimator = \"rloo\"\n";
  std::set<std::string> seen{plan_of(grid).cells.at(0).hash};
  CHECK(plan_of(grid).cells.at(0).hash == *seen.begin());
  for (const char* change : {"seed = 2\n", "precision = \"double\"\n", "[train]\nsteps = 4\n", "[train]\nclip = 1\n",
                             "[measure]\nat = []\n", "[measure]\nreplicates = 5\n"})
    CHECK_MESSAGE(seen.insert(plan_of(change + grid).cells.at(0).hash).second, change);
  // The name, the folder and a larger grid do not change it.
  CHECK(seen.contains(plan_of("name = \"n\"\nout = \"elsewhere\"\n" + grid).cells.at(0).hash));
  CHECK(hashes(plan_of(grid + "seed = [0, 1, 2]\n")).contains(plan_of(grid).cells.at(0).hash));
}

TEST_CASE("unsupported combinations are skipped with a reason") {
  const auto plan = plan_of("[grid]\ntask = [\"bits\"]\nmodel = [\"bits\", \"memory_reader\"]\nestimator = \"rloo\"\n");
  REQUIRE(plan.cells.size() == 2);
  for (const auto& cell : plan.cells) {
    if (cell.axes.at("model") == "bits")
      CHECK(cell.skip == "");
    else
      CHECK(cell.skip.find("does not fit this task") != std::string::npos);
  }
  const auto reused = plan_of("[grid]\ntask = \"bits\"\nestimator = [\"rloo\", \"policy_gradient\"]\ntrain.reuse = [1, 2]\n");
  for (const auto& cell : reused.cells)
    CHECK((cell.skip.find("take policy_gradient, or train.reuse = 1") != std::string::npos) ==
          (cell.axes.at("estimator") == "rloo" && cell.axes.at("train.reuse") == "2"));
}

TEST_CASE("patterns without a match cause a warning, an empty sweep is rejected") {
  const std::string grid = "[grid]\ntask = \"bits\"\nestimator = [\"rloo\", \"exact\"]\n";
  const auto plan =
      plan_of(grid + "[[exclude]]\nseed = 5\n[[override]]\nwhen = { estimator = \"so*\" }\nset = { train.steps = 1 }\n");
  CHECK(plan.cells.size() == 2);
  CHECK(plan.warnings.size() == 2);
  CHECK_THROWS_AS(plan_of(grid + "[[exclude]]\ntask = \"bits\"\n"), UsageError);
  CHECK_THROWS_AS(plan_of(grid + "[measure]\nat = [5]\n"), UsageError);            // beyond the last step
  CHECK_THROWS_AS(plan_of(grid + "[measure]\nmethod = \"exact\"\n"), UsageError);  // in float
}

TEST_CASE("filters") {
  const auto plan = plan_of(
      "[grid]\ntask = [\"bits\", \"not_gate\"]\nestimator = [\"rloo[samples=2]\", \"exact\"]\nseed = [1, "
      "12]\n");
  const auto kept = [&](std::vector<std::string> filters) {
    return std::count_if(plan.cells.begin(), plan.cells.end(), [&](const auto& cell) { return filter_keeps(filters, cell); });
  };
  CHECK(kept({}) == 8);
  CHECK(kept({"estimator=rloo*"}) == 4);
  CHECK(kept({"estimator=rloo[samples=2]"}) == 4);
  CHECK(kept({"rloo[samples=2]"}) == 4);
  CHECK(kept({"task=bits", "estimator=exact"}) == 2);
  CHECK(kept({"task=nothing"}) == 0);
  const auto similar =
      plan_of("[grid]\ntask = \"bits\"\nestimator = [\"exact\", \"exact_marginal\", \"rloo\", \"rloo[samples=2]\"]\n");
  const auto found = [&](const std::string& filter) {
    std::set<std::string> estimators;
    for (const auto& cell : similar.cells)
      if (filter_keeps({filter}, cell)) estimators.insert(cell.axes.at("estimator"));
    return estimators;
  };
  using Names = std::set<std::string>;
  for (const std::string key : {"estimator=", ""}) {
    CHECK(found(key + "exact") == Names{"exact"});
    CHECK(found(key + "exact*") == Names{"exact", "exact_marginal"});
    CHECK(found(key + "marginal").empty());  // not a part of a name
    CHECK(found(key + "rloo") == Names{"rloo", "rloo[samples=2]"});
    CHECK(found(key + "rloo[samples=4]") == Names{"rloo"});  // 4 is the default
  }
  try {
    kept({"estimater=rloo"});
    FAIL("accepted");
  } catch (const UsageError& e) {
    CHECK(std::string(e.what()) == "--only estimater=rloo: no axis \"estimater\" (did you mean \"estimator\"?)");
  }
}

TEST_CASE("the difference of two plans is described") {
  const std::string grid = "name = \"x\"\n[grid]\ntask = \"bits\"\nestimator = [\"rloo\", \"exact\"]\n";
  const auto frozen = plan_of(grid).json();
  CHECK(plan_difference(frozen, plan_of(grid)) == "");
  CHECK(plan_difference(frozen, plan_of(grid + "[train]\nsteps = 3\n")) == "2 cells changed (train.steps 0 -> 3)");
  CHECK(plan_difference(frozen, plan_of(grid + "seed = [0, 1]\n")) == "2 cells more");
  CHECK(plan_difference(frozen, plan_of("seed = 4\n" + grid)) == "seed 0 -> 4");
}

TEST_CASE("a shard's plan holds its cells only, and the rest is that of the whole plan") {
  const std::string text =
      "name = \"x\"\n[grid]\ntask = \"bits\"\nestimator = [\"rloo\", \"exact\", \"soft\"]\nseed = [1, 2, 3, 4]\n"
      "[[exclude]]\nestimator = \"exact\"\nseed = 2\n";
  TaskPool tasks;
  const auto whole = make_plan(config_of(text), tasks);
  std::vector<std::string> found(whole.cells.size());
  for (std::size_t shard = 1; shard <= 3; ++shard) {
    const auto plan = make_plan(config_of(text), tasks, shard, 3);
    CHECK(plan.hash == whole.hash);
    CHECK(plan.numbering == whole.numbering);
    CHECK(plan.content == whole.content);
    CHECK(plan.warnings == whole.warnings);
    CHECK(frozen(plan) == frozen(whole));
    CHECK(plan.cells.size() < whole.cells.size());
    for (const auto* cell : selected_cells(plan, {}, shard, 3)) found.at(cell->number) = cell->hash;
    CHECK(selected_cells(plan, {"seed=3"}, shard, 3).size() == selected_cells(whole, {"seed=3"}, shard, 3).size());
    CHECK_THROWS_AS(selected_cells(plan, {"seed=7"}, shard, 3), UsageError);
  }
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == whole.cells[i].hash);
}

TEST_CASE("a checkpoint is read once for all cells, and again if it has changed") {
  TestFolder folder;
  const auto path = folder / "start.h5";
  const auto write = [&](std::int64_t number) {
    storage::write_archive(path, {.kind = "checkpoint", .groups = {{"", {.attributes = {{"number", number}}}}}}, false);
  };
  Cell cell;
  cell.axes = {{"task", "bits"}, {"model", "bits"}, {"estimator", "rloo"}, {"seed", "1"}};
  cell.settings.reference = path;
  const auto now = [&] { return identity(Precision::float64, 0, cell); };
  CHECK_THROWS_AS(now(), InputError);  // there is no file
  write(1);
  const auto first = now();
  const auto line = "train.reference.file=" + storage::read_seal(path).hash + "\n";
  const auto at = first.find(line);
  CHECK(at != std::string::npos);
  CHECK(first.find(line, at + 1) == std::string::npos);
  cell.settings.start = path;
  CHECK(now().find("train.start.file=" + storage::read_seal(path).hash + "\n") != std::string::npos);
  cell.settings.start.clear();

  // A change that leaves no trace is not seen: the file is not read.
  const auto time = std::filesystem::last_write_time(path);
  auto bytes = get(path);
  bytes[bytes.size() / 2] ^= 1;
  put(path, bytes);
  std::filesystem::last_write_time(path, time);
  CHECK(now() == first);
  std::filesystem::last_write_time(path, time + std::chrono::seconds(1));
  CHECK_THROWS_AS(now(), InputError);  // it is damaged
  write(2);
  const auto second = now();
  CHECK(second != first);
  CHECK(second.find("train.reference.file=" + storage::read_seal(path).hash + "\n") != std::string::npos);
}

}  // namespace hardgrad::testing::plan_test
