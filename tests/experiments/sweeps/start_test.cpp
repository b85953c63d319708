// Networks from files, and the data of cells that start from them: the same words, no test example that was trained on.
#include "experiments/sweeps/cell_data.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "experiments/sweeps/run_cell.hpp"
#include "runs.hpp"

namespace hardgrad::testing::start_test {
using namespace measurement;
using namespace storage;
using namespace sweeps;
using namespace tasks;
using namespace training;

namespace {

// 300 pairs with words whose frequencies differ little, so that another split numbers them otherwise.
std::string pairs(int from = 0) {
  std::string text;
  for (int i = from; i < from + 300; ++i)
    text += fmt::format("The w{0} sees a v{1} .\tDer W{0} sieht V{2} .\n", i * 7 % 41, i * 5 % 37, i);
  return text;
}

std::string spec_of(const std::string& path, const std::string& more = "") {
  return fmt::format("translation[data=tatoeba,path={},max_length=10,heldout=0.1,test=0.1{}]", path, more);
}

std::string sweep_of(const std::string& task, const std::string& train, const std::string& seeds = "[1]") {
  return fmt::format(R"(
name = "start"
seed = 1
[grid]
task = "{}"
model = "translator[embedding=4,hidden=4]"
estimator = "rloo[samples=2]"
seed = {}
[train]
batch = 8
checkpoint = true
{}
[measure]
at = []
)",
                     task, seeds, train);
}

// The last evaluation of each cell, of the most probable choices: it draws nothing.
std::vector<double> losses(const std::string& out, const std::string& text) {
  std::vector<double> values;
  for (const auto& cell : plan_of(text).cells)
    values.push_back(cells_in(out).read(cell.hash).result.evaluations.back().losses.at("greedy_loss"));
  return values;
}

template <class E>
std::string refusal(const std::string& text) {
  try {
    plan_of(text);
  } catch (const E& error) {
    return error.what();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a file is split alike under every path, size of the vocabulary and case") {
  TestFolder folder;
  std::filesystem::create_directory(folder / "in");
  put(folder / "in/x.tsv", pairs());
  std::string labelled, trees;
  for (int i = 0; i < 300; ++i) {
    labelled += fmt::format("{}\tThe w{} Sees\tA v{} ran\n", i % 2 ? "yes" : "no", i, i % 50);
    trees += fmt::format("(S (NP (DT The) (NN w{})) (VP (VBZ Barks)))\n", i);
  }
  put(folder / "in/pairs.tsv", labelled);
  put(folder / "in/trees.txt", trees);
  const auto test_of = [](const std::string& spec) {
    const auto seed = run_seed(1, {{"task", spec}, {"seed", "3"}});
    return make_task(Spec::parse(spec), Key(seed) / "data")->contents(Split::test);
  };
  std::size_t compared = 0;
  for (const auto& [task, file] : {std::pair{"translation[data=tatoeba,heldout=0.1,test=0.1,path=", "in/x.tsv"},
                                   {"pairs[path=", "in/pairs.tsv"},
                                   {"parse[path=", "in/trees.txt"}}) {
    const auto of = [&](const std::string& path, const std::string& more) { return task + path + more + "]"; };
    const auto usual = test_of(of(folder / file, ""));
    CHECK(usual.size() > 5);
    for (const auto& other : {of(folder / (std::string("./") + file), ""), of(folder / (std::string("in/../") + file), ""),
                              of(folder / file, ",vocabulary=30"), of(folder / file, ",lower_case=false")}) {
      CAPTURE(other);
      CHECK(test_of(other) == usual);
      ++compared;
    }
  }
  CHECK(compared == 12);
  const auto ids = [&](const std::string& more) {
    const auto task = make_task(Spec::parse(spec_of(folder / "in/x.tsv", more)), Key(7));
    return task->batch(Split::test, {0, 1, 2, 3, 4}).id;
  };
  CHECK(ids(",symbols=letters") == ids(""));
  CHECK(run_seed(1, {{"task", "bits"}, {"seed", "3"}}) != run_seed(1, {{"task", "not_gate"}, {"seed", "3"}}));
}

TEST_CASE("cells that start from a file have its words and its splits, whatever their seed") {
  TestFolder folder;
  put(folder / "x.tsv", pairs());
  const auto task = spec_of(folder / "x.tsv", ",vocabulary=30");
  const auto first = sweep_of(task, "steps = 60\nlearning_rate = 0.02");
  run(folder / "first", {.jobs = 1}, first);
  const auto file = SweepFolder{folder / "first"}.checkpoint(plan_of(first).cells.front().hash);
  const auto end = losses(folder / "first", first).front();

  const auto again = sweep_of(task, "steps = 1\nlearning_rate = 1e-9\nstart = \"" + file + "\"", "[1, 2, 3]");
  CHECK(run(folder / "again", {.jobs = 2}, again).ok == 3);
  const auto values = losses(folder / "again", again);
  REQUIRE(values.size() == 3);
  for (const auto loss : values) CHECK(loss == doctest::Approx(end).epsilon(1e-5));

  // A start of a start, with another size of the vocabulary in between, still has the first one's words.
  const auto second = SweepFolder{folder / "again"}.checkpoint(plan_of(again).cells.back().hash);
  CHECK(labels_of(second).words.seed == labels_of(file).seed);
  const auto other = spec_of(folder / "x.tsv", ",vocabulary=40");
  const auto third = sweep_of(other, "steps = 1\nlearning_rate = 1e-9\nstart = \"" + second + "\"", "[5]");
  CHECK(run(folder / "third", {.jobs = 1}, third).ok == 1);
  CHECK(losses(folder / "third", third).front() == doctest::Approx(end).epsilon(1e-5));

  // A reference policy from the file has the same words.
  const auto near = sweep_of(task, "steps = 1\nreference = \"" + file + "\"", "[2]");
  CHECK(data_of(1, plan_of(near).cells.front()).like == file);
}

TEST_CASE("a start that was trained on test examples is refused with their number, or allowed by a setting") {
  TestFolder folder;
  put(folder / "x.tsv", pairs());
  put(folder / "shifted.tsv", pairs(60));
  auto all = spec_of(folder / "x.tsv");
  all.replace(all.find("heldout=0.1,test=0.1"), 20, "heldout=0.01,test=0");
  const auto first = sweep_of(all, "steps = 1");
  run(folder / "first", {.jobs = 1}, first);
  const auto file = SweepFolder{folder / "first"}.checkpoint(plan_of(first).cells.front().hash);
  const auto again = [&](const std::string& data, const std::string& more) {
    return sweep_of(spec_of(folder / data), "steps = 1\nstart = \"" + file + "\"\n" + more, "[2]");
  };
  const auto said = refusal<UsageError>(again("x.tsv", ""));
  CHECK(has(said, "its network was trained on "));
  CHECK(has(said, "train.start_overlap"));
  CHECK(has(refusal<UsageError>(again("shifted.tsv", "start_overlap = 0.1")), "its network was trained on "));
  const auto allowed = again("x.tsv", "start_overlap = 1.0");
  CHECK(run(folder / "allowed", {.jobs = 1}, allowed).ok == 1);
  CHECK(has(cells_in(folder / "allowed").read(plan_of(allowed).cells.front().hash).log, "its network was trained on "));

  put(folder / "x.tsv", pairs(1));  // its words and splits are lost
  CHECK(has(refusal<InputError>(again("shifted.tsv", "start_overlap = 1.0")),
            "was trained on other contents of the files of translation"));
}

TEST_CASE("data that change after the plan was made fail, and a resumed sweep reports it") {
  TestFolder folder;
  put(folder / "x.tsv", pairs());
  const auto text = sweep_of(spec_of(folder / "x.tsv"), "steps = 1", "[1, 2]");
  TaskPool tasks;
  const auto plan = make_plan(config_of(text), tasks);
  CHECK(!plan.cells.front().data_hash.empty());
  CHECK(run(folder / "out", {.jobs = 1, .only = {"seed=1"}}, text).ok == 1);
  const auto record = cells_in(folder / "out").read(plan.cells.front().hash);
  CHECK(record.data_hash == plan.cells.front().data_hash);
  CHECK(has(record.task_settings, "\"min_length\":1"));  // a default
  CHECK(has(record.model_settings, "\"hidden\":4"));
  CHECK(record.target_settings == "{}");

  put(folder / "x.tsv", pairs(1));
  const auto failed = run_cell(plan, plan.cells.back(), tasks, {});
  CHECK(failed.status == CellStatus::failed);
  CHECK(has(failed.reason, "its files have changed since the plan was made"));
  std::string said;
  try {
    run(folder / "out", {.jobs = 1}, text);
  } catch (const UsageError& error) {
    said = error.what();
  }
  CHECK(has(said, "2 cells changed (the contents of the task's files have changed)"));
}

}  // namespace hardgrad::testing::start_test
