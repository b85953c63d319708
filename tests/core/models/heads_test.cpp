// The translator with several heads of attention: a site of several columns, with separate keys and values for each.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/core/models/given_choices.hpp"

namespace hardgrad::testing::heads_test {
namespace {

const Dimensions dimensions{
    {"source_vocabulary", 6}, {"target_vocabulary", 5}, {"source_length", 3}, {"target_length", 4}, {"bos", 1}, {"eos", 2}};

Batch three_sentences(int padding = 0) {
  const int p = padding;
  Batch batch;
  batch.id = {4, 5, 6};
  batch.integers["source"] = shaped<int>({3, 3}, {3, 4, 5, 4, 1, p, 5, 3, 3});
  batch.integers["source_length"] = shaped<int>({3}, {3, 2, 3});
  batch.integers["target"] = shaped<int>({3, 2}, {3, 2, 2, p, 4, 2});
  batch.integers["target_length"] = shaped<int>({3}, {2, 1, 2});
  return batch;
}
const Options forced{{2, 0, 1, 0, 0, 2}, {1, 2, 0, 0, 2, 1}};  // two heads of three examples

std::string translator(const std::string& score, const std::string& feed, int heads = 2) {
  return "translator[embedding=3,hidden=4,heads=" + std::to_string(heads) + ",score=" + score + ",feed=" + feed + "]";
}

std::vector<std::string> specs() {
  std::vector<std::string> all;
  for (const auto* score : {"additive", "dot", "general", "scaled_dot"})
    for (const auto* feed : {"none", "soft", "sampled"}) all.push_back(translator(score, feed));
  return all;
}

}  // namespace

TEST_CASE("heads: gradients, padding, copies of rows and all outcomes") {
  for (const auto& spec : specs())
    check_model({.spec = spec,
                 .dimensions = dimensions,
                 .batch = three_sentences(),
                 .forced = forced,
                 .columns = 2,
                 .padded = {three_sentences(3)},
                 .outcomes = {81, 4, 81}});
  for (const auto* feed : {"none", "soft", "sampled"})
    check_outcomes(*lively(translator("scaled_dot", feed, 4), dimensions), three_sentences(), {6561, 16, 6561}, 4);
}

TEST_CASE("heads: two heads with equal matrices have distinct readers") {
  // If the loss ignored which head made a choice, swapping the heads' choices would change nothing.
  for (const auto& spec : specs()) {
    const auto model = lively(spec, dimensions);
    auto swapped = forced;
    for (auto& step : swapped)
      for (std::size_t r = 0; r < step.size(); r += 2) std::swap(step[r], step[r + 1]);
    ForcedHandler<double> as_is(forced), other(swapped);
    CHECK(distance(losses(*model, three_sentences(), as_is), losses(*model, three_sentences(), other)) > 1e-4);
  }
}

TEST_CASE("heads: with a second head that is not read, the network equals that with one") {
  for (const auto* feed : {"none", "soft", "sampled"}) {
    CAPTURE(feed);
    const auto one = lively(translator("dot", feed, 1), dimensions), two = lively(translator("general", feed), dimensions);
    for (auto& p : two->parameters()) {
      const auto& from = *one->parameters().find(p.name);
      const bool read = p.name == "readout.context.weight" || p.name == "decoder.context.weight";
      // [O, 2H] -> [O, 2H, 0] for reading; [H, 2H] -> [H + H, 2H] for scoring: the second head keeps nonzero parameters.
      for (std::size_t i = 0; i < p.value.size(); ++i)
        if (read)
          p.value.flat(i) = i % 16 < 8 ? from.value.flat(i / 16 * 8 + i % 16) : 0;
        else if (i < from.value.size())
          p.value.flat(i) = from.value.flat(i);
    }
    Options first;
    for (const auto& step : forced) {
      first.emplace_back();
      for (std::size_t r = 0; r < step.size(); r += 2) first.back().push_back(step[r]);
    }
    ForcedHandler<double> both(forced), single(first);
    CHECK(distance(losses(*one, three_sentences(), single), losses(*two, three_sentences(), both)) < 1e-12);
    CHECK(expected_loss_by_rows(*one, three_sentences()) ==
          doctest::Approx(expected_loss_by_rows(*two, three_sentences())).epsilon(1e-12));
    ExpectedHandler<double> soft;
    CHECK(distance(losses(*one, three_sentences(), soft), losses(*two, three_sentences(), soft)) < 1e-12);
  }
}

TEST_CASE("heads: the site is named after them, and they must divide the hidden units") {
  const auto model = lively(translator("dot", "none"), dimensions);
  CHECK(model->structure().sites.at(0).name == "head");
  CHECK(model->structure().sites.at(0).columns == 2);
  CHECK(lively(translator("dot", "none", 1), dimensions)->structure().sites.at(0).name == "position");
  CHECK_THROWS_WITH_AS(lively(translator("dot", "none", 3), dimensions), "translator: heads=3 must divide hidden=4",
                       UsageError);
}

}  // namespace hardgrad::testing::heads_test
