// Stopping within long computations: measurements, exact moments, exact gradients, evaluations.
#include <doctest/doctest.h>

#include <atomic>

#include "experiments/sweeps/run.hpp"
#include "experiments/sweeps/run_cell.hpp"
#include "tests/experiments/sweeps/files.hpp"

namespace hardgrad::testing::stop_test {
using namespace measurement;
using namespace storage;
using namespace sweeps;
using namespace tasks;
using namespace training;

namespace {

// The number of polls for a stop in a cell that is not stopped. With `at`, the cell stops at that poll.
int questions(const std::string& text, int at = -1) {
  TaskPool tasks;
  const auto plan = make_plan(config_of(text), tasks);
  std::atomic<int> asked = 0;
  const Stop stop = [&] { return ++asked == at; };
  run_cell(plan, plan.cells.at(0), tasks, {.stop = stop});
  return asked;
}

}  // namespace

TEST_CASE("a cell polls for a stop between its replicates, outcomes, examples and batches") {
  const std::string task = "task = \"qa[stories=12,people=2,places=3,memory=6]\"\n";
  const std::string cells[] = {
      "[grid]\ntask = \"bits\"\nestimator = \"rloo\"\n[measure]\nmethod = \"sampled\"\nreplicates = 300\n",
      "precision = \"double\"\n[grid]\ntask = \"bits\"\nmodel = \"bits[bits=3]\"\nestimator = "
      "\"rloo[samples=2]\"\n[measure]\nmethod = \"exact\"\n",
      "[grid]\n" + task + "estimator = \"exact\"\n[measure]\nreplicates = 2\nbatch = 8\n",
      "[grid]\ntask = \"qa[stories=2000]\"\nestimator = \"soft\"\n[measure]\nat = []\n",
  };
  const int least[] = {300, 36, 8, 2};
  for (int i = 0; i < 4; ++i) {
    CAPTURE(i);
    const int all = questions(cells[i]);
    CHECK(all >= least[i]);
    for (int at : {1, (all + 1) / 2, all}) CHECK_THROWS_AS(questions(cells[i], at), Interrupted);
  }
}

}  // namespace hardgrad::testing::stop_test
