// Algorithms: targets follow from inputs, lengths are in the requested range, and every target bit is scored.
#include <cmath>
#include <numeric>
#include <set>

#include "experiments/tasks/task.hpp"
#include "tests/experiments/tasks/support.hpp"

namespace hardgrad::testing::algorithm_test {
using namespace tasks;

namespace {

std::unique_ptr<Task> make(const std::string& arguments, std::uint64_t seed = 1) {
  return make_task(Spec::parse("algorithm[" + arguments + "]"), Key(seed));
}
Batch first(const Task& task, Split split, int count) {
  std::vector<int> all(count);
  std::iota(all.begin(), all.end(), 0);
  return task.batch(split, all);
}

using Vectors = std::vector<std::vector<int>>;

/// The steps of one example, decoded from the batch.
struct Seen {
  Vectors shown;                            // input steps without marks, before the answer
  std::vector<std::vector<double>> beside;  // their other channels
  std::vector<std::pair<int, int>> marks;   // (number of earlier input steps, channel)
  std::vector<double> mark_values;
  Vectors wanted;
};
Seen seen(const Batch& batch, int b, std::size_t bits) {
  const auto& input = batch.numbers("input");
  const auto& answer = batch.ints("answer");
  const std::size_t I = extent(input, 2), O = extent(answer, 2);
  Seen result;
  for (int t = 0; t < batch.ints("length")(b); ++t) {
    const auto x = row_of(input, b).subspan(t * I, I);
    const auto y = row_of(answer, b).subspan(t * O, O);
    if (y[0] >= 0) {
      CHECK(std::all_of(x.begin(), x.end(), [](double v) { return v == 0; }));
      result.wanted.emplace_back(y.begin(), y.end());
      continue;
    }
    CHECK(std::all_of(y.begin(), y.end(), [](int v) { return v == -1; }));
    CHECK(result.wanted.empty());  // all inputs come before the first answer
    bool marked = false;
    for (std::size_t c = bits; c < I; ++c)
      if (x[c] == 1) {
        result.marks.emplace_back(result.shown.size(), c - bits);
        result.mark_values.push_back(x[I - 1]);
        marked = true;
      }
    if (marked) continue;
    result.shown.emplace_back(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(bits));
    result.beside.emplace_back(x.begin() + static_cast<std::ptrdiff_t>(bits), x.end());
  }
  return result;
}

}  // namespace

TEST_CASE("targets follow from inputs") {
  const std::size_t bits = 6;
  int examples = 0;
  for (const auto* kind : {"copy", "duplicated_input", "reverse", "repeat_copy", "associative_recall", "priority_sort"}) {
    CAPTURE(kind);
    const std::string name = kind;
    const auto task = make("bits=6,min_length=2,max_length=6,repeats=3,examples=60,kind=" + name);
    const auto batch = first(*task, Split::train, 60);
    std::set<std::size_t> lengths, times;
    for (int b = 0; b < 60; ++b, ++examples) {
      const auto [shown, beside, marks, values, wanted] = seen(batch, b, bits);
      Vectors expected = shown;
      if (name == "duplicated_input") {
        REQUIRE(shown.size() % 3 == 0);
        expected.clear();
        for (std::size_t k = 0; k < shown.size(); k += 3) {
          CHECK((shown[k] == shown[k + 1] && shown[k] == shown[k + 2]));
          expected.push_back(shown[k]);
        }
      }
      if (name == "reverse") std::reverse(expected.begin(), expected.end());
      if (name == "copy" || name == "duplicated_input" || name == "reverse")
        CHECK(marks == std::vector<std::pair<int, int>>{{shown.size(), 0}});
      if (name == "repeat_copy") {
        CHECK(marks.front() == std::pair<int, int>{shown.size(), 0});
        const auto repeats = static_cast<std::size_t>(std::lround(values[0] * std::sqrt(8.0 / 12) + 2));  // mean 2 of 1, 2, 3
        times.insert(repeats);
        expected.clear();
        for (std::size_t r = 0; r < repeats; ++r) expected.insert(expected.end(), shown.begin(), shown.end());
        for (auto& vector : expected) vector.push_back(0);
        expected.emplace_back(bits + 1, 0).back() = 1;  // the end mark
      }
      if (name == "associative_recall") {
        const auto n = shown.size() / 3 - 1;  // the last three steps are the query
        for (std::size_t k = 0; k < n; ++k) CHECK(marks[k] == std::pair<int, int>{3 * k, 0});
        CHECK(marks[n] == std::pair<int, int>{3 * n, 1});
        CHECK(marks[n + 1] == std::pair<int, int>{3 * n + 3, 1});
        expected.clear();
        for (std::size_t k = 0; k + 1 < n; ++k)
          if (std::equal(shown.end() - 3, shown.end(), shown.begin() + static_cast<std::ptrdiff_t>(3 * k)))
            expected.assign(shown.begin() + static_cast<std::ptrdiff_t>(3 * k + 3),
                            shown.begin() + static_cast<std::ptrdiff_t>(3 * k + 6));
      }
      if (name == "priority_sort") {
        std::vector<std::pair<double, std::size_t>> order;
        for (std::size_t k = 0; k < shown.size(); ++k) order.emplace_back(-beside[k][0], k);
        std::sort(order.begin(), order.end());
        expected.clear();
        for (std::size_t k = 0; 5 * k < 4 * shown.size(); ++k) expected.push_back(shown[order[k].second]);
      }
      CHECK(wanted == expected);
      lengths.insert(shown.size());
    }
    CHECK(lengths.size() == 5);  // every length from 2 to 6
    if (name == "repeat_copy") CHECK(times == std::set<std::size_t>{1, 2, 3});
  }
  CHECK(examples == 360);
}

TEST_CASE("ngrams: the answer is the next bit, its law depends on the last bits, and each sequence has a law of its own") {
  const int examples = 200, n = 60, context = 2;
  const auto task = make("kind=ngrams,context=2,bits=2,min_length=60,max_length=60");
  CHECK(!task->dimensions().contains("shown_steps"));
  const auto batch = first(*task, Split::train, examples);
  const auto& input = batch.numbers("input");
  const auto& answer = batch.ints("answer");
  REQUIRE(input.shape() == std::vector<std::size_t>{200, 59, 2});
  double same = 0, pairs = 0, same_other = 0, others = 0;
  for (int b = 0; b < examples; ++b)
    for (int d = 0; d < 2; ++d) {
      std::vector<std::vector<int>> after(4);  // the bits after each context
      for (int t = 0; t + 1 < n; ++t) {
        const int next = row_of(answer, b)[t * 2 + d];
        if (t + 1 < context) {
          CHECK(next == -1);
          continue;
        }
        if (t + 2 < n) CHECK(row_of(input, b)[(t + 1) * 2 + d] == next);
        after[static_cast<int>(2 * row_of(input, b)[t * 2 + d] + row_of(input, b)[(t - 1) * 2 + d])].push_back(next);
      }
      for (const auto& bits : after)
        if (bits.size() > 1) same += bits[0] == bits[1], ++pairs;
      if (!after[0].empty() && !after[3].empty()) same_other += after[0][0] == after[3][0], ++others;
    }
  // Two bits of one context agree with probability E(p^2 + (1 - p)^2) = 3/4, bits of different contexts with 1/2; within five
  // deviations
  CHECK(std::abs(same / pairs - 0.75) < 5 * std::sqrt(3.0 / 16 / pairs));
  CHECK(std::abs(same_other / others - 0.5) < 5 * std::sqrt(1.0 / 4 / others));
  const Folder folder;
  CHECK(has(refusal(folder, [] { make("kind=ngrams"); }), "ngrams of context=5 need min_length of at least 6, got 1"));
}

TEST_CASE("sequences do not depend on the batch, differ between examples, and are disjoint between splits") {
  const auto task = make("examples=40,heldout=10,test=12,longer=30"), again = make("examples=40,heldout=10,test=12,longer=30");
  std::set<std::uint32_t> ids;
  std::set<std::vector<double>> different;
  for (const auto split : {Split::train, Split::heldout, Split::test}) {
    const auto count = static_cast<int>(task->size(split));
    const auto batch = first(*task, split, count);
    ids.insert(batch.id.begin(), batch.id.end());
    for (int b = 0; b < count; ++b) {
      const auto alone = again->batch(split, {b});
      const auto one = row_of(alone.numbers("input"), 0), of_batch = row_of(batch.numbers("input"), b);
      CHECK(std::equal(one.begin(), one.end(), of_batch.begin()));
      different.emplace(one.begin(), one.end());
      const int steps = batch.ints("length")(b);
      if (split == Split::test) {
        CHECK(steps == (b % 2 == 1 ? 61 : 41));
        CHECK(batch.ints("longer")(b) == b % 2);
      } else {
        CHECK((steps >= 3 && steps <= 41));
      }
    }
  }
  CHECK(ids.size() == 62);
  CHECK(different.size() > 58);  // there are only 256 sequences of one vector
  CHECK(first(*make("examples=40", 2), Split::train, 4).numbers("input").storage() !=
        first(*make("examples=40", 1), Split::train, 4).numbers("input").storage());
}

TEST_CASE("every target bit is scored, longer sequences separately") {
  const auto task = make("bits=3,min_length=2,max_length=2,longer=3,test=2");
  const auto batch = first(*task, Split::test, 2);
  Observation seen{batch.ints("answer"), {}};
  seen.predictions.reshape(Shape{2, 21});  // [B, T O]
  auto metrics = task->metrics();
  REQUIRE(metrics.size() == 4);
  task->score(batch, seen, metrics);
  CHECK(metrics[0].value() == 0);
  CHECK(metrics[1].value() == 1);
  CHECK(metrics[2].value() == 0);
  CHECK(metrics[3].value() == 1);
  int& bit = row_of(seen.predictions, 1)[20];  // the last of the longer one
  bit = 1 - bit;
  metrics = task->metrics();
  task->score(batch, seen, metrics);
  CHECK(metrics[0].denominator == 6);
  CHECK(metrics[0].value() == 0);
  CHECK(metrics[2].value() == doctest::Approx(1.0 / 9));
  CHECK(metrics[3].value() == 0);

  // Bits may be predicted at any time; only their order counts. A missing bit is wrong and shifts the later ones.
  const auto answer = row_of(batch.ints("answer"), 0);
  std::vector<int> bits;
  std::copy_if(answer.begin(), answer.end(), std::back_inserter(bits), [](int said) { return said >= 0; });
  REQUIRE(bits.size() == 6);
  const auto of_first = [&](const std::vector<int>& said) {
    Observation early{full<int>({2, 21}, -1), {}};
    std::copy(said.begin(), said.end(), row_of(early.predictions, 0).begin());
    metrics = task->metrics();
    task->score(batch, early, metrics);
    return metrics[0].value();
  };
  CHECK(of_first({-1, bits[0], bits[1], -1, -1, bits[2], bits[3], bits[4], -1, bits[5]}) == 0);
  CHECK(of_first({bits[0], bits[1], bits[2], bits[3], bits[4]}) == doctest::Approx(1.0 / 6));
  CHECK(of_first({}) == 1);
}

TEST_CASE("dimensions fit the longest sequence") {
  const auto check = [](const std::string& arguments, int inputs, int outputs, int steps, int vectors, int shown) {
    CAPTURE(arguments);
    const auto task = make(arguments);
    CHECK(task->dimensions() == Dimensions{{"input_width", inputs},
                                           {"answer_width", outputs},
                                           {"steps", steps},
                                           {"vectors", vectors},
                                           {"shown_steps", shown}});
    int longest = 0, most_shown = 0;
    for (const auto split : {Split::train, Split::test}) {
      const auto batch = first(*task, split, 200);
      for (int b = 0; b < batch.examples(); ++b) {
        longest = std::max(longest, batch.ints("length")(b));
        int without_answer = 0;
        for (int t = 0; t < batch.ints("length")(b); ++t)
          without_answer += row_of(batch.ints("answer"), b)[t * extent(batch.ints("answer"), 2)] < 0;
        most_shown = std::max(most_shown, without_answer);
      }
    }
    CHECK(longest == steps);
    CHECK(most_shown == shown);
  };
  check("", 9, 8, 41, 20, 21);
  check("kind=duplicated_input,max_length=4,bits=5", 6, 5, 17, 4, 13);
  check("kind=reverse,longer=25", 9, 8, 51, 25, 26);
  check("kind=repeat_copy,max_length=4,repeats=3", 10, 9, 18, 4, 5);
  check("kind=associative_recall,min_length=2,max_length=3,bits=6", 8, 6, 20, 9, 17);
  check("kind=priority_sort,max_length=5", 10, 8, 10, 5, 6);
}

TEST_CASE("a curriculum begins with short sequences and some of any length, and ends with the usual distribution") {
  const auto task = make("bits=2,min_length=2,max_length=10,curriculum=1000,examples=2000");
  const auto* graded = dynamic_cast<const Graded*>(task.get());
  REQUIRE(graded);
  std::vector<int> all(2000);
  std::iota(all.begin(), all.end(), 0);
  const auto longer_than = [&](int n, std::uint64_t seen, int epoch) {  // copy: 2 n + 1 steps
    const auto batch = graded->graded_batch(all, Key(4) / std::uint64_t(epoch), seen);
    return std::count_if(batch.ints("length").begin(), batch.ints("length").end(), [&](int t) { return t > 2 * n + 1; });
  };
  // A fifth of 2,000, 400 +- 18 (a standard deviation), has any length. Of these, 8/9 are above min_length and 4/9 above 6:
  // 356 +- 17 and 178 +- 13.
  CHECK(std::abs(longer_than(2, 0, 1) - 356) < 100);
  CHECK(std::abs(longer_than(6, 500, 1) - 178) < 80);
  CHECK(longer_than(10, 500, 1) == 0);
  const auto at_start = [&](int epoch) {
    return graded->graded_batch(all, Key(4) / std::uint64_t(epoch), 0).ints("length").storage();
  };
  CHECK(at_start(1) == at_start(1));
  CHECK(at_start(1) != at_start(2));
  const auto over = graded->graded_batch(all, Key(4), 1000), without = task->batch(Split::train, all);
  CHECK(over.ints("length").storage() == without.ints("length").storage());
  CHECK(over.numbers("input").storage() == without.numbers("input").storage());
  const auto none = make("bits=2,max_length=10,examples=2000");
  CHECK(dynamic_cast<const Graded&>(*none).graded_batch(all, Key(4), 0).ints("length").storage() ==
        none->batch(Split::train, all).ints("length").storage());
}

TEST_CASE("settings without valid sequences are rejected") {
  const Folder folder;
  const auto refused = [&](const std::string& arguments) { return refusal(folder, [&] { make(arguments); }); };
  CHECK(refused("min_length=5,max_length=4") == "algorithm: min_length must be at most max_length, 4, got 5");
  CHECK(refused("max_length=4,longer=4") == "algorithm: longer must be above max_length, 4, or 0 for none, got 4");
  CHECK(refused("kind=associative_recall") == "algorithm: associative_recall needs min_length of at least 2 items, got 1");
  CHECK(has(refused("kind=juggle"), "algorithm"));
}

}  // namespace hardgrad::testing::algorithm_test
