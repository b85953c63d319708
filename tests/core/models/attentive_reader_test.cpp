// The attentive and the impatient reader: gradients, padding, questions of different lengths, relaxed and enumerated answers.
#include <doctest/doctest.h>

#include "tests/core/models/model_check.hpp"

namespace hardgrad::testing::attentive_reader_test {
namespace {

const Dimensions dimensions{{"vocabulary", 8}, {"answers", 3}, {"document_length", 4}, {"question_length", 3}};

// `garbage` fills the padding of documents and questions.
Batch three_documents(int garbage = 0) {
  const int g = garbage;
  Batch batch;
  batch.id = {4, 5, 6};
  batch.integers["document"] = {{3, 4}, std::vector<int>{1, 5, 2, 6, 7, 3, g, g, 2, 6, 5, g}};
  batch.integers["document_length"] = {{3}, std::vector<int>{4, 2, 3}};
  batch.integers["question"] = {{3, 3}, std::vector<int>{4, 2, g, 3, g, g, 1, 4, 6}};
  batch.integers["question_length"] = {{3}, std::vector<int>{2, 1, 3}};
  batch.integers["answer"] = {{3}, std::vector<int>{1, 2, 0}};
  return batch;
}

struct Case {
  std::string spec;
  Options forced;  // [step][row]; 0 for a finished question
};
std::vector<Case> cases() {
  return {{"attentive_reader[embedding=3,hidden=3]", {{3, 1, 2}}},
          {"attentive_reader[embedding=3,hidden=3,kind=impatient]", {{3, 1, 2}, {0, 0, 1}, {0, 0, 2}}}};
}

}  // namespace

TEST_CASE("attentive_reader: gradients of losses, log probabilities and states, in every parameter") {
  for (const auto& [spec, forced] : cases()) {
    CAPTURE(spec);
    const auto& options = forced;
    const auto batch = three_documents();
    auto model = testing::lively(spec, dimensions), with_posterior = lively(spec, dimensions, true);
    testing::check_gradients(*model, *with_posterior, batch, options);
  }
}

TEST_CASE("attentive_reader: the gradient check detects a missing score term") {
  for (const auto& [spec, forced] : cases()) {
    auto model = testing::lively(spec, dimensions);
    const auto& options = forced;
    const auto make = [&] { return std::make_unique<ForcedChooser<double>>(options); };
    CHECK(testing::gradient_error(*model, three_documents(), make, true).first > 1e-2);
  }
}

TEST_CASE("attentive_reader: padding and other examples do not matter") {
  for (const auto& [spec, forced] : cases()) {
    CAPTURE(spec);
    const auto model = testing::lively(spec, dimensions);
    ForcedChooser<double> together(forced), garbage(forced);
    ExpectedChooser<double> soft;
    const auto loss = testing::losses(*model, three_documents(), together), relaxed = losses(*model, three_documents(), soft);
    const auto filled = testing::losses(*model, three_documents(7), garbage),
               relaxed_filled = losses(*model, three_documents(7), soft);
    REQUIRE(loss.size() == 3);
    for (int b = 0; b < 3; ++b) {
      ForcedChooser<double> alone(testing::of_example(forced, b));
      CHECK(loss[b] > 0);
      CHECK(testing::losses(*model, three_documents().select({b}), alone)[0] == doctest::Approx(loss[b]).epsilon(1e-12));
      CHECK(testing::losses(*model, three_documents().select({b}), soft)[0] == doctest::Approx(relaxed[b]).epsilon(1e-12));
      CHECK(filled[b] == doctest::Approx(loss[b]).epsilon(1e-12));
      CHECK(relaxed_filled[b] == doctest::Approx(relaxed[b]).epsilon(1e-12));
    }
  }
}

TEST_CASE("attentive_reader: copies of a row cost the same, and one-hot weights are hard choices") {
  for (const auto& [spec, forced] : cases()) {
    CAPTURE(spec);
    const auto model = testing::lively(spec, dimensions);
    ForcedChooser<double> once(forced), thrice(testing::copied(forced, 3));
    testing::ForcedWeights one_hot(testing::copied(forced, 3), 1.0);
    const auto loss = testing::losses(*model, three_documents(), once), three = losses(*model, three_documents(), thrice);
    const auto weighted = losses(*model, three_documents(), one_hot);
    REQUIRE(three.size() == 9);
    for (int r = 0; r < 9; ++r) {
      CHECK(three[r] == doctest::Approx(loss[r / 3]).epsilon(1e-12));
      CHECK(weighted[r] == doctest::Approx(loss[r / 3]).epsilon(1e-12));
    }
  }
}

TEST_CASE("attentive_reader: enumerated rows sum to the expectation over all paths") {
  for (const auto& [spec, forced] : cases()) {
    CAPTURE(spec);
    const auto model = testing::lively(spec, dimensions);
    const auto batch = three_documents();
    const bool impatient = forced.size() > 1;
    CHECK(model->structure().dependence() == (impatient ? "sequential" : "one choice"));
    double total = 0;
    for (int b = 0; b < 3; ++b) {
      const int n = batch.ints("document_length").data[b], reads = impatient ? batch.ints("question_length").data[b] : 1;
      total += testing::expected_loss_by_paths(*model, batch.select({b}), std::vector<int>(reads, n));
      CHECK(model->outcomes(batch)[b] == doctest::Approx(std::pow(n, reads)));
    }
    CHECK(testing::expected_loss_by_rows(*model, batch) == doctest::Approx(total).epsilon(1e-12));
  }
}

TEST_CASE("attentive_reader: every example is answered once, after its question has ended") {
  for (const auto& [spec, forced] : cases()) {
    CAPTURE(spec);
    const auto model = testing::lively(spec, dimensions);
    Tape<double> tape;
    ForcedChooser<double> chooser(forced);
    Episode<double> episode(tape, chooser, 3);
    model->run(three_documents(), episode);
    std::vector<int> answered(3);
    for (const auto& said : episode.predictions())
      for (int b = 0; b < 3; ++b) answered[b] += said.label[b] >= 0;
    CHECK(answered == std::vector<int>{1, 1, 1});
  }
}

TEST_CASE("attentive_reader: dropout depends on the example, and a batch without a key has none") {
  testing::check_dropout("attentive_reader[embedding=3,hidden=8,kind=impatient,dropout=", dimensions, three_documents(),
                         cases()[1].forced, {"readout"});
}

}  // namespace hardgrad::testing::attentive_reader_test
