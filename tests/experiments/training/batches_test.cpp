// Batches of the training split.
#include "experiments/training/schedule.hpp"

#include <doctest/doctest.h>

#include <set>

namespace hardgrad::testing::batches_test {
using namespace tasks;
using namespace training;

TEST_CASE("an example's dropout changes every epoch, and repeating a step gives the same batch") {
  const auto task = make_task(Spec::parse("qa[stories=10,memory=6]"), Key(2));
  const int examples = static_cast<int>(task->size(Split::train));
  Batches batches(*task, examples, Key(3)), again(*task, examples, Key(3));
  std::set<std::pair<int, int>> keys;
  for (int epoch : {0, 1, 2}) {
    const auto batch = batches.at(epoch);
    CHECK(batch.ints("dropout").storage() == again.at(epoch).ints("dropout").storage());
    for (int b = 0; b < examples; ++b) keys.emplace(row_of(batch.ints("dropout"), b)[0], row_of(batch.ints("dropout"), b)[1]);
  }
  CHECK(keys.size() == static_cast<std::size_t>(3 * examples));
  CHECK(!task->batch(Split::train, {0}).integers.contains("dropout"));
}

TEST_CASE("a curriculum depends on the examples seen, for any order of requests") {
  const auto task = make_task(Spec::parse("algorithm[bits=1,max_length=9,curriculum=400,examples=100]"), Key(2));
  Batches batches(*task, 50, Key(3)), again(*task, 50, Key(3));
  const auto mean = [&](int from, int to) {
    double sum = 0;
    for (int step = from; step < to; ++step) {
      const auto batch = batches.at(step);
      for (int steps : batch.ints("length")) sum += steps / (50.0 * (to - from));
    }
    return sum;
  };
  // Copies of n vectors take 2 n + 1 steps. n is 1 to 9 for a fifth (mean 5), and 1 to 1, ..., 8 for the others (mean 2.75 over
  // steps 0 to 7). Without a curriculum: 11 steps.
  const double early = mean(0, 8), late = mean(8, 16);
  CHECK(early < 9);
  CHECK(late == doctest::Approx(11).epsilon(0.1));
  CHECK(again.at(5).ints("length").storage() == batches.at(5).ints("length").storage());
}

}  // namespace hardgrad::testing::batches_test
