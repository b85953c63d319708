// Leases have one holder at a time and expire when the holder is dead or silent. Concurrent runs share the work.
#include "experiments/sweeps/cell_leases.hpp"

#include <nlohmann/json.hpp>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>
#include <utime.h>

#include <atomic>
#include <thread>

#include "experiments/storage/process.hpp"
#include "experiments/sweeps/folder.hpp"
#include "experiments/sweeps/run.hpp"
#include "tests/experiments/sweeps/files.hpp"
#include "tests/support/dead_process.hpp"

namespace hardgrad::testing::claims_test {
using namespace measurement;
using namespace storage;
using namespace sweeps;
using namespace tasks;
using namespace training;

namespace {

std::string claim_of(const std::string& process) {
  return fmt::format(R"({{"process":"{}","pid":12,"host":"far","claim":"x"}})", process);
}

void grow_old(const std::string& path) {
  const struct utimbuf long_ago { 1, 1 };
  REQUIRE(::utime(path.c_str(), &long_ago) == 0);
}

}  // namespace

TEST_CASE("a claim has one holder at a time") {
  TestFolder folder;
  std::filesystem::create_directory(folder / "cells");
  CellLeases one(folder / "cells"), two(folder / "cells");
  CHECK(one.take("a"));
  CHECK_FALSE(two.take("a"));
  CHECK(two.take("b"));
  CHECK(valid_leases(folder / "cells").size() == 2);
  CHECK(valid_leases(folder / "cells").at("a").starts_with(fmt::format("process {} on ", ::getpid())));
  two.give_back("a");  // the claim of another holder
  CHECK_FALSE(two.take("a"));
  one.give_back("a");
  CHECK(two.take("a"));
  {
    CellLeases three(folder / "cells");
    CHECK(three.take("c"));
  }
  CHECK(one.take("c"));

  // Of many concurrent attempts exactly one succeeds, each time.
  std::atomic<int> taken = 0;
  for (int i = 0; i < 200; ++i) {
    std::vector<std::jthread> threads;
    for (auto* leases : {&one, &two}) threads.emplace_back([&taken, leases, i] { taken += leases->take(std::to_string(i)); });
  }
  CHECK(taken == 200);
}

TEST_CASE("claims of dead and silent processes are void") {
  TestFolder folder;
  const auto cells = folder / "cells";
  std::filesystem::create_directory(cells);
  CellLeases leases(cells, 600);
  const std::string elsewhere = "0123456789abcdef-12-34";
  put(cells + "/dead.claim", claim_of(name_of_the_dead()));
  put(cells + "/far.claim", claim_of(elsewhere));
  put(cells + "/silent.claim", claim_of(elsewhere));
  grow_old(cells + "/silent.claim");
  put(cells + "/slow.claim", claim_of(this_process()));  // alive, though its claim was not refreshed: the machine was suspended
  grow_old(cells + "/slow.claim");
  put(cells + "/torn.claim", "{\"proc");
  put(cells + "/empty.claim", "");
  grow_old(cells + "/empty.claim");
  const auto standing = valid_leases(cells);
  CHECK(standing.size() == 3);
  CHECK(standing.at("far") == "process 12 on far");
  CHECK(standing.at("torn") == "another process");
  CHECK(standing.contains("slow"));
  CHECK(remove_void_leases(cells) == 3);
  CHECK(valid_leases(cells) == standing);
  put(cells + "/dead.claim", claim_of(name_of_the_dead()));
  put(cells + "/silent.claim", claim_of(elsewhere));
  grow_old(cells + "/silent.claim");
  for (const char* name : {"dead", "silent", "empty", "none"}) CHECK(leases.take(name));
  for (const char* name : {"far", "slow", "torn"}) CHECK_FALSE(leases.take(name));
  put(cells + "/dead.claim", claim_of(elsewhere));  // our claim was considered void and taken over
  leases.give_back("dead");
  CHECK(get(cells + "/dead.claim") == claim_of(elsewhere));
  leases.give_all_back();
  std::size_t left = 0;
  for (const auto& entry : std::filesystem::directory_iterator(cells)) left += entry.path().extension() == ".claim";
  CHECK(left == 4);
}

TEST_CASE("concurrent runs share the cells, and each reports the state of all cells") {
  // Some cells fail. A run that began before a failure does not retry the cell.
  const std::string text =
      "precision = \"double\"\nname = \"f\"\n[grid]\ntask = \"bits\"\nestimator = [\"rloo[samples=2]\", "
      "\"exact\", \"soft\"]\nseed = [1, 2, 3, 4]\n[measure]\nmethod = \"exact\"\nat = [\"start\"]\n"
      "[[override]]\nwhen = { estimator = \"rloo\" }\nset = { train.apart = \"nothing\" }\n";
  TestFolder folder;
  const auto out = folder / "out";
  RunReport reports[3];
  {
    std::vector<std::jthread> runs;
    for (auto& report : reports)
      runs.emplace_back([&report, &out, &text] {
        TaskPool tasks;
        const auto plan = make_plan(config_of(text), tasks);
        report =
            run_plan(plan, tasks, {.out = out, .jobs = 1, .progress = ProgressMode::none, .print = [](const std::string&) {}});
      });
  }
  std::size_t ok = 0;
  for (const auto& report : reports) {
    ok += report.ok;
    CHECK(report.ok + report.already == 8);
    CHECK(report.failures.size() == 4);
  }
  CHECK(ok == 8);
  // Only a run that began after a failure tries the cell again; the order in which the three runs begin may vary.
  std::map<std::string, int> begun_at_start;  // the number of runs that had begun at the cell's last start
  int begun = 0, starts = 0;
  for (const auto& event : Journal::read(SweepFolder{out}.journal())) {
    begun += event.value("event", "") == "run";
    if (event.value("event", "") != "start") continue;
    ++starts;
    const auto [cell, first] = begun_at_start.emplace(event.value("cell", ""), begun);
    CHECK((first || cell->second < begun));
    cell->second = begun;
  }
  CHECK(begun == 3);
  CHECK(begun_at_start.size() == 12);
  CHECK(starts <= 8 + 4 * begun);
  CHECK(valid_leases(SweepFolder{out}.cells()).empty());
}

TEST_CASE("of two concurrent plans for an empty folder one is rejected") {
  const std::string text = "[grid]\ntask = \"bits\"\nestimator = \"exact\"\n[train]\nsteps = ";
  std::size_t refused = 0;
  for (int round = 0; round < 20; ++round) {
    TestFolder folder;
    const auto out = folder / "out";
    std::atomic<int> ready = 0, fine = 0;
    std::string kept[2];
    {
      std::vector<std::jthread> runs;
      for (int i = 0; i < 2; ++i)
        runs.emplace_back([&, i] {
          TaskPool tasks;
          const auto plan = make_plan(config_of(text + std::to_string(i) + "\n"), tasks);
          for (++ready; ready < 2;) std::this_thread::yield();
          try {
            run_plan(plan, tasks, {.out = out, .jobs = 1, .progress = ProgressMode::none, .print = [](const std::string&) {}});
            kept[i] = plan.hash;
            ++fine;
          } catch (const UsageError& e) {
            CHECK(std::string(e.what()).find("holds another plan") != std::string::npos);
          }
        });
    }
    CHECK(fine == 1);
    refused += 2 - static_cast<std::size_t>(fine);
    CHECK(sweep_status({out}, CellStore(SweepFolder{out}.cells())).hash == kept[0] + kept[1]);
  }
  CHECK(refused == 20);
}

}  // namespace hardgrad::testing::claims_test
