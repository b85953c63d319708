// A stopped cell resumes from its file. If that is truncated, damaged or of another cell, the cell restarts.
#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "experiments/storage/partial_cell.hpp"
#include "experiments/storage/result_files.hpp"
#include "experiments/sweeps/rerun_explainer.hpp"
#include "runs.hpp"

namespace hardgrad::testing::unfinished_test {
using namespace measurement;
using namespace storage;
using namespace sweeps;
using namespace tasks;
using namespace training;

namespace {

// Stops one job after a number of polls; returns the unfinished cells with their steps.
std::map<std::string, int> stopped(const std::string& out, int questions, const std::string& text = sweep) {
  std::atomic<int> asked = 0;
  // The caller's thread also polls, at intervals of time. These polls are not counted, as their number depends on the machine.
  const auto interrupted = [&, caller = std::this_thread::get_id()] {
    if (std::this_thread::get_id() != caller) ++asked;
    return asked > questions;
  };
  CHECK(run(out, {.jobs = 1, .interrupted = interrupted}, text).interrupted);
  std::map<std::string, int> steps;
  for (const auto& cell : plan_of(text).cells)
    if (const auto step = partial_step({out}, cell.hash)) steps[cell.hash] = *step;
  return steps;
}

std::string with(const std::string& settings, std::string text = sweep) {
  return text.insert(text.find("[measure]"), settings + "\n");
}

}  // namespace

TEST_CASE("a stopped cell resumes from its step and ends in the same bits, with any number of jobs") {
  TestFolder folder;
  run(folder / "whole", {.jobs = 1});
  const auto expected = numbers(folder / "whole");
  std::size_t found = 0;
  for (int questions = 120; questions < 1000; questions += 290) {
    CAPTURE(questions);
    const auto out = folder / std::to_string(questions);
    const auto steps = stopped(out, questions);
    found += steps.size();
    const auto status = sweep_status({out}, cells_in(out));
    for (const auto& cell : status.cells) {
      const auto it = steps.find(cell.hash);
      CHECK(cell.step == (it == steps.end() ? std::nullopt : std::optional(it->second)));
    }
    for (const auto& [hash, step] : steps) {
      CHECK(check_file(SweepFolder{out}.partial(hash)).empty());
      const auto plan = plan_of(sweep);
      const auto cells = cells_in(out);
      for (const auto& cell : plan.cells)
        if (cell.hash == hash)
          CHECK(RerunExplainer(plan, {out}, cells)(cell).find("resumes at step " + std::to_string(step)) != std::string::npos);
    }
    run(out, {.jobs = 2});
    CHECK(numbers(out) == expected);
    for (const auto& [hash, step] : steps) CHECK_FALSE(std::filesystem::exists(SweepFolder{out}.partial(hash)));
  }
  CHECK(found >= 3);
}

TEST_CASE("an unfinished file that is damaged or of another cell is reported and not used, and a finished cell needs none") {
  TestFolder folder;
  run(folder / "whole", {.jobs = 1});
  const auto expected = numbers(folder / "whole");
  const auto out = folder / "out";
  const SweepFolder place{out};
  auto steps = stopped(out, 300);
  REQUIRE(steps.size() == 1);
  const auto hash = steps.begin()->first;
  const auto good = get(place.partial(hash));
  const auto log_after = [&](const std::string& bytes) {
    put(place.partial(hash), bytes);
    if (cells_in(out).find(hash)) forget(out, hash);
    run(out, {.jobs = 1});
    CHECK(numbers(out) == expected);
    CHECK_FALSE(std::filesystem::exists(place.partial(hash)));
    return cells_in(out).read(hash).log;
  };
  CHECK(log_after(good).find("started again") == std::string::npos);
  CHECK(log_after(good.substr(0, good.size() / 2)).find("started again") != std::string::npos);
  auto flipped = good;
  flipped[flipped.size() / 2] ^= 4;
  CHECK(log_after(flipped).find("damaged: its bytes do not match the checksum in its seal; started again") !=
        std::string::npos);
  CHECK(log_after("").find("is empty; started again") != std::string::npos);

  const auto elsewhere = folder / "elsewhere";  // a cell with another root seed
  std::string other = sweep;
  other.replace(other.find("seed = 5"), 8, "seed = 6");
  const auto others = stopped(elsewhere, 300, other);
  REQUIRE(others.size() == 1);
  CHECK(log_after(get(SweepFolder{elsewhere}.partial(others.begin()->first))).find("is of another cell; started again") !=
        std::string::npos);

  put(place.partial(hash), good);  // the state after a kill just after the cell was written
  CHECK(run(out).already == 16);
  CHECK_FALSE(std::filesystem::exists(place.partial(hash)));
}

TEST_CASE("the interval between saves and the threads change no result, and saves may be turned off") {
  const auto hashes = [](const std::string& text) {
    std::vector<std::string> all;
    for (const auto& cell : plan_of(text).cells) all.push_back(cell.hash);
    return all;
  };
  CHECK(hashes(with("save_every = 3\nsave_seconds = 0")) == hashes(sweep));
  CHECK(hashes(with("threads = 2")) == hashes(sweep));
  CHECK(hashes(with("parts = 1")) == hashes(sweep));
  CHECK(hashes(with("parts = 2")) != hashes(sweep));
  CHECK(hashes(with("patience = 3")) != hashes(sweep));
  TestFolder folder;
  CHECK(stopped(folder / "never", 300, with("save_seconds = 0")).empty());
  CHECK(stopped(folder / "steps", 300, with("save_seconds = 0\nsave_every = 5")).size() == 1);
}

TEST_CASE("a starting network: trained first by another estimator, also interrupted there, or read from a checkpoint") {
  TestFolder folder;
  const auto text = with("start = \"exact\"\nstart_steps = 30\ncheckpoint = true");
  run(folder / "whole", {.jobs = 1}, text);
  const auto expected = numbers(folder / "whole", text);
  REQUIRE(expected.size() == 16);
  run(folder / "plain", {.jobs = 1});
  for (const auto& cell : plan_of(text).cells) {
    const auto record = cells_in(folder / "whole").read(cell.hash);
    CHECK(record.costs.at("start_rows") > 0);
    CHECK(record.costs.at("start_cpu_seconds") > 0);
  }
  // All estimators of a seed start from the same network, which is not the random one.
  std::map<std::string, double> first, random;
  for (const auto& cell : plan_of(text).cells) {
    const auto record = cells_in(folder / "whole").read(cell.hash);
    const auto name = cell.axes.at("task") + cell.axes.at("seed");
    const auto loss = record.result.evaluations.at(0).losses.at("expected_loss");
    CHECK(first.emplace(name, loss).first->second == loss);
  }
  for (const auto& cell : plan_of(sweep).cells)
    random[cell.axes.at("task") + cell.axes.at("seed")] =
        cells_in(folder / "plain").read(cell.hash).result.evaluations.at(0).losses.at("expected_loss");
  REQUIRE(first.size() == 4);
  for (const auto& [name, loss] : first) CHECK(loss < random.at(name));

  std::size_t starting = 0;
  for (int questions = 20; questions < 500; questions += 160) {
    const auto out = folder / std::to_string(questions);
    for (const auto& [hash, step] : stopped(out, questions, text))
      starting += read_partial_cell(SweepFolder{out}.partial(hash)).starting;
    run(out, {.jobs = 2}, text);
    CHECK(numbers(out, text) == expected);
  }
  CHECK(starting > 0);

  // From a file: the first evaluation is that of the file's network.
  const auto trained = plan_of(text).cells.front();
  const auto file = SweepFolder{folder / "whole"}.checkpoint(trained.hash);
  std::string one = sweep;
  one.replace(one.find("task = [\"bits\", \"not_gate\"]"), 27, "task = \"bits\"");
  const auto from_file = with("start = \"" + file + "\"", one);
  run(folder / "file", {.jobs = 1}, from_file);
  const auto end = cells_in(folder / "whole").read(trained.hash).result.evaluations.back().losses;
  std::size_t same = 0;
  for (const auto& cell : plan_of(from_file).cells)
    if (cell.axes.at("seed") == trained.axes.at("seed"))
      same += cells_in(folder / "file").read(cell.hash).result.evaluations.at(0).losses.at("expected_loss") ==
              end.at("expected_loss");
  CHECK(same == 4);
  const auto hash = plan_of(from_file).cells.front().hash;
  std::filesystem::copy_file(SweepFolder{folder / "whole"}.checkpoint(plan_of(text).cells.at(2).hash), file,
                             std::filesystem::copy_options::overwrite_existing);
  CHECK(plan_of(from_file).cells.front().hash != hash);  // another file of that name changes the hash
}

TEST_CASE("incompatible settings of budget and start are rejected") {
  const auto refused = [](const std::string& settings, std::string text = sweep) {
    try {
      plan_of(with(settings, std::move(text)));
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto open = [] {
    std::string text = sweep;
    return text.replace(text.find("steps = 12"), 10, "most_rows = 100").replace(text.find(", \"50%\""), 7, "");
  }();
  CHECK(refused("").empty());
  CHECK(refused("", open).empty());
  CHECK(refused("start = \"rloo\"").find("train.start = \"rloo\": needs train.start_steps") != std::string::npos);
  CHECK(refused("start_steps = 5").find("train.start_steps: needs train.start") != std::string::npos);
  CHECK(refused("start = \"rlo\"\nstart_steps = 5").find("rloo") != std::string::npos);
  CHECK(refused("schedule = \"cosine\"\nwarmup = 11").empty());
  CHECK(refused("schedule = \"cosine\"\nwarmup = 12").find("train.warmup: 12 warm-up steps of 12 leave none") !=
        std::string::npos);
  CHECK(refused("schedule = \"linear\"\nwarmup = 5\nstart = \"rloo\"\nstart_steps = 5").find("of 5 leave none") !=
        std::string::npos);
  CHECK(refused("schedule = \"step\"").find("needs train.drop_every") != std::string::npos);
  CHECK(refused("schedule = \"cosine\"", open).find("needs train.steps, the length of its decay") != std::string::npos);
  std::string never = sweep;
  never.replace(never.find("steps = 12"), 10, "steps = 0");
  never.replace(never.find(", \"50%\""), 7, "");
  CHECK(refused("patience = 2", never).find("train.patience: needs another limit") != std::string::npos);
  std::string blind = sweep;
  blind.replace(blind.find("evaluate_every = 6"), 18, "evaluate_every = 0");
  CHECK(refused("target_loss = 0.1", blind).find("train.target_loss: needs train.evaluate_every") != std::string::npos);
  for (const auto* choice : {"keep_best = true", "patience = 2", "target_loss = 0.1"}) {
    const auto said = refused(std::string("evaluate_split = \"test\"\n") + choice);
    CHECK(said.find("on test, the split that judges the chosen network; set train.evaluate_split = \"heldout\" and "
                    "train.final_split = \"test\"") != std::string::npos);
    const auto warnings = plan_of(with(choice)).warnings;
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0].find("selects by the split of the last evaluation") != std::string::npos);
    CHECK(plan_of(with(std::string("final_split = \"test\"\n") + choice)).warnings.empty());
  }
  std::string share = sweep;
  share.replace(share.find("steps = 12"), 10, "most_rows = 100");
  CHECK(refused("", share).find("measure.at: 50% is a share of train.steps, which is 0") != std::string::npos);
}

}  // namespace hardgrad::testing::unfinished_test
