// Reviews: lengths, which words are planted, how often the label is 1, refusals.
#include <cmath>
#include <map>
#include <numeric>

#include "experiments/tasks/task.hpp"
#include "tests/experiments/tasks/support.hpp"

namespace hardgrad::testing::reviews_test {
using namespace tasks;

namespace {

constexpr int count = 4000;

Batch first(const std::string& arguments) {
  std::vector<int> all(count);
  std::iota(all.begin(), all.end(), 0);
  return make_task(Spec::parse("reviews[" + arguments + "]"), Key(1))->batch(Split::train, all);
}

}  // namespace

TEST_CASE("reviews: a quarter of the words has a strength, which alone decides the label") {
  const std::map<std::string, int> strength = {{"awful", -2}, {"dreadful", -2}, {"poor", -1},  {"dull", -1},
                                               {"decent", 1}, {"pleasant", 1},  {"superb", 2}, {"brilliant", 2}};
  const auto task = make_task(Spec::parse("reviews[shortest=3,longest=9]"), Key(1));
  const auto drawn = first("shortest=3,longest=9"), sure = first("shortest=3,longest=9,sure=true");
  CHECK(drawn.ints("word").storage() == sure.ints("word").storage());
  const auto words = static_cast<std::size_t>(task->dimensions().at("feature_width"));
  double off = 0, variance = 0;
  std::map<int, int> of_length, of_place;
  for (int b = 0; b < count; ++b) {
    const auto n = static_cast<std::size_t>(drawn.ints("length")(b));
    ++of_length[static_cast<int>(n)];
    int total = 0, planted = 0;
    for (std::size_t i = 0; i < 9; ++i) {
      const int word = row_of(drawn.ints("word"), b)[i];
      const auto one_hot = row_of(drawn.numbers("x"), b).subspan(i * words, words);
      CHECK(std::accumulate(one_hot.begin(), one_hot.end(), 0.0) == (i < n));
      CHECK((word >= 0) == (i < n));
      if (i >= n) continue;
      CHECK(one_hot[static_cast<std::size_t>(word)] == 1);
      const auto entry = strength.find(task->word("word", word));
      CHECK(row_of(drawn.ints("planted"), b)[i] == (entry != strength.end()));
      if (entry == strength.end()) continue;
      total += entry->second;
      ++planted;
      ++of_place[static_cast<int>(i)];
    }
    CHECK(planted == static_cast<int>((n + 3) / 4));
    CHECK(sure.ints("label")(b) == (total >= 0));
    const double p = 1 / (1 + std::exp(-2.0 * total));
    off += drawn.ints("label")(b) - p;
    variance += p * (1 - p);
  }
  CHECK(of_length.size() == 7);
  CHECK(of_place.size() == 9);
  CHECK(std::abs(off) < 4.5 * std::sqrt(variance));
  CHECK(variance > 100);
}

TEST_CASE("reviews: a shortest review longer than the longest is refused") {
  CHECK_THROWS_WITH_AS(first("shortest=5,longest=4"), doctest::Contains("shortest=5 is more than longest=4"), UsageError);
}

}  // namespace hardgrad::testing::reviews_test
