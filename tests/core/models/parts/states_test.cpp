// The building blocks of models against explicit computations: sums of gathers, reading chosen items, and heads.
#include "core/models/parts/states.hpp"

#include <doctest/doctest.h>

#include "core/models/parts/heads.hpp"
#include "tests/core/models/model_check.hpp"
#include "tests/support/gradient_check.hpp"

namespace hardgrad::testing::past_test {

using hardgrad::testing::ForcedWeights;

TEST_CASE("a sum of any number of addends is their sum, and so is its gradient") {
  const auto a = random_matrix(3, 2, 1), b = random_matrix(4, 2, 2), c = random_matrix(1, 2, 3);
  const auto sum = [](const auto& x) {
    using T = std::remove_cvref_t<decltype(x[0].item())>;
    const Sum<T> three = x[0] + Sum<T>(x[1], {3, -1, 0}) + Sum<T>(x[2], {0, 0, 0});
    return Var<T>(three + Sum<T>() + three);  // six addends
  };
  expect_gradient([&](auto&, const auto& x) { return sum(x); }, {a, b, c});
  Tape<double> tape;
  const auto x = place(tape, {a, b, c});
  const auto at = [&](int k, int r, int j) { return x[k].value()(r, j); };
  const auto y = sum(x).value();
  CHECK(y(0, 1) == doctest::Approx(2 * (at(0, 0, 1) + at(1, 3, 1) + at(2, 0, 1))));
  CHECK(y(1, 0) == doctest::Approx(2 * (at(0, 1, 0) + at(2, 0, 0))));
  CHECK(y(2, 0) == doctest::Approx(2 * (at(0, 2, 0) + at(1, 0, 0) + at(2, 0, 0))));
  CHECK(!Sum<double>());
  const Var<double> itself = Sum<double>(x[0]);
  CHECK(itself.id == x[0].id);
}

TEST_CASE("the positive part of a sum, in one pass") {
  for (const std::size_t cols : {2, 17}) {  // short and long rows
    const auto a = random_matrix(3, cols, 1), b = random_matrix(4, cols, 2), c = random_matrix(1, cols, 3);
    const auto sum = [](const auto& x) {
      using T = std::remove_cvref_t<decltype(x[0].item())>;
      return Sum<T>(x[0]) + Sum<T>(x[1], {3, -1, 0}) + Sum<T>(x[2], {0, 0, 0});
    };
    expect_gradient([&](auto&, const auto& x) { return relu(sum(x)); }, {a, b, c});
    expect_gradient([&](auto&, const auto& x) { return add(relu(sum(x)), x[0]); }, {a, b, c});
    auto fused = [&](auto&, const auto& x) { return relu(sum(x)); };
    auto apart = [&](auto&, const auto& x) {
      using T = std::remove_cvref_t<decltype(x[0].item())>;
      return relu(Var<T>(sum(x)));
    };
    CHECK(evaluate<double>(fused, {a, b, c}) == evaluate<double>(apart, {a, b, c}));
    int zeros = 0;
    for (const double y : evaluate<double>(fused, {a, b, c}).first) zeros += y == 0;
    CHECK(zeros > 0);
    CHECK(zeros < static_cast<int>(3 * cols));
  }
  Tape<double> tape;
  const auto x = tape.constant(1, 2, std::nan(""));
  CHECK(std::isnan(relu(Sum<double>(x) + Sum<double>(x)).value()(0, 1)));
}

TEST_CASE("a classifier of a sum multiplies its addends if they have fewer rows") {
  const auto a = random_matrix(2, 3, 1), b = random_matrix(3, 3, 2), w = random_matrix(4, 3, 3);
  const std::vector<int> first{0, 0, 1, 1, 1, 0}, second{2, -1, 0, 1, 2, 1}, label{3, 0, -1, 2, 1, 1};
  for (const std::size_t rows : {6, 5, 2}) {  // the addends have 5
    const auto some = [&](const std::vector<int>& all) { return std::span<const int>(all).first(rows); };
    const auto loss = [&](const auto& x) {
      using T = std::remove_cvref_t<decltype(x[0].item())>;
      return linear_cross_entropy(Sum<T>(x[0], some(first)) + Sum<T>(x[1], some(second)), x[2], some(label)).loss;
    };
    expect_gradient([&](auto&, const auto& x) { return loss(x); }, {a, b, w});
    Tape<double> tape;
    const auto x = place(tape, {a, b, w});
    const Sum<double> sum = Sum<double>(x[0], some(first)) + Sum<double>(x[1], some(second));
    CHECK(sum.rows() == rows);
    CHECK(sum.rows_of_addends() == 5);
    const auto expected = linear_cross_entropy<double>(sum, x[2], {}, some(label)).loss.value();
    const auto found = loss(x).value();
    for (std::size_t r = 0; r < rows; ++r) CHECK(found.data[r] == doctest::Approx(expected.data[r]).epsilon(1e-12));
  }
}

TEST_CASE("reading a choice gives the item, or the mixture, of each column") {
  Batch batch;
  batch.id = {1, 2};
  const Distinct distinct(batch);
  const Items positions(std::vector<int>{2, 3});
  const Heads heads(positions, 2);
  const testing::Options forced{{1, 0, 2, 1}};  // [example, head]
  Tape<double> tape;
  const auto values = place(tape, {random_matrix(heads.items().total(), 2, 4)})[0];
  const auto row = [&](int example, int head, int i) { return heads.items().row(2 * example + head, i); };
  const auto read = [&](Handler<double>& handler, bool expecting = false) {
    Episode<double> episode(tape, handler, 2);
    const States<double> states(episode, distinct);
    CHECK(!states.read(values));  // no choice yet
    const auto i = states.choose(
        {.name = "head", .logits = tape.constant(4, 3), .items = heads.items(), .state = tape.constant(2, 1), .columns = 2});
    CHECK(episode.steps()[0].question.categories().options() == std::vector<int>{2, 2, 3, 3});
    CHECK(!states.next_step().read(values));
    return Var<double>(expecting ? states.expecting(i).read(values) : i.read(values)).value();
  };
  ForcedHandler<double> hard(forced), again(forced);
  ForcedWeights weights(forced, 0.4), one_hot(forced, 1);
  const auto chosen = read(hard), mixed = read(weights), same = read(one_hot), mean = read(again, true);
  for (int b = 0; b < 2; ++b)
    for (int j = 0; j < 2; ++j) {
      double by_hand = 0, by_weight = 0, by_prior = 0;
      for (int h = 0; h < 2; ++h)
        for (int i = 0; i < positions.count(b); ++i) {
          const double value = values.value()(row(b, h, i), j);
          const bool it = i == forced[0][2 * b + h];
          by_hand += it * value;
          by_weight += (0.6 / positions.count(b) + 0.4 * it) * value;
          by_prior += value / positions.count(b);
        }
      CHECK(chosen(b, j) == doctest::Approx(by_hand).epsilon(1e-13));
      CHECK(same(b, j) == doctest::Approx(by_hand).epsilon(1e-13));
      CHECK(mixed(b, j) == doctest::Approx(by_weight).epsilon(1e-13));
      CHECK(mean(b, j) == doctest::Approx(by_prior).epsilon(1e-13));
    }
}

TEST_CASE("states may have fewer options than items, and are removed singly when they finish") {
  Batch batch;
  batch.id = {1, 2};
  const Distinct distinct(batch);
  const Items items(2, 3);
  Tape<double> tape;
  EnumerateHandler<double> handler;
  Episode<double> episode(tape, handler, 2);
  const auto site = [&](const States<double>& states, std::vector<int> options) {
    return states.choose({.name = "step",
                          .logits = tape.constant(states.size(), 3),
                          .items = items,
                          .state = tape.constant(states.size(), 1),
                          .options = std::move(options)});
  };
  const auto first = site(States<double>(episode, distinct), {2, 3});
  CHECK(first.rows()->example == std::vector<int>{0, 0, 1, 1, 1});
  // The second row of each example continues; so does the last row of the second example, which has no choice.
  const auto left = first.next_step().only_states({0, 1, 0, 1, 1});
  CHECK(left.size() == 3);
  const auto second = site(left, {3, 2, 1});
  CHECK(episode.steps()[1].question.categories().options() == std::vector<int>{1, 3, 1, 2, 1});
  CHECK(second.rows()->example == std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1});
  CHECK(std::vector<int>(second.example().begin(), second.example().end()) == std::vector<int>{0, 0, 0, 1, 1, 1});
  CHECK(second.options() == std::vector<int>{0, 1, 2, 0, 1, 0});
  const auto path = episode.path_log_probability(second.rows()).value();
  const double expected[] = {2, 6, 6, 6, 3, 6, 6, 3};  // inverse probabilities
  for (int r = 0; r < 8; ++r) CHECK(path.data[r] == doctest::Approx(-std::log(expected[r])).epsilon(1e-14));
}

TEST_CASE("heads share the columns of queries and keys, and read separate blocks") {
  const Items positions(std::vector<int>{2, 1});
  const Heads heads(positions, 2);
  CHECK(heads.items() == Items(std::vector<int>{2, 2, 1, 1}));
  CHECK(heads.of(std::vector<int>{0, 1, 1}) == std::vector<int>{0, 1, 2, 3, 2, 3});
  const auto a = random_matrix(3, 4, 1), w = random_matrix(5, 8, 2);
  expect_gradient([&](auto&, const auto& x) { return heads.keys(x[0]); }, {a});
  expect_gradient([&](auto&, const auto& x) { return heads.values(x[0], x[1]); }, {a, w});
  expect_gradient([&](auto&, const auto& x) { return heads.same_query(x[0]); }, {a});
  Tape<double> tape;
  const auto x = place(tape, {a, w});
  const auto keys = heads.keys(x[0]).value(), values = heads.values(x[0], x[1]).value(), queries = heads.queries(x[0]).value(),
             same = heads.same_query(x[0]).value();
  for (int b = 0; b < 2; ++b)
    for (int h = 0; h < 2; ++h)
      for (int i = 0; i < positions.count(b); ++i) {
        const auto r = heads.items().row(2 * b + h, i), from = positions.row(b, i);
        for (int j = 0; j < 2; ++j) CHECK(keys(r, j) == x[0].value()(from, 2 * h + j));
        for (int o = 0; o < 5; ++o) {
          double sum = 0;
          for (int j = 0; j < 4; ++j) sum += x[1].value()(o, 4 * h + j) * x[0].value()(from, j);
          CHECK(values(r, o) == doctest::Approx(sum).epsilon(1e-13));
        }
      }
  CHECK(queries(3, 1) == x[0].value()(1, 3));
  CHECK(same(3, 1) == x[0].value()(1, 1));
  const Heads one(positions, 1);
  CHECK(one.keys(x[0]).id == x[0].id);
  CHECK(one.queries(x[0]).id == x[0].id);
}

}  // namespace hardgrad::testing::past_test
