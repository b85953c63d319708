// Measurements: sampled ones agree with exact ones, also on real files; missing results have a reason.
#include "experiments/measurement/measure.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <numeric>

#include "experiments/tasks/task.hpp"
#include "experiments/verification/recurrent.hpp"
#include "tests/support/exactness.hpp"

namespace hardgrad::testing::measure_test {
using namespace measurement;
using namespace tasks;
namespace {

using verification::Recurrent;

Measurement measured(const std::string& spec, const Model<double>& model, const Batch& batch, bool exact, int replicates = 400,
                     double leaf_cap = 1e6) {
  MeasureSettings settings;
  settings.method = exact ? Method::exact : Method::sampled;
  settings.replicates = replicates;
  settings.leaf_cap = leaf_cap;
  return measure(Spec::parse(spec), *estimator_of(spec, model), model, batch, settings, Key(9));
}

TEST_CASE("the interval of a sampled measurement contains the exact variance") {
  Recurrent<double> model(true);
  const auto batch = Recurrent<double>::batch();
  for (const auto* spec : {"reinforce", "rloo[samples=2]", "entropy_regularised[semi=true]", "variational_bound"}) {
    CAPTURE(spec);
    const auto exact = measured(spec, model, batch, true), sampled = measured(spec, model, batch, false);
    const auto interval = sampled.intervals.at("variance");
    const double slack = interval[1] - interval[0];  // twice as wide: eight intervals at 95%
    CHECK(exact.variance > interval[0] - slack / 2);
    CHECK(exact.variance < interval[1] + slack / 2);
    CHECK(sampled.bias_p_value > 1e-3);
    CHECK(exact.rows == doctest::Approx(sampled.rows));
    double groups = 0;
    for (const auto& [name, variance] : exact.variance_by_group) groups += variance;
    CHECK(groups == doctest::Approx(exact.variance).epsilon(1e-12));
  }
}

TEST_CASE("bias is reported against the other targets") {
  auto model = model_of("bits[t=0.1,logit=0.5]");
  const auto m = measured("soft", *model, one_example(), true);
  const auto g = [&](const char* target) { return exact_gradient<double>(target, *model, one_example(), 10)[0]; };
  const double gap = g("soft") - g("expected_loss");
  CHECK(m.squared_bias == 0);
  CHECK(m.bias_against.at("expected_loss") == doctest::Approx(gap * gap).epsilon(1e-10));
  CHECK(m.bias_against.count("elbo") == 0);
}

TEST_CASE("if the truth cannot be enumerated, a named long run with its error replaces it") {
  Recurrent<double> model(true);
  const auto m = measured("reinforce", model, Recurrent<double>::batch(), false, 200, 3);
  CHECK(m.estimand == "200 x rloo[samples=16,reward_to_go=true]");
  CHECK(m.estimand_standard_error > 0);
  const auto truth = exact_gradient({}, model, Recurrent<double>::batch(), 1e6);
  double norm = 0;
  for (double v : truth) norm += v * v;
  CHECK(m.estimand_norm == doctest::Approx(std::sqrt(norm)).epsilon(0.05));
  CHECK(std::isnan(m.bias_p_value));
}

TEST_CASE("variance needs no true gradient") {
  Recurrent<double> model(true);
  MeasureSettings settings;
  settings.method = Method::sampled;
  settings.replicates = 100;
  const auto of = [&](Estimand estimand, double leaf_cap) {
    settings.estimand = estimand;
    settings.leaf_cap = leaf_cap;
    return measure(Spec::parse("reinforce"), *estimator_of("reinforce", model), model, Recurrent<double>::batch(), settings,
                   Key(9));
  };
  const auto all = of(Estimand::any, 1e6), none = of(Estimand::none, 1e6), capped = of(Estimand::enumerated, 3);
  CHECK(all.estimand == "enumerated");
  CHECK(none.estimand == "not asked for");
  CHECK(capped.estimand.find("unknown: ") == 0);
  for (const auto& m : {none, capped}) {
    CHECK(m.variance == doctest::Approx(all.variance).epsilon(1e-10));
    CHECK(m.intervals.at("variance")[1] == doctest::Approx(all.intervals.at("variance")[1]).epsilon(1e-8));
    CHECK(std::isnan(m.squared_bias));
    CHECK(std::isnan(m.estimand_norm));
    CHECK(std::isnan(m.bias_p_value));
    CHECK((m.estimand != "not asked for" || m.bias_against.empty()));
  }
  CHECK(std::isfinite(all.squared_bias));
}

/// The first examples of a real file; nothing, with a message, without HARDGRAD_DATA.
std::optional<Batch> real_batch(const std::string& task_spec, Dimensions& dimensions, int examples) {
  const char* data = std::getenv("HARDGRAD_DATA");
  if (!data || !*data) {
    MESSAGE("SKIPPED: set HARDGRAD_DATA to the folder of real files");
    return {};
  }
  const auto task = make_task(Spec::parse(task_spec), Key(1));
  dimensions = task->dimensions();
  std::vector<int> first(examples);
  std::iota(first.begin(), first.end(), 0);
  return task->batch(Split::train, first);
}

void check_on_real(const std::string& task, const std::string& model_spec, int examples) {
  Dimensions dimensions;
  const auto batch = real_batch(task, dimensions, examples);
  if (!batch) return;
  const auto model = make_model<double>(Spec::parse(model_spec), dimensions, Key(2), true);
  for (const auto* spec : {"exact", "exact_marginal", "soft", "reinforce", "moving_baseline", "nvil", "rloo",
                           "entropy_regularised", "variational_bound"}) {
    CAPTURE(spec);
    const auto m = measured(spec, *model, *batch, false, 100);
    CHECK(m.estimand == "enumerated");
    CHECK(m.bias_p_value > 1e-3);
    CHECK(m.squared_bias < 1e-3 + 5 * m.variance / 100);
  }
}

TEST_CASE("a gradient has a length even if its square underflows, sampled and exact") {
  for (const auto* spec : {"bits[t=0.3,logit=700]", "bits[t=0.7,logit=-700]"}) {
    CAPTURE(spec);
    const auto model = model_of(spec);
    const auto m = measured("rloo[samples=2]", *model, one_example(), true);
    // p (1 - p) (f(1) - f(0)) of one bit. Two samples differ with probability 2 p (1 - p), and then the estimate is half of
    // that step.
    const double step = (0.7 * 0.7 - 0.3 * 0.3), p = std::exp(-700.0);
    CHECK(m.estimand_norm == doctest::Approx(p * step).epsilon(1e-12));
    CHECK(m.variance == doctest::Approx(2 * p * step * step / 4).epsilon(1e-9));
    CHECK(std::isnan(m.snr));  // the gradient is below the rounding of its samples
  }
}

TEST_CASE("real bAbI qa1, three hops: no unbiased estimator shows a bias, against the enumerated truth") {
  check_on_real("qa[path=babi/en/qa1_single-supporting-fact_train.txt]", "memory_reader[hops=3]", 4);
}

TEST_CASE("real Tatoeba, sampled feed, short sentences: no unbiased estimator shows a bias") {
  check_on_real("translation[data=tatoeba,path=tatoeba/deu.txt.gz,max_length=4,vocabulary=200,limit=5000]",
                "translator[embedding=8,hidden=8,feed=sampled]", 4);
}

}  // namespace
}  // namespace hardgrad::testing::measure_test
