// Digits as patches: the pixels of an image, each once, in their places.
#include <cmath>

#include "experiments/tasks/task.hpp"
#include "tests/experiments/tasks/support.hpp"

namespace hardgrad::testing::patches_test {
using namespace tasks;

TEST_CASE("patches: pixel (r, c) of the image of a glimpse is in its patch") {
  const auto task = make_task(Spec::parse("patches[size=12,examples=40,patch=3]"), Key(1));
  const auto glimpse = make_task(Spec::parse("glimpse[size=12,examples=40]"), Key(1));
  CHECK(task->dimensions() == Dimensions{{"features", 16}, {"feature_width", 9}, {"labels", 10}});
  for (auto split : {Split::train, Split::heldout, Split::test}) {
    const auto batch = task->batch(split, {3, 0, 7}), whole = glimpse->batch(split, {3, 0, 7});
    CHECK(batch.ints("label").storage() == whole.ints("label").storage());
    CHECK(batch.id == whole.id);
    for (int b = 0; b < 3; ++b)
      for (int r = 0; r < 12; ++r)
        for (int c = 0; c < 12; ++c)
          CHECK(row_of(batch.numbers("x"), b)[(r / 3 * 4 + c / 3) * 9 + r % 3 * 3 + c % 3] ==
                row_of(whole.numbers("image"), b)[r * 12 + c]);
  }
  CHECK(task->training_batch({5}, Key(1)).numbers("x").storage() == task->training_batch({5}, Key(2)).numbers("x").storage());
}

TEST_CASE("patches: metrics of answers and picks, and a patch that does not divide an image") {
  const auto task = make_task(Spec::parse("patches[size=8,examples=40]"), Key(1));
  const auto batch = task->batch(Split::test, {0, 1});
  Observation seen{full<int>({2, 1}, batch.ints("label").flat(1)), full<int>({2, 2}, 0), 2};
  seen.choices.storage() = {0, 1, 1, 3};
  auto metrics = task->metrics();
  task->score(batch, seen, metrics);
  CHECK(value(metrics, "accuracy") == 0.5);
  CHECK(value(metrics, "options_used") == doctest::Approx(std::pow(2, 1.5)));
  CHECK_THROWS_WITH_AS(make_task(Spec::parse("patches[size=8,patch=3]"), Key(1)),
                       "patches: patch=3 does not divide images of 8x8: take a divisor", UsageError);
}

}  // namespace hardgrad::testing::patches_test
