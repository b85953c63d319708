// The time left is told from finished work: of a run whose only cells are at work, too, and of cells like those at work.
#include "experiments/sweeps/work_left.hpp"

#include <doctest/doctest.h>

namespace hardgrad::testing::work_left_test {
using namespace measurement;
using namespace sweeps;
using namespace tasks;
using namespace training;

TEST_CASE("a cell at work is known by how far it is, before any is over") {
  WorkLeft left;
  for (const auto* cell : {"a", "b", "c", "d"}) left.expect(cell, "task\nkind=x\n");
  CHECK_FALSE(left.one_by_one(0));
  left.at_work("a", 10, 30, 100);
  CHECK(*left.one_by_one(100) == 30 + 3 * 40);
  CHECK(*left.one_by_one(105) == 25 + 3 * 40);
  CHECK(*left.together(2, 105) == (25 + 3 * 40) / 2.);
  left.at_work("b", 10, 90, 105);  // of the same kind, and slower: the others are like the mean of the two
  CHECK(*left.one_by_one(105) == 25 + 90 + 2 * 70);
  left.over("b");
  left.took("task\nkind=x\n", 100);
  CHECK(*left.one_by_one(105) == 25 + 2 * 70);
}

TEST_CASE("no run ends before its longest cell, and one that overruns its estimate has nothing left, not less") {
  WorkLeft left;
  left.expect("long", "task\nkind=x\n");
  left.expect("short", "task\nkind=y\n");
  left.at_work("long", 1, 500, 0);
  left.at_work("short", 1, 20, 0);
  CHECK(*left.together(2, 0) == 500);
  CHECK(*left.together(2, 100) == 400);
  CHECK(*left.one_by_one(1000) == 0);
  left.given_up("long");  // begins where it stopped, or anew: it is of a kind with itself no more
  CHECK(*left.one_by_one(0) == 20 + 21);
  CHECK(*left.together(2, 0) == 20.5);
}

TEST_CASE("a short trial stands for its share of a run, and cells that are not known yet take their time too") {
  WorkLeft left;
  const std::string kind = "task\nkind=x\n";
  left.expect("trial", kind, .25);
  left.to_come({{kind, 3.5}});  // two trials of a quarter, three whole runs
  CHECK_FALSE(left.one_by_one(0));
  left.took(kind, 10, .25);
  CHECK(*left.one_by_one(0) == 10 + 3.5 * 40);
  CHECK(*left.together(2, 0) == (10 + 3.5 * 40) / 2.);  // though one cell alone is known
  left.at_work("trial", 10, 20, 0);                     // slower: a whole run of both kinds of trials takes 80
  CHECK(*left.one_by_one(0) == 20 + 3.5 * 80);
  left.over("trial");
  left.to_come({});
  CHECK(*left.one_by_one(0) == 0);
}

}  // namespace hardgrad::testing::work_left_test
