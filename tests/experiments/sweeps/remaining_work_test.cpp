// The remaining time is estimated from finished work, including the progress of running cells and cells of the same kind.
#include "experiments/sweeps/remaining_work.hpp"

#include <doctest/doctest.h>

namespace hardgrad::testing::work_left_test {
using namespace measurement;
using namespace sweeps;
using namespace tasks;
using namespace training;

TEST_CASE("a running cell's progress gives an estimate before any cell ends") {
  RemainingWork remaining;
  for (const auto* cell : {"a", "b", "c", "d"}) remaining.expect(cell, "task\nkind=x\n");
  CHECK_FALSE(remaining.one_by_one(0));
  remaining.at_work("a", 10, 30, 100);
  CHECK(*remaining.one_by_one(100) == 30 + 3 * 40);
  CHECK(*remaining.one_by_one(105) == 25 + 3 * 40);
  CHECK(*remaining.together(2, 105) == (25 + 3 * 40) / 2.);
  remaining.at_work("b", 10, 90, 105);  // of the same kind, but slower: the other cells take the mean of the two
  CHECK(*remaining.one_by_one(105) == 25 + 90 + 2 * 70);
  remaining.over("b");
  remaining.took("task\nkind=x\n", 100);
  CHECK(*remaining.one_by_one(105) == 25 + 2 * 70);
}

TEST_CASE("a run does not end before its longest cell, and past its estimate the remaining time is 0") {
  RemainingWork remaining;
  remaining.expect("long", "task\nkind=x\n");
  remaining.expect("short", "task\nkind=y\n");
  remaining.at_work("long", 1, 500, 0);
  remaining.at_work("short", 1, 20, 0);
  CHECK(*remaining.together(2, 0) == 500);
  CHECK(*remaining.together(2, 100) == 400);
  CHECK(*remaining.one_by_one(1000) == 0);
  remaining.given_up("long");  // it will resume or restart: its progress no longer counts for its kind
  CHECK(*remaining.one_by_one(0) == 20 + 21);
  CHECK(*remaining.together(2, 0) == 20.5);
}

TEST_CASE("a short trial counts as its share of a run, and later cells are included") {
  RemainingWork remaining;
  const std::string kind = "task\nkind=x\n";
  remaining.expect("trial", kind, .25);
  remaining.to_come({{kind, 3.5}});  // two trials of a quarter each, three whole runs
  CHECK_FALSE(remaining.one_by_one(0));
  remaining.took(kind, 10, .25);
  CHECK(*remaining.one_by_one(0) == 10 + 3.5 * 40);
  CHECK(*remaining.together(2, 0) == (10 + 3.5 * 40) / 2.);  // although only one cell is known
  remaining.at_work("trial", 10, 20, 0);                     // slower: from both trials, a whole run takes 80
  CHECK(*remaining.one_by_one(0) == 20 + 3.5 * 80);
  remaining.over("trial");
  remaining.to_come({});
  CHECK(*remaining.one_by_one(0) == 0);
}

}  // namespace hardgrad::testing::work_left_test
