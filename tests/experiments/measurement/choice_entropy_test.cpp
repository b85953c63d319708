// The entropy of choices: closed forms for bits, the chain rule for ragged choices that feed later ones.
#include "experiments/measurement/choice_entropy.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "core/choice/handlers.hpp"
#include "experiments/measurement/measure.hpp"
#include "experiments/verification/recurrent.hpp"
#include "tests/support/exactness.hpp"

namespace hardgrad::testing::choice_entropy_test {
using namespace measurement;
namespace {

using verification::Recurrent;

double entropy_of(const Model<double>& model, const Batch& batch, const Target& target = "expected_loss",
                  double leaf_cap = 1e6) {
  return choice_entropy(target, model, batch, leaf_cap, Key(1)).mean;
}

const double three_to_one = -(0.75 * std::log(0.75) + 0.25 * std::log(0.25));

TEST_CASE("bits: the mean of their entropies") {
  const auto model = model_of("bits[bits=2,t=0.1,logit=0;1.0986122886681098]");  // odds of one to one, and of three to one
  CHECK(entropy_of(*model, one_example()) == doctest::Approx((std::log(2) + three_to_one) / 2).epsilon(1e-14));
  CHECK(entropy_of(*model, one_example(), "soft") == entropy_of(*model, one_example()));
}

TEST_CASE("sparsemax: the entropy of its weights") {
  // Logits (0, 1/2) give the weights (1/4, 3/4); (0, 2) leave one option.
  CHECK(entropy_of(*model_of("bits[t=0.1,logit=0.5]"), one_example(), "sparsemax") ==
        doctest::Approx(three_to_one).epsilon(1e-14));
  CHECK(entropy_of(*model_of("bits[t=0.1,logit=2]"), one_example(), "sparsemax") == 0);
}

TEST_CASE("subsets: also of one option, and from draws where they are too many to list") {
  CHECK(std::isnan(entropy_of(*model_of("subsets[options=1,picks=1]"), one_example())));
  CHECK(entropy_of(*model_of("subsets[options=4,picks=1]"), one_example()) == doctest::Approx(std::log(4)).epsilon(1e-13));
  const auto many =
      model_of("subsets[options=200,picks=4,law=plackett_luce]");  // equal logits: all subsets are equally probable
  CHECK(entropy_of(*many, one_example()) == doctest::Approx(std::log(64684950.0)).epsilon(1e-12));
}

TEST_CASE("choices that feed later ones: the entropy of complete sets over their length, padding does not count") {
  const Recurrent<double> model(true);
  const auto batch = Recurrent<double>::batch();
  Tape<double> tape;
  EnumerateHandler<double> handler;
  Episode<double> episode(tape, handler, batch.examples());
  model.run(batch, episode);
  const auto& leaves = episode.steps().back().choice.rows;
  const auto log_p = episode.path_log_probability(leaves).value();
  double mean = 0;
  for (std::size_t r = 0; r < leaves->size(); ++r)
    mean -= std::exp(log_p(r, 0)) * log_p(r, 0) / batch.ints("length").flat(leaves->example[r]) / batch.examples();
  CHECK(entropy_of(model, batch) == doctest::Approx(mean).epsilon(1e-12));
  CHECK(entropy_of(model, batch, "soft") != doctest::Approx(mean).epsilon(1e-6));  // different prefixes
  const double sampled = entropy_of(model, batch, "expected_loss", 5);
  CHECK(sampled != mean);
  CHECK(sampled == doctest::Approx(mean).epsilon(0.02));
  CHECK(std::isnan(entropy_of(model, batch, "sparsemax", 5)));
}

TEST_CASE("examples without a choice are omitted, without any choice the result is NaN") {
  const Recurrent<double> model(true);
  auto batch = Recurrent<double>::batch();
  const double last = entropy_of(model, batch.select({2}));
  batch.integers["options"].storage() = {1, 1, 3};
  CHECK(entropy_of(model, batch) == last);
  batch.integers["options"].storage() = {1, 1, 1};
  CHECK(std::isnan(entropy_of(model, batch)));
}

TEST_CASE("a measurement records the network's entropy, for any estimator") {
  const Recurrent<double> model(true);
  const auto batch = Recurrent<double>::batch();
  for (const auto* name : {"rloo", "variational_bound"}) {
    const auto spec = Spec::parse(name);
    const auto estimator = make_estimator<double>(spec, model.structure(), Key(2));
    MeasureSettings settings;
    settings.replicates = 4;
    CHECK(measure(spec, *estimator, model, batch, settings, Key(9)).attention_entropy == entropy_of(model, batch));
  }
}

TEST_CASE("entropy by site: with one site it equals the total") {
  const auto model = model_of("bits[bits=2,t=0.1,logit=0;1.0986122886681098]");
  const auto entropy = choice_entropy<double>("expected_loss", *model, one_example(), 1e6, Key(1));
  CHECK(entropy.by_site == std::map<std::string, double>{{"bit", entropy.mean}});
}

}  // namespace
}  // namespace hardgrad::testing::choice_entropy_test
