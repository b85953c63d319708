// Batches of the training split.
#include "experiments/training/batches.hpp"

#include <doctest/doctest.h>

#include <set>

namespace hardgrad {

TEST_CASE("every epoch an example loses other entries to dropout, and the same step is the same batch again") {
  const auto task = make_task(Spec::parse("qa[stories=10,memory=6]"), Key(2));
  const int examples = static_cast<int>(task->size(Split::train));
  Batches batches(*task, examples, Key(3)), again(*task, examples, Key(3));
  std::set<std::pair<int, int>> keys;
  for (int epoch : {0, 1, 2}) {
    const auto batch = batches.at(epoch);
    CHECK(batch.ints("dropout").data == again.at(epoch).ints("dropout").data);
    for (int b = 0; b < examples; ++b) keys.emplace(batch.ints("dropout").row(b)[0], batch.ints("dropout").row(b)[1]);
  }
  CHECK(keys.size() == static_cast<std::size_t>(3 * examples));
  CHECK(!task->batch(Split::train, {0}).integers.contains("dropout"));
}

}  // namespace hardgrad
