// path_only: on the NOT gate by hand, and zero where the loss depends on the parameters through the choices alone.
#include <doctest/doctest.h>

#include <cmath>

#include "experiments/tasks/task.hpp"
#include "tests/support/exactness.hpp"

namespace hardgrad::testing::path_only_test {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

TEST_CASE("path_only on the NOT gate: the gate never learns, and the output learns for the drawn or the most probable gate") {
  const double w0 = 0.7, b0 = -0.4, w1 = 0.3, b1 = 0.1;
  const auto task = tasks::make_task(Spec::parse("not_gate"), Key(1));
  const auto model = tasks::make_model_for<double>(*task, Spec::parse("not_gate[w0=0.7,b0=-0.4,w1=0.3,b1=0.1]"), Key(1), false);
  const auto batch = task->batch(tasks::Split::train, {0, 1});
  for (const bool threshold : {false, true}) {
    CAPTURE(threshold);
    const auto moments = moments_of(threshold ? "path_only[hard_threshold=true]" : "path_only[samples=2]", *model, batch);
    double in_b1 = 0, in_w1 = 0, loss = 0;
    for (const double x : {0.0, 1.0}) {
      const double p = sigmoid(w0 * x + b0), open = threshold ? (p > 0.5 ? 1 : 0) : p, y = sigmoid(w1 * x + b1), target = 1 - x;
      const double slope = open * (y - target) * y * (1 - y);  // d f / d b1, of both examples' mean
      in_b1 += slope;
      in_w1 += slope * x;
      loss += (open * (target - y) * (target - y) + (1 - open) * target * target) / 2;
    }
    REQUIRE(moments.mean.size() == 4);
    CHECK(moments.mean[0] == 0);  // w0
    CHECK(moments.mean[1] == 0);  // b0
    CHECK(moments.mean[2] == doctest::Approx(in_w1).epsilon(1e-12));
    CHECK(moments.mean[3] == doctest::Approx(in_b1).epsilon(1e-12));
    CHECK(moments.loss == doctest::Approx(loss).epsilon(1e-12));
    CHECK((moments.trace == 0) == threshold);
  }
}

TEST_CASE("path_only is zero where a loss depends on the parameters through the choices alone") {
  int visited = 0;
  for (const auto* name : {"bits[bits=2,logit=0.3;-0.4]", "bits[options=3,function=table]", "subsets[options=4,picks=2]",
                           "gaussians[columns=2,k=0.7]"})
    for (const auto* spec : {"path_only", "path_only[samples=3]", "path_only[hard_threshold=true]"}) {
      CAPTURE(name);
      CAPTURE(spec);
      const auto model = model_of(name);
      const auto estimator = make_estimator<double>(Spec::parse(spec), model->structure(), Key(2));
      for (double g : gradient_of(*estimator, *model, one_example(), Key(4))) CHECK(g == 0);
      ++visited;
    }
  CHECK(visited == 12);
}

}  // namespace
}  // namespace hardgrad::testing::path_only_test
