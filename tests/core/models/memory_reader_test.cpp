// The memory reader: gradients, padding, branching, relaxed and enumerated answers.
#include <doctest/doctest.h>

#include "tests/core/models/model_check.hpp"

namespace hardgrad::testing::memory_reader_test {
namespace {

const Dimensions dimensions{{"vocabulary", 7}, {"answers", 4}, {"answer_word", 2}, {"sentences", 5}, {"words", 3}};

// `garbage` fills sentences beyond the story's end; `wider` adds a column of padding words.
Batch three_stories(int garbage = 0, bool wider = false) {
  const int g = garbage;
  Batch batch;
  batch.id = {1, 2, 3};
  std::vector<int> story{1, 2, 3, 4, 5, 0, 6, 1, 2, 2, 2, 0,  //
                         3, 4, 0, 5, 6, 1, g, 0, 0, g, g, 0,  //
                         6, 0, 0, 1, 3, 0, 2, 5, 4, g, 0, 0};
  std::size_t W = 3;
  if (wider) {
    std::vector<int> padded;
    for (std::size_t i = 0; i < story.size(); ++i) {
      padded.push_back(story[i]);
      if (i % 3 == 2) padded.push_back(0);
    }
    story = padded;
    W = 4;
  }
  batch.integers["story"] = {{3, 4, W}, story};
  batch.integers["story_length"] = {{3}, std::vector<int>{4, 2, 3}};
  batch.integers["question"] = {{3, 2}, std::vector<int>{1, 4, 5, 0, 2, 6}};
  batch.integers["answer"] = {{3}, std::vector<int>{2, 0, 3}};
  return batch;
}
const Options forced{{3, 1, 0}, {1, 0, 2}};

std::vector<std::string> specs() {
  return {"memory_reader[embedding=4,hops=2]", "memory_reader[embedding=4,hops=2,position_encoding=false]",
          "memory_reader[embedding=4,hops=2,temporal=false]", "memory_reader[embedding=4,hops=2,tying=layerwise]",
          "memory_reader[embedding=4,hops=2,tied_answers=true]"};
}

}  // namespace

TEST_CASE("memory_reader: gradients of losses, log probabilities and states, in every parameter") {
  for (const auto& spec : specs()) {
    CAPTURE(spec);
    auto model = lively(spec, dimensions), with_posterior = lively(spec, dimensions, true);
    check_gradients(*model, *with_posterior, three_stories(), forced);
  }
}

TEST_CASE("memory_reader: the gradient check detects a missing score term") {
  auto model = lively(specs()[0], dimensions);
  const auto make = [] { return std::make_unique<ForcedChooser<double>>(forced); };
  CHECK(gradient_error(*model, three_stories(), make, true).first > 1e-2);
}

TEST_CASE("memory_reader: padding and other examples do not matter") {
  for (const auto& spec : specs()) {
    CAPTURE(spec);
    const auto model = lively(spec, dimensions);
    ForcedChooser<double> together(forced), garbage(forced), wide(forced);
    ExpectedChooser<double> soft;
    const auto loss = losses(*model, three_stories(), together), relaxed = losses(*model, three_stories(), soft);
    const auto filled = losses(*model, three_stories(5), garbage), wider = losses(*model, three_stories(0, true), wide);
    const auto relaxed_filled = losses(*model, three_stories(5), soft);
    for (int b = 0; b < 3; ++b) {
      ForcedChooser<double> alone(of_example(forced, b));
      CHECK(losses(*model, three_stories().select({b}), alone)[0] == doctest::Approx(loss[b]).epsilon(1e-12));
      CHECK(losses(*model, three_stories().select({b}), soft)[0] == doctest::Approx(relaxed[b]).epsilon(1e-12));
      CHECK(filled[b] == doctest::Approx(loss[b]).epsilon(1e-12));
      CHECK(wider[b] == doctest::Approx(loss[b]).epsilon(1e-12));
      CHECK(relaxed_filled[b] == doctest::Approx(relaxed[b]).epsilon(1e-12));
    }
  }
}

TEST_CASE("memory_reader: copies of a row cost the same, and one-hot weights are hard choices") {
  for (const auto& spec : specs()) {
    CAPTURE(spec);
    const auto model = lively(spec, dimensions);
    ForcedChooser<double> once(forced), thrice(copied(forced, 3));
    ForcedWeights one_hot(copied(forced, 3), 1.0);
    const auto loss = losses(*model, three_stories(), once), three = losses(*model, three_stories(), thrice);
    const auto weighted = losses(*model, three_stories(), one_hot);
    REQUIRE(three.size() == 9);
    for (int r = 0; r < 9; ++r) {
      CHECK(three[r] == doctest::Approx(loss[r / 3]).epsilon(1e-12));
      CHECK(weighted[r] == doctest::Approx(loss[r / 3]).epsilon(1e-12));
    }
  }
}

TEST_CASE("memory_reader: enumerated rows sum to the expectation over all paths") {
  for (int hops : {1, 2, 3}) {
    CAPTURE(hops);
    const auto model = lively("memory_reader[embedding=4,hops=" + std::to_string(hops) + "]", dimensions);
    CHECK(model->structure().dependence() == (hops == 1 ? "one choice" : "sequential"));
    const auto batch = three_stories();
    double total = 0;
    for (int b = 0; b < 3; ++b) {
      const int n = batch.ints("story_length").data[b];
      total += expected_loss_by_paths(*model, batch.select({b}), std::vector<int>(hops, n));
      CHECK(model->outcomes(batch)[b] == doctest::Approx(std::pow(n, hops)));
    }
    CHECK(expected_loss_by_rows(*model, batch) == doctest::Approx(total).epsilon(1e-12));
  }
}

TEST_CASE("memory_reader: tied answers are rows of the last table, if the task names them and hops have separate tables") {
  const auto model = lively("memory_reader[embedding=4,hops=2,tied_answers=true]", dimensions);
  for (const auto& parameter : model->parameters()) CHECK(parameter.name != "answer.weight");
  CHECK_THROWS_WITH_AS(lively("memory_reader[tied_answers=true,tying=layerwise]", dimensions),
                       "memory_reader: tied_answers needs tying=adjacent", UsageError);
  auto silent = dimensions;
  silent.erase("answer_word");
  CHECK_THROWS_WITH_AS(lively("memory_reader[tied_answers=true]", silent),
                       "memory_reader: tied_answers: the task declares no answer_word; leave it out", UsageError);
}

TEST_CASE("memory_reader: dropout depends on the example, and a batch without a key has none") {
  testing::check_dropout("memory_reader[embedding=8,hops=2,dropout=", dimensions, three_stories(), forced, {"readout"});
}

}  // namespace hardgrad::testing::memory_reader_test
