// The transformer: gradients with every kind of answer, causality, and settings that are limits of each other.
#include <doctest/doctest.h>

#include "core/models/transformer/layers.hpp"
#include "tests/core/models/given_choices.hpp"
#include "tests/support/gradient_check.hpp"

namespace hardgrad::testing::transformer_test {
namespace {

const Dimensions dimensions{{"tokens", 5}, {"positions", 4}, {"labels", 3}};
const std::string small = "transformer[width=4,inner=3";

/// Sequences of four tokens and of three; labels in the middle and at the end.
Batch two_sequences(int garbage = -1) {
  Batch batch;
  batch.id = {4, 7};
  batch.integers["token"] = shaped<int>({2, 4}, {0, 3, 1, 4, 2, 2, 0, garbage});
  batch.integers["label"] = shaped<int>({2, 4}, {-1, 2, -1, 0, -1, -1, 1, -1});
  return batch;
}
/// Of the first column of each question: layers=1, heads=1 or share=true.
const Options one_layer{{0, 0}, {1, 0}, {0, 1}, {2, 0}};
/// Key 1 and key 2 in turn; the second sequence has no fourth token, and choices at tokens without a label have one option.
const Options two_layers{{0, 0}, {0, 0}, {1, 0}, {0, 0}, {2, 1}, {0, 2}, {3, 0}, {1, 0}};

/// The options of D columns; each takes the key before that of the column before it.
Options columns(const Options& one, int D) {
  Options all;
  for (const auto& step : one) {
    all.emplace_back();
    for (int option : step)
      for (int d = 0; d < D; ++d) all.back().push_back(std::max(0, option - d));
  }
  return all;
}

/// The losses of every row, and the sum's gradient, under a handler.
struct Result {
  std::vector<double> loss, gradient;
};
Result result_of(const Model<double>& model, const Batch& batch, Handler<double>&& handler) {
  Tape<double> tape;
  Episode<double> episode(tape, handler, batch.examples());
  model.run(batch, episode);
  Result result{.loss = std::vector<double>(batch.examples()), .gradient = std::vector<double>(model.parameters().size())};
  auto total = tape.constant(1, 1);
  for (const auto& cost : episode.costs()) {
    for (int b = 0; b < batch.examples(); ++b) result.loss[b] += cost.loss.value().data[b];
    total = add(total, sum(cost.loss));
  }
  differentiate(total, model.parameters(), result.gradient);
  return result;
}
/// Gradients of parameters that both models have.
std::vector<double> gradient_of(const Result& result, Model<double>& model, Model<double>& other) {
  std::vector<double> shared;
  for (const auto& p : model.parameters())
    if (other.parameters().find(p.name))
      shared.insert(shared.end(), result.gradient.begin() + p.offset, result.gradient.begin() + p.offset + p.value.size());
  return shared;
}
/// A model with the parameters of another where names agree.
std::unique_ptr<Model<double>> like(const std::string& spec, Model<double>& other) {
  auto model = lively(spec, dimensions);
  for (auto& p : model->parameters())
    if (const auto* from = other.parameters().find(p.name)) p.value = from->value;
  return model;
}

}  // namespace

TEST_CASE("transformer: gradients, padding and copies of rows of one layer") {
  for (const std::string more :
       {"layers=1,heads=1", "layers=1,heads=1,places=sinusoidal", "layers=1,share=true,places=rotary",
        "layers=1,heads=1,scorer=indexer,index_width=2", "layers=1,share=true,scorer=indexer,index_width=2,places=rotary"}) {
    const auto spec = "transformer[width=4,inner=3," + more + "]";
    check_model({.spec = spec,
                 .dimensions = dimensions,
                 .batch = two_sequences(),
                 .forced = one_layer,
                 .padded = {two_sequences(3)},
                 .dependence = "factorised",
                 .posterior = false});
    const auto model = lively(spec, dimensions);
    CHECK(model->outcomes(two_sequences()) == std::vector<double>{2 * 4, 3});
    check_gradient("enumerated", *model, two_sequences(), [] { return std::make_unique<EnumerateHandler<double>>(); });
  }
}

TEST_CASE("transformer: several heads and layers") {
  for (const std::string more : {"", ",places=rotary", ",scorer=indexer,index_width=2", ",inner=0,heads=4"}) {
    const int D = more == ",inner=0,heads=4" ? 4 : 2;
    check_model({.spec = more == ",inner=0,heads=4" ? "transformer[width=4,inner=0,heads=4]" : small + more + "]",
                 .dimensions = dimensions,
                 .batch = two_sequences(),
                 .forced = columns(two_layers, D),
                 .columns = D,
                 .padded = {two_sequences(3)},
                 .dependence = "sequential",
                 .posterior = false});
  }
  check_model({.spec = small + ",share=true]",
               .dimensions = dimensions,
               .batch = two_sequences(),
               .forced = two_layers,
               .padded = {two_sequences(3)},
               .dependence = "sequential",
               .posterior = false});
  CHECK(lively(small + ",share=true]", dimensions)->outcomes(two_sequences()) == std::vector<double>{24 * 8, 6 * 3});
  CHECK(lively(small + "]", dimensions)->outcomes(two_sequences()) == std::vector<double>{24 * 24 * 64, 36 * 9});
  CHECK(lively(small + ",layers=1]", dimensions)->structure().dependence() == "factorised by step");
  CHECK(lively(small + ",picks=0]", dimensions)->structure().dependence() == "no choice");
  CHECK(lively(small + ",picks=2,share=true]", dimensions)->outcomes(two_sequences()) == std::vector<double>{3 * 6 * 6, 3 * 3});
}

TEST_CASE("transformer: subsets of keys, enumerated") {
  for (const std::string more : {"picks=2,share=true", "picks=2,share=true,law=plackett_luce,within=equal",
                                 "picks=2,share=true,scorer=indexer,index_width=2,places=rotary", "picks=3,layers=1"}) {
    CAPTURE(more);
    const auto model = lively(small + "," + more + "]", dimensions);
    check_gradient("enumerated", *model, two_sequences(), [] { return std::make_unique<EnumerateHandler<double>>(); });
    check_gradient("mode", *model, two_sequences(), [] { return std::make_unique<GreedyHandler<double>>(); });
    if (more.find("plackett") == std::string::npos)
      check_gradient("marginals", *model, two_sequences(), [] { return std::make_unique<ExpectedHandler<double>>(); });
  }
}

TEST_CASE("transformer: all keys are read softly with picks=0, as a subset of all keys, or by the mean of one key") {
  for (const std::string more : {"", ",places=rotary", ",layers=1", ",heads=1,layers=3"}) {
    CAPTURE(more);
    const auto soft = lively(small + ",picks=0" + more + "]", dimensions);
    const auto wanted = result_of(*soft, two_sequences(), GreedyHandler<double>());
    int compared = 0;
    for (const std::string same :
         {",picks=4", ",picks=9", ",picks=9,law=plackett_luce", ",picks=4,law=top", ",picks=9,share=true", ",picks=1"}) {
      CAPTURE(same);
      const auto model = like(small + same + more + "]", *soft);
      const auto expected = result_of(*model, two_sequences(), ExpectedHandler<double>());
      CHECK(distance(expected.loss, wanted.loss) < 1e-13);
      CHECK(distance(expected.gradient, wanted.gradient) < 1e-12);
      const auto hard = result_of(*model, two_sequences(), GreedyHandler<double>());
      CHECK((distance(hard.loss, wanted.loss) < 1e-13) == (same != ",picks=1"));
      ++compared;
    }
    CHECK(compared == 6);
  }
}

TEST_CASE("transformer: other limits") {
  const auto one = lively(small + ",picks=2]", dimensions);
  const auto mode = result_of(*one, two_sequences(), GreedyHandler<double>());
  // The largest logits are the mode of both laws.
  for (const std::string law : {"top", "plackett_luce"}) {
    const auto other = like(small + ",picks=2,law=" + law + "]", *one);
    const auto found = result_of(*other, two_sequences(), GreedyHandler<double>());
    CHECK(distance(found.loss, mode.loss) < 1e-14);
    CHECK(distance(found.gradient, mode.gradient) < 1e-13);
  }
  CHECK(distance(result_of(*like(small + ",picks=2,within=equal]", *one), two_sequences(), GreedyHandler<double>()).loss,
                 mode.loss) > 1e-4);
  // One token has one key, however it is read.
  Batch token;
  token.id = {1};
  token.integers["token"] = shaped<int>({1, 1}, {2});
  token.integers["label"] = shaped<int>({1, 1}, {1});
  const auto alone = result_of(*one, token, GreedyHandler<double>());
  for (const std::string more : {",picks=0", ",picks=1", ",picks=3,within=equal", ",share=true", ",law=top"}) {
    const auto found = result_of(*like(small + more + "]", *one), token, GreedyHandler<double>());
    CHECK(distance(found.loss, alone.loss) < 1e-14);
  }
  // One head shares its choice with itself.
  const auto head = lively(small + ",heads=1]", dimensions);
  const auto shared = result_of(*like(small + ",heads=1,share=true]", *head), two_sequences(), ExpectedHandler<double>());
  CHECK(distance(shared.loss, result_of(*head, two_sequences(), ExpectedHandler<double>()).loss) == 0);
  // An indexer that scores all keys 0 weighs them equally, as do heads without queries.
  const auto indexed = lively(small + ",scorer=indexer,index_width=2]", dimensions);
  const auto equal = like(small + "]", *indexed);
  for (auto& p : indexed->parameters())
    if (p.name.ends_with("gain.weight")) std::fill(p.value.begin(), p.value.end(), 0);
  for (auto& p : equal->parameters())
    if (p.name.ends_with("query.weight")) std::fill(p.value.begin(), p.value.end(), 0);
  CHECK(distance(result_of(*indexed, two_sequences(), ExpectedHandler<double>()).loss,
                 result_of(*equal, two_sequences(), ExpectedHandler<double>()).loss) < 1e-14);
}

TEST_CASE("transformer: imitation adds the divergence from dense attention, and moves the indexer only") {
  const std::string indexer = ",scorer=indexer,index_width=2,picks=0";
  for (const std::string share : {"", ",share=true"}) {
    const auto dense = lively(small + ",picks=0]", dimensions);
    const auto once = like(small + indexer + share + ",imitation=0.5]", *dense);
    const auto twice = like(small + indexer + share + ",imitation=1]", *dense);
    const auto without = result_of(*dense, two_sequences(), GreedyHandler<double>());
    const auto half = result_of(*once, two_sequences(), GreedyHandler<double>());
    const auto whole = result_of(*twice, two_sequences(), GreedyHandler<double>());
    double indexers = 0;
    for (const auto& p : once->parameters())
      for (std::size_t i = 0; i < p.value.size(); ++i) {
        const double moved = half.gradient[p.offset + i];
        if (p.name.starts_with("index.")) {
          CHECK(moved == doctest::Approx(whole.gradient[p.offset + i] / 2).epsilon(1e-12));
          indexers = std::max(indexers, std::abs(moved));
        }
      }
    CHECK(indexers > 1e-3);
    CHECK(distance(gradient_of(half, *once, *dense), gradient_of(without, *dense, *once)) < 1e-14);
    for (std::size_t b = 0; b < 2; ++b) {
      CHECK(half.loss[b] > without.loss[b] + 1e-4);
      CHECK(whole.loss[b] - without.loss[b] == doctest::Approx(2 * (half.loss[b] - without.loss[b])));
    }
    const auto* stops = dynamic_cast<const StopsGradients*>(once.get());
    REQUIRE(stops);
    CHECK(stops->stopped.starts_with("imitation"));
    CHECK(*once->structure().no_likelihood);
    CHECK(dynamic_cast<const StopsGradients*>(dense.get())->stopped.empty());
    // The indexer's gradient is that of the cost, whose target does not depend on it.
    double worst = 0;
    for (auto& p : once->parameters()) {
      if (!p.name.starts_with("index.")) continue;
      for (std::size_t i = 0; i < p.value.size(); ++i) {
        const double kept = p.value.flat(i);
        double at[2];
        for (int side : {0, 1}) {
          p.value.flat(i) = kept + (side ? 1e-5 : -1e-5);
          const auto loss = result_of(*once, two_sequences(), GreedyHandler<double>()).loss;
          at[side] = loss[0] + loss[1];
        }
        p.value.flat(i) = kept;
        worst = std::max(worst, std::abs((at[1] - at[0]) / 2e-5 - half.gradient[p.offset + i]));
      }
    }
    CHECK(worst < 1e-8);
  }
}

TEST_CASE("transformer: no loss depends on a later token") {
  for (const std::string more :
       {"", ",picks=2", ",picks=0,places=rotary", ",scorer=indexer,picks=2,places=rotary,imitation=1"}) {
    CAPTURE(more);
    const auto model = lively(small + more + "]", dimensions);
    const auto until = [&](int tokens, int changed) {
      auto batch = two_sequences().select({0});
      for (int t = tokens; t < 4; ++t) batch.integers["label"](0, t) = -1;
      if (changed >= 0) batch.integers["token"](0, changed) = 2;
      return result_of(*model, batch, ExpectedHandler<double>()).loss[0];
    };
    CHECK(until(2, 2) == until(2, -1));
    CHECK(until(2, 3) == until(2, -1));
    CHECK(std::abs(until(2, 0) - until(2, -1)) > 1e-6);
    CHECK(std::abs(until(4, 2) - until(4, -1)) > 1e-6);
  }
}

TEST_CASE("transformer: turned queries and keys have products that depend on the distance of their places") {
  Tape<double> tape;
  const auto x = random_matrix(2, 6, 3);
  const auto product = [&](int i, int j) {
    const auto both = models::transformer::rotated(tape.constant(MatrixView<const double>{x.data(), 2, 6}),
                                                   std::span<const int>(std::vector<int>{i, j}), 6)
                          .value();
    double sum = 0;
    for (std::size_t c = 0; c < 6; ++c) sum += both(0, c) * both(1, c);
    return sum;
  };
  CHECK(product(3, 1) == doctest::Approx(product(9, 7)).epsilon(1e-13));
  CHECK(product(0, 0) == doctest::Approx(product(5, 5)).epsilon(1e-13));
  CHECK(std::abs(product(3, 1) - product(1, 3)) > 1e-3);
  CHECK(std::abs(product(3, 1) - product(3, 2)) > 1e-3);
}

TEST_CASE("transformer: faults are one line") {
  const auto refused = [&](const std::string& settings, const char* line) {
    CHECK_THROWS_WITH_AS(lively("transformer[" + settings + "]", dimensions), line, UsageError);
  };
  refused("heads=3,width=4", "transformer: heads=3 must divide width=4");
  refused("width=6,places=rotary",
          "transformer: places=rotary turns pairs of numbers, but a head has 3: take an even width / heads");
  refused("places=rotary,scorer=indexer,index_width=3",
          "transformer: places=rotary turns pairs of numbers: take an even index_width, not 3");
  refused("imitation=1", "transformer: imitation trains an indexer to follow the heads' dense attention: take scorer=indexer");
  refused("picks=0,scorer=indexer",
          "transformer: with picks=0 nothing is chosen, so that an indexer has no effect: give imitation, or picks");
  refused("scorer=indexer,imitation=1,over=picked",
          "transformer: over=picked is of an imitation over keys that are picked without a draw: give imitation, picks and "
          "law=top");
  CHECK_THROWS_AS(lively("transformer[index_heads=0]", dimensions), UsageError);
  CHECK_THROWS_AS(lively("transformer[index_width=0]", dimensions), UsageError);
  auto shorter = dimensions;
  shorter["positions"] = 3;
  const auto model = lively(small + "]", shorter);
  CHECK_THROWS_WITH_AS(
      result_of(*model, two_sequences(), GreedyHandler<double>()),
      "transformer: a sequence has 4 tokens, but the network has 3 positions: make it for a task with longer ones", UsageError);
}

}  // namespace hardgrad::testing::transformer_test
