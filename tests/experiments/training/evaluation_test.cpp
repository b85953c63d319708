// Evaluations: losses that have no meaning for a network are left out.
#include "experiments/training/evaluation.hpp"

#include <doctest/doctest.h>

#include "experiments/tasks/task.hpp"
#include "tests/core/models/model_check.hpp"

namespace hardgrad::testing::evaluation_test {
using namespace training;

TEST_CASE("evaluation: a reward is no likelihood, so no marginal likelihood and no bound of it is reported") {
  const auto task = tasks::make_task(Spec::parse("glimpse[size=8,examples=20,heldout=4]"), Key(1));
  const auto losses = [&](const char* more) {
    const auto model =
        lively(std::string("glimpse_reader[grid=2,patch=2,glimpses=2,features=3,hidden=4") + more + "]", task->dimensions());
    return evaluate(*task, *model, Target("expected_loss"), {.bound_samples = 3}, Key(3)).losses;
  };
  const auto plain = losses(""), rewarded = losses(",reward=correct");
  CHECK(plain.contains("marginal_likelihood"));
  CHECK(plain.contains("sampled_bound"));
  CHECK(rewarded.contains("expected_loss"));
  CHECK_FALSE(rewarded.contains("marginal_likelihood"));
  CHECK_FALSE(rewarded.contains("sampled_bound"));
}

}  // namespace hardgrad::testing::evaluation_test
