// The Turing machine: gradients, lengths, branching, relaxed and enumerated answers, and a memory that is too small.
#include <doctest/doctest.h>

#include "tests/core/models/model_check.hpp"

namespace hardgrad::testing::turing_machine_test {
namespace {

const Dimensions dimensions{{"input_width", 2}, {"answer_width", 2}, {"steps", 3}, {"vectors", 2}};

// Two sequences of three and two steps. `garbage` fills the steps beyond the end.
Batch two_sequences(double garbage = 0) {
  Batch batch;
  batch.id = {3, 4};
  const double g = garbage;
  batch.reals["input"] = {{2, 3, 2}, std::vector<double>{1, 0, 0, 1, 0, 0, 0.5, 1, 0, 0, g, -g}};
  batch.integers["answer"] = {{2, 3, 2}, std::vector<int>{-1, -1, 1, 0, 0, 1, -1, -1, 1, 1, garbage != 0 ? 1 : -1, -1}};
  batch.integers["length"] = {{2}, std::vector<int>{3, 2}};
  return batch;
}

struct Case {
  std::string spec;
  int heads;
  Options forced;  // [step][row H + h]
};
std::vector<Case> cases() {
  return {{"turing_machine[cells=3,width=2,hidden=3]", 2, {{0, 1, 2, 0}, {1, 1, 0, 2}, {2, 0, 0, 0}}},
          {"turing_machine[cells=2,width=2,hidden=3,controller=feedforward]", 2, {{0, 1, 1, 0}, {1, 1, 0, 1}, {1, 0, 0, 0}}},
          {"turing_machine[cells=2,width=2,hidden=3,reads=2,writes=2]",
           4,
           {{0, 1, 1, 0, 1, 1, 0, 0}, {1, 1, 0, 1, 0, 0, 1, 1}, {1, 0, 0, 0, 0, 0, 0, 0}}}};
}

}  // namespace

TEST_CASE("turing_machine: gradients of losses, log probabilities and states, in every parameter") {
  for (const auto& [spec, heads, forced] : cases()) {
    CAPTURE(spec);
    auto model = testing::lively(spec, dimensions), with_posterior = lively(spec, dimensions, true);
    testing::check_gradients(*model, *with_posterior, two_sequences(), forced, heads, false);
  }
}

TEST_CASE("turing_machine: the gradient check detects a missing score term") {
  auto model = testing::lively(cases()[0].spec, dimensions);
  const auto make = [] { return std::make_unique<ForcedChooser<double>>(cases()[0].forced); };
  CHECK(testing::gradient_error(*model, two_sequences(), make, true).first > 1e-2);
}

TEST_CASE("turing_machine: padding and other examples do not matter") {
  for (const auto& [spec, heads, forced] : cases()) {
    CAPTURE(spec);
    const auto model = testing::lively(spec, dimensions);
    ForcedChooser<double> together(forced), garbage(forced);
    ExpectedChooser<double> soft;
    const auto loss = testing::losses(*model, two_sequences(), together), relaxed = losses(*model, two_sequences(), soft);
    const auto filled = testing::losses(*model, two_sequences(7), garbage);
    for (int b = 0; b < 2; ++b) {
      auto mine = testing::of_example(forced, b, heads);
      if (b == 1) mine.pop_back();  // two steps
      ForcedChooser<double> alone(mine);
      CHECK(losses(*model, two_sequences().select({b}), alone)[0] == doctest::Approx(loss[b]).epsilon(1e-12));
      CHECK(losses(*model, two_sequences().select({b}), soft)[0] == doctest::Approx(relaxed[b]).epsilon(1e-12));
      CHECK(filled[b] == doctest::Approx(loss[b]).epsilon(1e-12));
    }
  }
}

TEST_CASE("turing_machine: copies of a row cost the same, and one-hot weights are hard choices") {
  for (const auto& [spec, heads, forced] : cases()) {
    CAPTURE(spec);
    const auto model = testing::lively(spec, dimensions);
    ForcedChooser<double> once(forced), thrice(testing::copied(forced, 3, heads));
    testing::ForcedWeights one_hot(copied(forced, 3, heads), 1.0);
    const auto loss = testing::losses(*model, two_sequences(), once), three = losses(*model, two_sequences(), thrice);
    const auto weighted = losses(*model, two_sequences(), one_hot);
    REQUIRE(three.size() == 6);
    for (int r = 0; r < 6; ++r) {
      CHECK(three[r] == doctest::Approx(loss[r / 3]).epsilon(1e-12));
      CHECK(weighted[r] == doctest::Approx(loss[r / 3]).epsilon(1e-12));
    }
  }
}

TEST_CASE("turing_machine: enumerated rows sum to the expectation over all paths") {
  for (const auto& [spec, heads, forced] : cases()) {
    CAPTURE(spec);
    const auto model = lively(spec, dimensions);
    CHECK(model->structure().dependence() == "sequential");
    const int cells = model->structure().sites[0].options;
    const auto one = two_sequences().select({1});
    CHECK(model->outcomes(two_sequences())[1] == std::pow(cells, heads * 2));
    const double total = expected_loss_by_paths(*model, one, std::vector<int>(heads * 2, cells), heads);
    CHECK(expected_loss_by_rows(*model, one) == doctest::Approx(total).epsilon(1e-12));
  }
}

TEST_CASE("turing_machine: a hard writing head changes only reads of its cell") {
  const auto model = lively(cases()[0].spec, dimensions);
  // The reading head is in cell 2 at every step: writing to cell 0 or 1 has no effect, writing to cell 2 has.
  const auto loss = [&](int written) {
    ForcedChooser<double> chooser(Options{{2, written}, {2, written}, {2, written}});
    return losses(*model, two_sequences().select({0}), chooser)[0];
  };
  CHECK(loss(0) == doctest::Approx(loss(1)).epsilon(1e-14));
  CHECK(std::abs(loss(2) - loss(0)) > 1e-3);
}

TEST_CASE("turing_machine: a memory smaller than the longest sequence is rejected, with a remedy") {
  auto needs = dimensions;
  needs["vectors"] = 9;
  const auto make = [&](const char* spec) { return make_model<double>(Spec::parse(spec), needs, Key(1)); };
  CHECK_THROWS_WITH_AS(
      make("turing_machine[cells=8]"),
      "turing_machine: the longest sequence has 9 vectors to keep, but the memory has 8 cells; give cells=9 or "
      "shorter sequences",
      UsageError);
  CHECK_NOTHROW(make("turing_machine[cells=9]"));
}

}  // namespace hardgrad::testing::turing_machine_test
