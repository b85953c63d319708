// Countdown: every prompt can be solved, fields agree, and the writer is paid for solutions and for nothing else.
#include <cmath>
#include <set>

#include "core/choice/handlers.hpp"
#include "core/models/model.hpp"
#include "experiments/tasks/task.hpp"
#include "tests/experiments/tasks/support.hpp"

namespace hardgrad::testing::countdown_test {
using namespace tasks;
namespace {

/// The value of `number operator number`, if the words are one.
double pair_value(const std::vector<int>& words) {
  const double a = words[0] - 2, b = words[2] - 2;
  if (words[0] < 3 || words[1] > 2 || words[2] < 3) return NAN;
  return words[1] == 0 ? a + b : words[1] == 1 ? a - b : a * b;
}
bool solved_by(const std::vector<int>& words, std::span<const int> prompt, int largest) {
  const std::multiset<int> given{prompt[0] + 3, prompt[1] + 3}, used{words[0], words[2]};
  return given == used && pair_value(words) == prompt[2] - largest;
}

}  // namespace

TEST_CASE("countdown: every prompt has a solution, and another key has other prompts") {
  const auto task = make_task(Spec::parse("countdown[largest=3,most=9]"), Key(4));
  CHECK(task->dimensions() == Dimensions{{"words", 6}, {"longest", 3}, {"prompt_symbols", 13}, {"expressions", 1}});
  std::set<std::vector<int>> prompts;
  for (int i = 0; i < 60; ++i) {
    const auto batch = task->batch(Split::train, {i});
    const auto prompt = row_of(batch.ints("prompt"), 0), wanted = row_of(batch.ints("wanted"), 0);
    CHECK(wanted[0] == prompt[2] - 3);
    CHECK((wanted[1] == prompt[0] + 3 && wanted[2] == prompt[1] + 3));
    int solutions = 0;
    for (int code = 0; code < 216; ++code) solutions += solved_by({code / 36, code / 6 % 6, code % 6}, prompt, 3);
    CHECK(solutions > 0);
    prompts.insert({prompt.begin(), prompt.end()});
  }
  CHECK(prompts.size() > 15);
  const auto other = make_task(Spec::parse("countdown[largest=3,most=9]"), Key(5));
  std::vector<int> all(20);
  for (int i = 0; i < 20; ++i) all[i] = i;
  CHECK(other->batch(Split::train, all).ints("prompt").storage() != task->batch(Split::train, all).ints("prompt").storage());
  CHECK_THROWS_WITH_AS(make_task(Spec::parse("countdown[largest=9,most=8]"), Key(1)),
                       "countdown: most must be at least largest, or a prompt may have no target", UsageError);
}

TEST_CASE("countdown: numbers of longer prompts are used once each") {
  const auto task = make_task(Spec::parse("countdown[numbers=3]"), Key(4));
  const auto batch = task->batch(Split::test, {0, 1, 2});
  CHECK(extent(batch.ints("prompt"), 1) == 4);
  CHECK(task->dimensions().at("longest") == 5);
}

TEST_CASE("countdown: of all words of the writer, solutions are paid 1, others 0, and the score agrees") {
  const auto task = make_task(Spec::parse("countdown[largest=3,most=9]"), Key(4));
  const auto model = make_model<double>(Spec::parse("writer[hidden=4,embedding=3]"), task->dimensions(), Key(1));
  const auto batch = task->batch(Split::train, {2});
  Tape<double> tape;
  EnumerateHandler<double> handler;
  Episode<double> episode(tape, handler, 1);
  model->run(batch, episode);
  const auto& last = episode.steps().back().choice.rows;
  CHECK(last->size() == 1 + 6 + 36 + 216);
  int solutions = 0;
  for (std::size_t leaf = 0; leaf < last->size(); ++leaf) {
    std::vector<int> words;
    double paid = 0;
    int at = static_cast<int>(leaf);
    for (auto* rows = last.get(); !rows->is_root(); at = rows->parent[at], rows = rows->origin.get()) {
      for (const auto& cost : episode.costs())
        if (cost.rows.get() == rows) paid -= cost.loss.value().data[at];
      const auto& [question, choice] = episode.steps()[rows->step];
      if (question.chooses(rows->parent[at])) words.insert(words.begin(), choice.option()[at]);
    }
    const bool right = words.size() == 3 && words[2] < 6 && solved_by(words, row_of(batch.ints("prompt"), 0), 3);
    solutions += right;
    CHECK(paid == double(right));
    Observation seen;
    words.resize(3, -1);
    seen.predictions = shaped<int>({1, 3}, words);
    auto metrics = task->metrics();
    task->score(batch, seen, metrics);
    CHECK(metrics[0].value() == double(right));
  }
  CHECK(solutions > 0);
}

}  // namespace hardgrad::testing::countdown_test
