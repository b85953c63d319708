// The memory reader: gradients, padding, branching, relaxed and enumerated answers.
#include <doctest/doctest.h>

#include "tests/core/models/given_choices.hpp"

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
  batch.integers["story"] = shaped<int>({3, 4, W}, story);
  batch.integers["story_length"] = shaped<int>({3}, {4, 2, 3});
  batch.integers["question"] = shaped<int>({3, 2}, {1, 4, 5, 0, 2, 6});
  batch.integers["answer"] = shaped<int>({3}, {2, 0, 3});
  return batch;
}
const Options forced{{3, 1, 0}, {1, 0, 2}};

std::vector<std::string> specs() {
  return {"memory_reader[embedding=4,hops=2]",
          "memory_reader[embedding=4,hops=2,position_encoding=false]",
          "memory_reader[embedding=4,hops=2,temporal=false]",
          "memory_reader[embedding=4,hops=2,tying=layerwise]",
          "memory_reader[embedding=4,hops=2,tying=free_answers]",
          "memory_reader[embedding=4,hops=2,between_hops=relu]"};
}

}  // namespace

TEST_CASE("memory_reader: gradients, padding, copies of rows and all outcomes") {
  const auto check = [](const std::string& spec, const std::string& dependence, const Options& choices, int hops) {
    check_model({.spec = spec,
                 .dimensions = dimensions,
                 .batch = three_stories(),
                 .forced = choices,
                 .padded = {three_stories(5), three_stories(0, true)},
                 .dependence = dependence,
                 .outcomes = {std::pow(4, hops), std::pow(2, hops), std::pow(3, hops)}});
  };
  for (const auto& spec : specs()) check(spec, "sequential", forced, 2);
  check("memory_reader[embedding=4,hops=1]", "one choice", {forced[0]}, 1);
  check("memory_reader[embedding=4,hops=3]", "sequential", {forced[0], forced[1], forced[0]}, 3);
}

TEST_CASE(
    "memory_reader: answers have the last table's rows by default, if the task names them, otherwise weights of their own") {
  const auto has_weights = [](const std::string& spec) {
    return lively(spec, dimensions)->parameters().find("answer.weight") != nullptr;
  };
  CHECK(!has_weights("memory_reader[embedding=4,hops=2]"));
  CHECK(has_weights("memory_reader[tying=free_answers]"));
  CHECK(has_weights("memory_reader[tying=layerwise]"));
  auto silent = dimensions;
  silent.erase("answer_word");
  CHECK_THROWS_WITH_AS(lively("memory_reader", silent),
                       "memory_reader: tying=adjacent: the task declares no answer_word: take tying=free_answers", UsageError);
  CHECK_NOTHROW(lively("memory_reader[tying=free_answers]", silent));
}

TEST_CASE("memory_reader: dropout depends on the example, and a batch without a key has none") {
  testing::check_dropout("memory_reader[embedding=8,hops=2,dropout=", dimensions, three_stories(), forced, {"readout"});
}

}  // namespace hardgrad::testing::memory_reader_test
