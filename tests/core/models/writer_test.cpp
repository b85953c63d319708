// The writer: gradients with every kind of word, both policies and all rewards; the 31 sequences of a toy, each paid its reward.
#include <doctest/doctest.h>

#include "core/autodiff/tape.hpp"
#include "core/models/parts/sequence_rewards.hpp"
#include "tests/core/models/given_choices.hpp"

namespace hardgrad::testing::writer_test {
namespace {

const Dimensions prompts{{"words", 2}, {"longest", 2}, {"prompt_symbols", 2}};
const Dimensions table{{"words", 2}, {"longest", 4}, {"reward_table", 31}};
constexpr int end_mark = 2;

/// The first answer is as long as the limit allows; the second ends with an end mark.
Batch two_prompts() {
  Batch batch;
  batch.id = {3, 4};
  batch.integers["prompt"] = shaped<int>({2, 2}, {1, 0, 0, -1});
  batch.integers["answer"] = shaped<int>({2, 2}, {1, 0, 0, -1});
  return batch;
}
Batch rewarded() {
  Batch batch;
  batch.id = {5};
  batch.reals["rewards"] = zeros<double>({1, 31});
  for (int i = 0; i < 31; ++i) batch.reals["rewards"].flat(i) = 100 + i;
  return batch;
}
const Options right{{1, 0}, {0, end_mark}};

}  // namespace

TEST_CASE("writer: gradients with every kind of word") {
  for (const auto* settings : {"embedding=2,reward=exact", "embedding=2,reward=share", "policy=attention,reward=exact",
                               "policy=attention,reward=share"})
    check_gradients({.spec = std::string("writer[hidden=3,") + settings + "]",
                     .dimensions = prompts,
                     .batch = two_prompts(),
                     .forced = right,
                     .outcomes = {7, 7},
                     .posterior = false});
}

TEST_CASE("writer: attention reads the prompt without its padding, and no word before it is written") {
  const auto model = lively("writer[hidden=4,policy=attention,reward=share]", prompts);
  const auto log_p = [&](const Batch& batch, const Options& words) {
    Tape<double> tape;
    ForcedHandler<double> handler(words);
    Episode<double> episode(tape, handler, 1);
    model->run(batch, episode);
    std::vector<double> all;
    for (int t = 0; t < 2; ++t) {
      const auto options = episode.steps()[t].question.prior_categories().log_p().value();
      all.insert(all.end(), options.data, options.data + 3);
    }
    return all;
  };
  auto batch = two_prompts().select({1});
  const auto before = log_p(batch, {{0}, {1}});
  batch.integers["prompt"] = shaped<int>({1, 4}, {0, -1, -1, -1});
  CHECK(log_p(batch, {{0}, {1}}) == before);
  const auto other_word = log_p(batch, {{1}, {1}});  // known from the second question on
  CHECK(std::equal(before.begin(), before.begin() + 3, other_word.begin()));
  CHECK(std::abs(before[3] - other_word[3]) > 1e-3);
  batch.integers["prompt"] = shaped<int>({1, 2}, {1, -1});
  CHECK(std::abs(log_p(batch, {{0}, {1}})[0] - before[0]) > 1e-3);
  batch.integers["prompt"] = shaped<int>({1, 2}, {0, 1});
  const auto in_order = log_p(batch, {{0}, {1}});
  batch.integers["prompt"] = shaped<int>({1, 2}, {1, 0});
  CHECK(std::abs(log_p(batch, {{0}, {1}})[0] - in_order[0]) > 1e-3);  // places matter
}

TEST_CASE("writer: 31 sequences, 45 logits, and every sequence is paid its reward") {
  const auto model = lively("writer[policy=table]", table);
  CHECK(model->parameters().size() == 45);
  CHECK(model->outcomes(rewarded()) == std::vector<double>{31});
  const SequenceNumbers numbers{2, 4};
  for (int n = 0; n <= 4; ++n)
    for (std::size_t code = 0; code < numbers.first(n + 1) - numbers.first(n); ++code) {
      Options words;  // the first one is the last binary digit of the code; then the end mark, then finished rows
      for (int t = 0; t < 4; ++t) words.push_back({t < n ? static_cast<int>(code >> t & 1) : t == n ? end_mark : 0});
      ForcedHandler<double> handler(words);
      CHECK(losses(*model, rewarded(), handler) ==
            std::vector<double>{-(100.0 + static_cast<double>(numbers.first(n) + code))});
    }
}

TEST_CASE("writer: other policies are distributions of their own, without gradients") {
  const auto model = lively("writer[policy=table,drift=0.5,reference=initial,away=0.5]", table);
  Tape<double> tape;
  EnumerateHandler<double> handler;
  Episode<double> episode(tape, handler, 1, {.drawn_from = DrawnFrom::behaviour});
  model->run(rewarded(), episode);
  const auto& last = episode.costs().back().rows;
  double total = 0;
  const auto q = episode.path_log_probability(last), p = episode.path_log_probability(last, DrawnFrom::prior);
  for (std::size_t r = 0; r < last->size(); ++r) total += std::exp(q.value().data[r]);
  CHECK(total == doctest::Approx(1).epsilon(1e-12));
  CHECK(p.value().data[0] != q.value().data[0]);
  CHECK(episode.path_log_probability(last, DrawnFrom::reference).value().data[0] != p.value().data[0]);
  std::vector<double> gradient(model->parameters().size());
  differentiate(sum(q), model->parameters(), gradient);
  CHECK(std::all_of(gradient.begin(), gradient.end(), [](double g) { return g == 0; }));
}

}  // namespace hardgrad::testing::writer_test
