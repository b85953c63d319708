// Handlers answer sites; rows remember their origin.
#include "core/choice/relaxed.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "core/choice/categorical.hpp"
#include "core/support/error.hpp"

namespace hardgrad::testing::handlers_test {
namespace {

/// Two examples, the second with two of three options; a chain of two choices.
struct Chain {
  Tape<double> tape;
  std::vector<std::uint32_t> id = {5, 6};
  std::vector<Choice<double>> choices;

  Episode<double> run(Handler<double>& handler) {
    Episode<double> episode(tape, handler, 2);
    auto rows = episode.root();
    for (int t = 0; t < 2; ++t) {
      auto logits = tape.constant(rows->size(), 3);
      std::vector<int> options;
      for (std::size_t r = 0; r < rows->size(); ++r) {
        for (int i = 0; i < 3; ++i) tape.mutable_value(logits)(r, i) = 0.5 * i + t;
        options.push_back(rows->example[r] == 0 ? 3 : 2);
      }
      auto choice = episode.choose({"step", rows, categorical(logits, options), logits});
      rows = choice.rows;
      choices.push_back(std::move(choice));
    }
    return episode;
  }
};

TEST_CASE("enumeration grows a tree of every prefix, and its leaves' probabilities sum to one") {
  Chain chain;
  EnumerateHandler<double> handler;
  auto episode = chain.run(handler);
  CHECK(chain.choices[0].rows->example == std::vector<int>{0, 0, 0, 1, 1});
  CHECK(chain.choices[1].rows->size() == 9 + 4);
  CHECK(episode.rows_evaluated() == 5 + 13);
  CHECK(episode.attention_values() == 5 + (9 + 4));
  const auto path = episode.path_log_probability(chain.choices[1].rows).value();
  double sums[2] = {};
  for (std::size_t r = 0; r < path.rows; ++r) sums[chain.choices[1].rows->example[r]] += std::exp(path.data[r]);
  CHECK(sums[0] == doctest::Approx(1).epsilon(1e-14));
  CHECK(sums[1] == doctest::Approx(1).epsilon(1e-14));
}

TEST_CASE("sampling branches once, keeps examples together, and never takes a missing option") {
  KeyedRandomness random(Key(1));
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Chain chain;
    KeyedRandomness noise{Key(seed)};
    SampleHandler<double> handler(4, noise, chain.id);
    chain.run(handler);
    for (const auto& choice : chain.choices) {
      REQUIRE(choice.rows->size() == 8);
      CHECK(choice.rows->example == std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1});
      CHECK(choice.rows->replica == std::vector<int>{0, 1, 2, 3, 0, 1, 2, 3});
      for (int r = 4; r < 8; ++r) CHECK(choice.option()[r] < 2);
    }
    CHECK(chain.choices[1].rows->descends_from(0));
    CHECK_FALSE(chain.choices[0].rows->descends_from(1));
  }
}

TEST_CASE("greedy takes a row's most probable option, forced takes the given one") {
  Chain greedy, forced;
  GreedyHandler<double> most;
  greedy.run(most);
  CHECK(greedy.choices[0].option() == std::vector<int>{2, 1});
  ForcedHandler<double> told({{0, 1, 1, 0}, {2, 0, 1, 1}});
  forced.run(told);
  CHECK(forced.choices[0].rows->example == std::vector<int>{0, 0, 1, 1});
  CHECK(forced.choices[1].option() == std::vector<int>{2, 0, 1, 1});
  ForcedHandler<double> too_few({{0, 1}});
  CHECK_THROWS_AS(Chain().run(too_few), Bug);
}

TEST_CASE("log probabilities that do not sum to one are rejected") {
  Tape<double> tape;
  const auto log_p = tape.constant(1, 3);
  for (int i = 0; i < 3; ++i) tape.mutable_value(log_p)(0, i) = std::log(i == 2 ? 0.5 : 0.25);
  CHECK_NOTHROW(normalised(log_p, {3}));
  CHECK_THROWS_WITH_AS(normalised(log_p, {2}), doctest::Contains("sum to 0.5"), Bug);
}

/// Gumbel-softmax weights.
RelaxedHandler<double>::Relax concrete(double temperature) {
  return [=](const RelaxationContext<double>& context) {
    return Relaxed<double>{{}, context.softmax(context.gumbels(), temperature)};
  };
}

TEST_CASE("expected and relaxed weights are distributions over the options, and a cold relaxation is a choice") {
  Chain soft;
  ExpectedHandler<double> expected;
  soft.run(expected);
  KeyedRandomness random(Key(2));
  for (double temperature : {1.0, 1e-4}) {
    Chain relaxed;
    RelaxedHandler<double> handler(3, random, relaxed.id, concrete(temperature));
    relaxed.run(handler);
    for (const auto* chain : {&soft, &relaxed})
      for (const auto& choice : chain->choices) {
        const auto w = choice.weights().value();
        for (std::size_t r = 0; r < w.rows; ++r) {
          CHECK(w(r, 0) + w(r, 1) + w(r, 2) == doctest::Approx(1).epsilon(1e-12));
          if (choice.rows->example[r] == 1) CHECK(w(r, 2) == 0);
          if (temperature < 1 && chain == &relaxed) CHECK(std::max({w(r, 0), w(r, 1), w(r, 2)}) == doctest::Approx(1));
        }
      }
  }
}

TEST_CASE("Gumbel-max: the largest relaxed weight has the distribution of the logits, within five standard errors") {
  double counts[3] = {};
  const int n = 4000;
  for (std::uint64_t i = 0; i < n; ++i) {
    Chain chain;
    KeyedRandomness random(Key(3) / i);
    RelaxedHandler<double> handler(1, random, chain.id, concrete(0.5));
    chain.run(handler);
    const auto w = chain.choices[0].weights().value();
    ++counts[std::max_element(w.row(0), w.row(0) + 3) - w.row(0)];
  }
  double total = 0;
  for (int k = 0; k < 3; ++k) total += std::exp(0.5 * k);
  for (int k = 0; k < 3; ++k) {
    const double p = std::exp(0.5 * k) / total;
    CHECK(std::abs(counts[k] / n - p) < 5 * std::sqrt(p * (1 - p) / n));
  }
}

}  // namespace
}  // namespace hardgrad::testing::handlers_test
