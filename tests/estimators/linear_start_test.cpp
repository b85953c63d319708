// soft[linear_start]: scores as weights in the first steps, the soft network afterwards, also when training is resumed.
#include <doctest/doctest.h>

#include "core/estimator/estimator.hpp"
#include "tests/core/models/model_check.hpp"

namespace hardgrad::testing::linear_start_test {

TEST_CASE("a linear start lasts for the given number of learning steps, and 0 steps means none") {
  const auto model = testing::lively("memory_reader[embedding=4,hops=2]",
                                     {{"vocabulary", 7}, {"answers", 4}, {"answer_word", 2}, {"sentences", 4}, {"words", 2}});
  Batch batch;
  batch.id = {1};
  batch.integers["story"] = shaped<int>({1, 3, 2}, {1, 2, 3, 4, 5, 0});
  batch.integers["story_length"] = shaped<int>({1}, {3});
  batch.integers["question"] = shaped<int>({1, 2}, {6, 2});
  batch.integers["answer"] = shaped<int>({1}, {2});
  const auto make = [&](const std::string& spec) {
    return make_estimator<double>(Spec::parse(spec), model->structure(), Key(1));
  };
  Tape<double> tape;
  const auto step = [&](Estimator<double>& estimator) {
    tape.clear();
    KeyedRandomness none{Key()};
    const auto estimate = estimator.draw({.tape = tape, .model = *model, .batch = batch, .random = none});
    estimator.learn(estimate);
    return estimate.loss;
  };
  const auto soft = make("soft"), linear = make("soft[linear_start=2]");
  const double plain = step(*soft);
  CHECK(soft->state().empty());
  const double first = step(*linear);
  CHECK(std::abs(first - plain) > 1e-3);
  CHECK(step(*linear) == first);
  CHECK(linear->state() == std::vector<double>{2});
  CHECK(step(*linear) == plain);
  const auto resumed = make("soft[linear_start=2]");
  resumed->restore({1});
  CHECK(step(*resumed) == first);
  CHECK(step(*resumed) == plain);
}

}  // namespace hardgrad::testing::linear_start_test
