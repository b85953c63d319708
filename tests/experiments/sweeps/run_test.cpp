// Each cell runs once for any order, shards and interruptions, and results are equal bit for bit.
#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>

#include "experiments/storage/archive.hpp"
#include "runs.hpp"

namespace hardgrad::testing::run_test {
using namespace measurement;
using namespace storage;
using namespace sweeps;
using namespace tasks;
using namespace training;

TEST_CASE("results are equal bit for bit for any jobs, shards and interruptions") {
  TestFolder folder;
  CHECK(run(folder / "one", {.jobs = 1}).ok == 16);
  const auto expected = numbers(folder / "one");
  REQUIRE(expected.size() == 16);
  for (const auto& [hash, list] : expected) CHECK(list.size() > 30);

  CHECK(run(folder / "two", {.jobs = 2}).ok == 16);
  CHECK(numbers(folder / "two") == expected);

  std::size_t cells = 0;
  for (std::size_t k = 1; k <= 3; ++k) cells += run(folder / "shards", {.jobs = 1, .shard = k, .shards = 3}).ok;
  CHECK(cells == 16);
  CHECK(numbers(folder / "shards") == expected);

  // Stops after an increasing number of polls, and restarts until the sweep is done.
  std::size_t rounds = 0, done = 0;
  for (int allowed = 5; done < 16; allowed += 60, ++rounds) {
    std::atomic<int> polls = 0;
    const auto report = run(folder / "torn", {.jobs = 2, .interrupted = [&] { return ++polls > allowed; }});
    CHECK(report.already == done);
    CHECK(report.exit_status() == (report.interrupted ? 130 : 0));
    done += report.ok;
    REQUIRE(rounds < 100);
  }
  CHECK(rounds > 2);
  CHECK(numbers(folder / "torn") == expected);

  // Another root seed must give other numbers.
  std::string other = sweep;
  other.replace(other.find("seed = 5"), 8, "seed = 6");
  run(folder / "other", {.jobs = 2}, other);
  const auto differing = numbers(folder / "other", other);
  CHECK(differing.size() == 16);
  CHECK(differing != expected);
}

TEST_CASE("cells whose files are removed during a run are reported, and run again by the next") {
  TestFolder folder;
  const auto out = folder / "out";
  std::mutex asking;
  std::string gone;
  const auto remove_one = [&] {  // called between two cells
    std::lock_guard guard(asking);
    for (const auto& entry : std::filesystem::directory_iterator(out + "/cells"))
      if (const auto path = entry.path().string(); gone.empty() && path.ends_with(".cells"))
        std::filesystem::remove(gone = path);
    return false;
  };
  const auto report = run(out, {.jobs = 1, .interrupted = remove_one});
  CHECK(report.ok == 16);
  CHECK(report.exit_status() == 1);
  REQUIRE(report.failures.size() == 1);
  CHECK(report.failures[0].ends_with(": its file was removed during the run: " + gone));
  const auto again = run(out, {.jobs = 1});
  CHECK((again.ok == 1 && again.already == 15 && again.exit_status() == 0));
}

TEST_CASE("a second run resumes: intact cells are kept, damaged and failed ones run again") {
  TestFolder folder;
  const auto out = folder / "out";
  run(out, {.jobs = 2});
  const auto expected = numbers(out);
  CHECK(run(out).already == 16);

  const SweepFolder sweep_folder{out};
  auto cell = expected.begin();
  forget(out, (cell++)->first);
  const auto next = [&] {  // not the last record of the file, which is torn below
    auto place = place_of(out, (cell++)->first);
    return place.at + place.size < get(place.path).size() ? place : place_of(out, (cell++)->first);
  };
  const auto in_data = next(), in_line = next();
  auto bytes = get(in_data.path);
  bytes[in_data.at + in_data.size / 2] ^= 1;
  bytes[in_line.at + 20] ^= 1;  // it is not known which cell this was
  bytes.resize(bytes.size() - 100);
  put(in_data.path, bytes);
  const auto status = sweeps::sweep_status(sweep_folder, cells_in(out));
  CHECK(status.count(CellState::damaged) == 1);
  CHECK(status.damage.size() == 1);
  CHECK(status.count(CellState::pending) == 3);
  const auto report = run(out);
  CHECK(report.already == 12);
  CHECK(report.ok == 4);
  CHECK(numbers(out) == expected);
}

TEST_CASE("a plan with one bit flipped is rejected, or its contents are the same") {
  TestFolder folder;
  run(folder / "out", {.only = {"estimator=exact"}});
  const SweepFolder sweep_folder{folder / "out"};
  const auto whole = get(sweep_folder.plan());
  const auto before = sweeps::read_plan(sweep_folder);
  std::size_t tried = 0, refused = 0, changed = 0;
  for (std::size_t i = 0; i < whole.size(); i += 2, ++tried) {
    auto flipped = whole;
    flipped[i] = static_cast<char>(flipped[i] ^ (1 << (tried % 8)));
    put(sweep_folder.plan(), flipped);
    try {
      changed += sweeps::read_plan(sweep_folder) != before;
    } catch (const InputError&) {
      ++refused;
    }
  }
  CHECK(tried > 2000);
  CHECK(refused == tried);
  CHECK(changed == 0);
  auto old = nlohmann::json::parse(whole);
  old["format"] = 1;
  put(sweep_folder.plan(), old.dump());
  try {
    sweeps::read_plan(sweep_folder);
    FAIL("accepted");
  } catch (const InputError& e) {
    CHECK(std::string(e.what()).find("of an older release; `hardgrad run --force` rewrites it") != std::string::npos);
  }
}

TEST_CASE("a cell records its training settings, including overrides and defaults") {
  TestFolder folder;
  const auto text = sweep + "[[override]]\nwhen = { estimator = \"reinforce\" }\nset = { train.learning_rate = 0.125 }\n";
  run(folder / "out", {}, text);
  sweeps::TaskPool tasks;
  int reinforce = 0, others = 0;
  for (const auto& cell : sweeps::make_plan(config_of(text), tasks).cells) {
    const auto settings = nlohmann::json::parse(cells_in(folder / "out").read(cell.hash).run_settings);
    const bool is = cell.axes.at("estimator") == "reinforce";
    CHECK(settings.size() == sweeps::settings_table().size());
    CHECK(settings.at("train.learning_rate") == (is ? 0.125 : 0.05));
    CHECK(settings.at("train.steps") == 12);
    CHECK(settings.at("measure.at") == "start;50%;end");
    CHECK(settings.at("train.optimizer") == "adam");
    ++(is ? reinforce : others);
  }
  CHECK(reinforce == 4);
  CHECK(others == 12);
}

TEST_CASE("a task without any begun cell is tried, so that the remaining time is known") {
  TestFolder folder;
  const auto out = folder / "out";
  const auto endless =
      "[grid]\ntask = [\"bits\", \"not_gate\", \"subsets\"]\nestimator = \"rloo\"\n"
      "[train]\nsteps = 100000000\n[measure]\nat = []\n";
  const SweepFolder sweep{out};
  const auto tried = [&] {
    return std::filesystem::exists(sweep.journal()) ? journal_seconds(sweep).tried : std::map<std::string, double>();
  };
  const auto report = run(out, {.jobs = 1, .interrupted = [&] { return tried().size() == 2; }}, endless);
  CHECK(report.interrupted);
  CHECK(tried().size() == 2);  // the first task's cell is at work
  const auto left = sweep_status(sweep, cells_in(out)).seconds_left;
  REQUIRE(left);
  CHECK(*left > 1000);
}

TEST_CASE("another plan needs --force, and then keeps the common cells") {
  TestFolder folder;
  const auto out = folder / "out";
  run(out);
  std::string more = sweep;
  more.replace(more.find("seed = [1, 2]"), 13, "seed = [1, 2, 3]");
  try {
    run(out, {}, more);
    FAIL("accepted");
  } catch (const UsageError& e) {
    CHECK(std::string(e.what()).find("holds another plan: 8 cells more; give another --out; or --force") != std::string::npos);
  }
  const auto report = run(out, {.force = true}, more);
  CHECK(report.already == 16);
  CHECK(report.ok == 8);
  put(out + "/plan.json", "{ torn");
  CHECK_THROWS_AS(run(out, {}, more), InputError);
  CHECK(run(out, {.force = true}, more).already == 24);
}

TEST_CASE("a cell that cannot fit a cap is planned as skipped, with the reason, and fails no run") {
  TestFolder folder;
  const std::string measured =
      "precision = \"double\"\nname = \"f\"\n[grid]\ntask = \"bits\"\nestimator = [\"rloo[samples=2]\", "
      "\"exact\", \"soft\"]\nseed = [1, 2]\n[measure]\nmethod = \"exact\"\noutcome_cap = 2\nat = [\"start\"]\n";
  const std::string trained =
      "name = \"f\"\n[grid]\ntask = \"qa[stories=40]\"\nestimator = [\"exact[cap=8]\", \"exact\"]\n[train]\nsteps = 2\nbatch = "
      "16\n"
      "[measure]\nat = []\n";
  std::size_t skipped = 0;
  for (const auto& [text, reason] : {std::pair{measured, "outcome"}, {trained, "the cap of 8"}}) {
    TaskPool tasks;
    const auto plan = make_plan(config_of(text), tasks);
    for (const auto& cell : plan.cells) {
      const bool fits = cell.axes.at("estimator") == "exact" || cell.axes.at("estimator") == "soft";
      CAPTURE(cell.label());
      CHECK(cell.skip.empty() == fits);
      if (!fits) CHECK(cell.skip.find(reason) != std::string::npos);
      skipped += !fits;
    }
    const auto out = folder / reason;
    const auto report = run(out, {.jobs = 1}, text);
    CHECK(report.exit_status() == 0);
    CHECK(report.ok + report.skipped == plan.cells.size());
    CHECK(run(out, {}, text).already == plan.cells.size());
  }
  CHECK(skipped == 3);
}

TEST_CASE("a record of an unknown form is unreadable, and run again") {
  TestFolder folder;
  const auto out = folder / "out";
  run(out);
  const auto expected = numbers(out);
  const auto hash = expected.begin()->first;
  const auto place = place_of(out, hash);
  auto bytes = get(place.path).substr(place.at, place.size);
  const std::string data = "of a later form";
  auto line = bytes.substr(0, bytes.find(" bytes=")) + " bytes=" + std::to_string(data.size()) +
              " data=" + storage::bytes_hash(data) + " xxh3:";
  line += storage::bytes_hash(line) + "\n" + data + "\n";
  put(place.path, get(place.path).replace(place.at, place.size, line));
  const auto status = sweeps::sweep_status({out}, cells_in(out));
  CHECK(status.count(CellState::unreadable) == 1);
  CHECK(status.damage.empty());
  CHECK(status.summary().find("1 unreadable (will be run again)") != std::string::npos);
  CHECK(run(out).ok == 1);
  CHECK(numbers(out) == expected);
  CHECK(get(place.path).find(data) != std::string::npos);  // it is kept
  CHECK(run(out).already == 16);
}

TEST_CASE("a failed cell does not stop the others, is reported and kept, and runs again") {
  TestFolder folder;
  // One cell fails because it has no such parameters.
  const std::string text =
      "name = \"f\"\n[grid]\ntask = \"bits\"\nestimator = [\"rloo[samples=2]\", \"exact\", \"soft\"]\n[train]\nsteps = 4\n"
      "[measure]\nat = []\n[[override]]\nwhen = { estimator = \"rloo\" }\nset = { train.apart = \"nothing\" }\n";
  std::string said;
  const auto report = run(folder / "out", {.jobs = 1, .print = [&](const std::string& line) { said += line; }}, text);
  CHECK(report.exit_status() == 1);
  REQUIRE(report.failures.size() == 1);
  CHECK(report.failures[0].find("estimator=rloo[samples=2]") != std::string::npos);
  CHECK(said.find("failed: task=bits") != std::string::npos);
  CHECK(report.ok == 2);
  const auto status = sweeps::sweep_status({folder / "out"}, cells_in(folder / "out"));
  CHECK(status.count(CellState::failed) == 1);
  for (const auto& cell : status.cells)
    if (cell.state == CellState::failed) {
      CHECK_FALSE(cell.reason.empty());
      CHECK(cells_in(folder / "out").read(cell.hash).log.find("failed: ") != std::string::npos);
    }
  const auto again = run(folder / "out", {}, text);
  CHECK(again.already == 2);
  CHECK(again.failures.size() == 1);
  CHECK(run(folder / "fast", {.jobs = 1, .fail_fast = true}, text).ok < 2);
}

TEST_CASE("a folder that cannot be written is rejected before any cell runs") {
  TestFolder folder;
  put(folder / "file", "x");
  CHECK_THROWS_AS(run(folder / "file/out"), UsageError);
}

}  // namespace hardgrad::testing::run_test
