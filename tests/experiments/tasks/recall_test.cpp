// Recall and induction: the labels follow from the tokens, and queries are where their power has them.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "experiments/tasks/task.hpp"
#include "experiments/tasks/text.hpp"
#include "tests/experiments/tasks/support.hpp"

namespace hardgrad::testing::recall_test {
using namespace tasks;

namespace {

Batch first(const std::string& spec, int count) {
  std::vector<int> all(count);
  std::iota(all.begin(), all.end(), 0);
  return make_task(Spec::parse(spec), Key(1))->batch(Split::train, all);
}

}  // namespace

TEST_CASE("recall: every query has the value of its key, and pairs have different keys and values") {
  for (const bool joined : {false, true}) {
    const auto batch = first(joined ? "recall[pairs=3,queries=2,length=9,vocabulary=10,joined=true]"
                                    : "recall[pairs=3,queries=2,length=12,vocabulary=10]",
                             300);
    int asked = 0;
    for (int b = 0; b < 300; ++b) {
      const auto token = row_of(batch.ints("token"), b);
      const auto label = row_of(batch.ints("label"), b);
      std::map<int, int> value;
      std::set<int> values;
      const int shown = joined ? 3 : 6;
      for (int i = 0; i < shown; i += joined ? 1 : 2) {
        const int k = joined ? (token[i] - 11) / 5 : token[i], v = joined ? (token[i] - 11) % 5 : token[i + 1] - 5;
        REQUIRE((k >= 0 && k < 5 && v >= 0 && v < 5));
        value[k] = v;
        values.insert(v);
      }
      CHECK(value.size() == 3);
      CHECK(values.size() == 3);
      std::set<int> keys;
      for (std::size_t t = 0; t < token.size(); ++t) {
        if (label[t] < 0) continue;
        CHECK(static_cast<int>(t) >= shown);
        CHECK(label[t] == value.at(token[t]));
        keys.insert(token[t]);
        ++asked;
      }
      CHECK(keys.size() == 2);
      for (std::size_t t = shown; t < token.size(); ++t) CHECK((label[t] >= 0) != (token[t] == 10));
    }
    CHECK(asked == 600);
  }
}

TEST_CASE("recall: places of a query have the probabilities of their power") {
  constexpr int count = 4000;
  for (const double power : {1.0, 0.01, 3.0}) {
    CAPTURE(power);
    const auto batch = first(fmt::format("recall[pairs=1,queries=1,length=6,vocabulary=4,power={}]", power), count);
    double found[4] = {}, all = 0;
    for (int b = 0; b < count; ++b)
      for (int t = 2; t < 6; ++t) found[t - 2] += batch.ints("label")(b, t) >= 0;
    for (int g = 1; g <= 4; ++g) all += std::pow(g, power - 1);
    for (int g = 1; g <= 4; ++g) {
      const double p = std::pow(g, power - 1) / all;
      CHECK(std::abs(found[g - 1] - count * p) < 4.5 * std::sqrt(count * p * (1 - p)));
    }
  }
}

TEST_CASE("induction: the label is the token that followed") {
  const auto once = first("induction[length=7,vocabulary=4]", 200);
  for (int b = 0; b < 200; ++b) {
    const auto token = row_of(once.ints("token"), b);
    int before = -1, times = 0;
    for (int t = 0; t < 6; ++t)
      if (token[t] == token[6]) before = t, ++times;
    CHECK(times == 1);
    CHECK(before < 5);
    for (int t = 0; t < 6; ++t) CHECK(once.ints("label")(b, t) == -1);
    CHECK(once.ints("label")(b, 6) == token[before + 1]);
  }
  const auto repeated = first("induction[kind=repeated,length=7,vocabulary=4]", 200);
  CHECK(extent(repeated.ints("token"), 1) == 6);
  for (int b = 0; b < 200; ++b)
    for (int t = 0; t < 6; ++t) {
      const auto token = row_of(repeated.ints("token"), b);
      if (t < 3) CHECK(token[t] == token[t + 3]);
      CHECK(repeated.ints("label")(b, t) == (t < 3 || t == 5 ? -1 : token[t + 1]));
    }
}

TEST_CASE("answers: as tokens, the labels from the mark on are the answer and its end") {
  const auto batch = first("answers[kind=sort,symbols=3,size=3]", 100);
  for (int b = 0; b < 100; ++b) {
    std::vector<int> tokens, labels, wanted;
    for (int symbol : row_of(batch.ints("prompt"), b))
      if (symbol >= 0) tokens.push_back(symbol), labels.push_back(-1);
    tokens.push_back(3);
    for (int word : row_of(batch.ints("answer"), b))
      if (word >= 0) tokens.push_back(word), labels.push_back(word);
    labels.push_back(3);
    const auto token = row_of(batch.ints("token"), b), label = row_of(batch.ints("label"), b);
    REQUIRE(token.size() == 7);
    for (std::size_t t = 0; t < 7; ++t) {
      CHECK(token[t] == (t < tokens.size() ? tokens[t] : -1));
      CHECK(label[t] == (t < labels.size() ? labels[t] : -1));
    }
  }
}

TEST_CASE("letters: each label is the next character, and other data have the numbers of the trained ones") {
  const Folder folder;
  const auto path = folder.write("text", "ab\u00e4c\nabab\nba\n");
  const auto task = make_task(Spec::parse("letters[length=3,heldout=0,test=0,path=" + path + "]"), Key(1));
  CHECK(task->size(Split::train) == 3);  // of 4 characters each; the rest of one is left out
  std::multiset<std::string> pieces;
  const auto batch = task->batch(Split::train, {0, 1, 2});
  for (int b = 0; b < 3; ++b) {
    std::string piece;
    for (int t = 0; t < 3; ++t) {
      piece += task->word("token", batch.ints("token")(b, t));
      if (t < 2) CHECK(batch.ints("label")(b, t) == batch.ints("token")(b, t + 1));
    }
    pieces.insert(piece + task->word("label", batch.ints("label")(b, 2)));
  }
  CHECK(pieces == std::multiset<std::string>{"ab\u00e4c", "<eol>aba", "b<eol>ba"});
  CHECK(task->dimensions().at("tokens") == 2 + 5);
  const auto more = folder.write("more", "zcba");
  const auto other = make_task(Spec::parse("letters[length=3,heldout=0,test=0,path=" + more + "]"), Key(1), task.get())
                         ->batch(Split::train, {0});
  CHECK(other.ints("token")(0, 0) == Vocabulary::unknown);
  CHECK(task->word("token", other.ints("token")(0, 1)) == "c");
  CHECK_THROWS_WITH_AS(make_task(Spec::parse("letters[length=9,path=" + more + "]"), Key(1)),
                       (more + ": nothing left: a piece has length + 1 = 10 characters, the text 5: lower length").c_str(),
                       InputError);
  const auto generated = make_task(Spec::parse("letters[stories=20]"), Key(1));
  CHECK(generated->size(Split::train) > 50);
  CHECK(generated->size(Split::heldout) > 0);
}

TEST_CASE("recall and induction: faults are one line") {
  const auto refused = [](const std::string& spec, const char* line) {
    CHECK_THROWS_WITH_AS(make_task(Spec::parse(spec), Key(1)), line, UsageError);
  };
  refused("recall[vocabulary=9]", "recall: half of the vocabulary are keys: give an even number, not 9");
  refused("recall[vocabulary=6]", "recall: 4 pairs have different keys, but vocabulary=6 has 3: give at least 8");
  refused("recall[queries=5]", "recall: queries=5 is more than the 4 pairs");
  refused("recall[length=9]", "recall: 4 pairs and 2 queries have 10 tokens: give length=10 or more, not 9");
  refused("induction[kind=repeated,length=3]", "induction: kind=repeated needs length=4 or more, not 3");
}

}  // namespace hardgrad::testing::recall_test
