// The attentive and the impatient reader: gradients, padding, questions of different lengths, relaxed and enumerated answers.
#include <doctest/doctest.h>

#include "tests/core/models/given_choices.hpp"

namespace hardgrad::testing::attentive_reader_test {
namespace {

const Dimensions dimensions{{"vocabulary", 8}, {"answers", 3}, {"document_length", 4}, {"question_length", 3}};

// `garbage` fills the padding of documents and questions.
Batch three_documents(int garbage = 0) {
  const int g = garbage;
  Batch batch;
  batch.id = {4, 5, 6};
  batch.integers["document"] = shaped<int>({3, 4}, {1, 5, 2, 6, 7, 3, g, g, 2, 6, 5, g});
  batch.integers["document_length"] = shaped<int>({3}, {4, 2, 3});
  batch.integers["question"] = shaped<int>({3, 3}, {4, 2, g, 3, g, g, 1, 4, 6});
  batch.integers["question_length"] = shaped<int>({3}, {2, 1, 3});
  batch.integers["answer"] = shaped<int>({3}, {1, 2, 0});
  return batch;
}

struct Case {
  std::string spec;
  Options forced;  // [step][row]; 0 for a finished question
  std::string dependence;
  std::vector<double> outcomes;
};
std::vector<Case> cases() {
  return {
      {"attentive_reader[embedding=3,hidden=3]", {{3, 1, 2}}, "one choice", {4, 2, 3}},
      {"attentive_reader[embedding=3,hidden=3,kind=impatient]", {{3, 1, 2}, {0, 0, 1}, {0, 0, 2}}, "sequential", {16, 2, 27}}};
}

}  // namespace

TEST_CASE("attentive_reader: gradients, padding, copies of rows and all outcomes") {
  for (const auto& [spec, forced, dependence, outcomes] : cases())
    check_model({.spec = spec,
                 .dimensions = dimensions,
                 .batch = three_documents(),
                 .forced = forced,
                 .padded = {three_documents(7)},
                 .dependence = dependence,
                 .outcomes = outcomes});
}

TEST_CASE("attentive_reader: every example is answered once, after its question has ended") {
  for (const auto& [spec, forced, dependence, outcomes] : cases()) {
    CAPTURE(spec);
    const auto model = lively(spec, dimensions);
    Tape<double> tape;
    ForcedHandler<double> handler(forced);
    Episode<double> episode(tape, handler, 3);
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
