// The remaining time is estimated by kind of cell, and not reported while too few durations are known.
#include "experiments/sweeps/remaining_work.hpp"

#include <doctest/doctest.h>

namespace hardgrad::testing::durations_test {
using namespace measurement;
using namespace sweeps;
using namespace tasks;
using namespace training;

namespace {
std::string kind(const std::string& task, const std::string& estimator, const std::string& seed = "1") {
  return kind_of({{"task", task}, {"model", "m"}, {"estimator", estimator}, {"seed", seed}});
}
}  // namespace

TEST_CASE("cells that differ only in the seed are of one kind") {
  CHECK(kind("a", "x", "1") == kind("a", "x", "2"));
  CHECK(kind("a", "x") != kind("a", "y"));
}

TEST_CASE("each kind has its mean duration") {
  Durations durations;
  durations.add(kind("a", "x"), 1);
  durations.add(kind("a", "x"), 3);
  durations.add(kind("a", "y"), 100);
  CHECK(*durations.seconds({{kind("a", "x"), 10}}) == 20);
  CHECK(*durations.seconds({{kind("a", "x"), 10}, {kind("a", "y"), 1}}) == 120);
  CHECK(*durations.seconds({{kind("a", "z"), 2}}) == 2 * 51);  // the mean kind of the task, not the mean cell
  CHECK(*durations.seconds({}) == 0);
}

TEST_CASE("no time is reported while most kinds are unknown") {
  Durations durations;
  CHECK_FALSE(durations.seconds({{kind("a", "x"), 1}}));
  durations.add(kind("a", "x"), 2);
  CHECK_FALSE(durations.seconds({{kind("b", "x"), 3}, {kind("a", "x"), 2}}));
  CHECK(*durations.seconds({{kind("b", "x"), 2}, {kind("a", "x"), 2}}) == 8);
}

TEST_CASE("a trial counts for its task until a cell of the task is finished") {
  Durations durations;
  durations.add(kind("a", "x"), 2);
  CHECK_FALSE(durations.know(kind("b", "x")));
  durations.tried(kind("b", "x"), 50);
  CHECK(durations.know(kind("b", "y")));
  CHECK(*durations.seconds({{kind("b", "y"), 3}, {kind("a", "x"), 2}}) == 3 * 50 + 2 * 2);
  durations.add(kind("b", "z"), 10);
  CHECK(*durations.seconds({{kind("b", "y"), 3}, {kind("a", "x"), 2}}) == 3 * 10 + 2 * 2);
}

}  // namespace hardgrad::testing::durations_test
