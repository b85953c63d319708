// Settings of an estimator that change during training.
#include "experiments/training/schedule.hpp"

#include <doctest/doctest.h>

#include "core/support/error.hpp"
#include "experiments/training/evaluation.hpp"
#include "experiments/training/trainer.hpp"

namespace hardgrad::testing::annealing_test {
using namespace measurement;
using namespace tasks;
using namespace training;
namespace {

const RunKeys keys{Key(1) / "init", Key(1) / "order", Key(1) / "noise"};

struct Trained {
  Training<double> training;
  TrainResult result;
  const std::vector<double>& first() const { return training.model->parameters().begin()->value.storage(); }
};
Trained trained(const std::string& estimator, const std::string& anneal, int steps = 12) {
  TrainSettings s;
  s.steps = steps;
  s.batch = 4;
  s.optimizer.learning_rate = 0.05;
  s.anneal = anneal;
  s.measure_at = {0, steps / 2, steps};
  s.measure.replicates = 2;
  s.measure_batch = 2;
  static const std::shared_ptr<const Task> task = make_task(Spec::parse("qa[stories=40,memory=6]"), Key(2));
  auto training = prepare<double>(task, Spec::parse("memory_reader[embedding=4,hops=2]"), Spec::parse(estimator), s, keys);
  auto result = train(training, s, keys);
  return {std::move(training), std::move(result)};
}

double norm(const Trained& of, std::size_t i) { return of.result.measurements.at(i).measurement.estimand_norm; }

}  // namespace

TEST_CASE("an annealed setting moves on a line from its initial value to the other") {
  const auto spec = Spec::parse("entropy_regularised[samples=2,lambda_e=0.5]");
  CHECK(annealed(spec, "", 0.5).text == spec.text);
  CHECK(annealed(spec, "lambda_e=0.1", 0).text == "entropy_regularised[samples=2,lambda_e=0.5]");
  CHECK(annealed(spec, "lambda_e=0.1", 0.5).text == "entropy_regularised[samples=2,lambda_e=0.3]");
  CHECK(annealed(spec, "lambda_e=0.1", 1).text == "entropy_regularised[samples=2,lambda_e=0.1]");
  const auto both = annealed(Spec::parse("entropy_regularised"), "lambda_e=1,lambda_r=3", 1);
  CHECK(both.text == "entropy_regularised[lambda_e=1,lambda_r=3]");
  const auto warm = annealed(Spec::parse("rloo[target=elbo,kl_weight=0]"), "kl_weight=1", 0.25);
  CHECK(target_of(warm).text() == "elbo[weight=0.25]");
}

TEST_CASE("settings that cannot be annealed are rejected") {
  const auto refused = [](const char* estimator, const char* anneal) { (void)annealed(Spec::parse(estimator), anneal, 0); };
  CHECK_THROWS_WITH_AS(refused("entropy_regularised", "lambda_ee=1"),
                       "train.anneal: entropy_regularised has no setting lambda_ee that is a real number (did you mean "
                       "\"lambda_e\"?)",
                       UsageError);
  CHECK_THROWS_AS(refused("rloo", "samples=2"), UsageError);  // not a real number
  CHECK_THROWS_AS(refused("gumbel_softmax", "temperature=-1"), UsageError);
  CHECK_THROWS_AS(refused("gumbel_softmax", "temperature=cold"), UsageError);
  CHECK_THROWS_AS(refused("gumbel_softmax", "temperature"), UsageError);
}

TEST_CASE("annealing to the initial value changes nothing, otherwise the target moves, too") {
  const std::string spec = "entropy_regularised[samples=2,lambda_e=0.5]";
  const auto plain = trained(spec, ""), still = trained(spec, "lambda_e=0.5"), moved = trained(spec, "lambda_e=0");
  CHECK(plain.first() == still.first());  // averages are kept between steps
  CHECK(plain.result.measurements.back().measurement.mean == still.result.measurements.back().measurement.mean);
  CHECK(plain.first() != moved.first());
  CHECK(norm(moved, 0) == norm(plain, 0));
  CHECK(moved.training.estimator->target().text() ==
        trained("entropy_regularised[samples=2,lambda_e=0]", "").training.estimator->target().text());
  // At the end the estimator has weight 0.
  CHECK(moved.training.estimator_spec.text == "entropy_regularised[samples=2,lambda_e=0]");
}

TEST_CASE("the weight of the divergence is annealed, in training and in the measured target, while evaluations have weight 1") {
  const auto of_weight = [](const char* weight) { return std::string("rloo[samples=2,target=elbo,kl_weight=") + weight + "]"; };
  const auto none = trained(of_weight("0"), ""), whole = trained(of_weight("1"), ""),
             grown = trained(of_weight("0"), "kl_weight=1");
  CHECK(norm(grown, 0) == norm(none, 0));
  CHECK(norm(whole, 0) != norm(none, 0));
  CHECK(grown.first() != none.first());
  CHECK(grown.first() != whole.first());
  CHECK(grown.training.estimator_spec.text == of_weight("1"));
  CHECK(grown.training.estimator->target().text() == "elbo");
  const auto losses = [&](const char* target) {
    return evaluate(*none.training.task, *none.training.model, Target(target), {}, Key(3)).losses;
  };
  CHECK(losses("elbo[weight=0]").contains("elbo"));
  CHECK(losses("elbo[weight=0]") == losses("elbo"));
}

TEST_CASE("an annealed estimator keeps its networks") {
  const auto plain = trained("relax[hidden=3]", "");
  const auto still = trained("relax[hidden=3]", "temperature=0.5");
  REQUIRE(plain.training.estimator->own_parameters().size() == still.training.estimator->own_parameters().size());
  const auto learned = [](const Trained& of) { return (of.training.estimator->own_parameters().begin())->value.storage(); };
  const auto fresh = trained("relax[hidden=3]", "", 0);
  CHECK(learned(plain) != learned(fresh));
  CHECK(learned(still) != learned(fresh));
}

}  // namespace hardgrad::testing::annealing_test
