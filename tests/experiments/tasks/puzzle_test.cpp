// Puzzles: labels follow from inputs, difficulties are spread, every label is scored.
#include <algorithm>
#include <numeric>
#include <set>
#include <span>

#include "experiments/tasks/task.hpp"
#include "tests/experiments/tasks/support.hpp"

namespace hardgrad::testing::puzzle_test {
using namespace tasks;

namespace {

std::unique_ptr<Task> make(const std::string& arguments, std::uint64_t seed = 1) {
  return make_task(Spec::parse("puzzle[" + arguments + "]"), Key(seed));
}
Batch first(const Task& task, Split split, int count) {
  std::vector<int> all(count);
  std::iota(all.begin(), all.end(), 0);
  return task.batch(split, all);
}

/// The labels of one example, recomputed from its input, and its difficulty.
std::pair<std::vector<int>, int> solved(const std::string& kind, std::span<const double> x, std::size_t size) {
  if (kind == "parity") {
    const auto ones = std::count(x.begin(), x.end(), 1), others = std::count(x.begin(), x.end(), -1);
    return {{static_cast<int>(ones % 2)}, static_cast<int>(ones + others)};
  }
  if (kind == "addition") {
    long sum = 0, power = 1;
    int there = 0;
    for (std::size_t k = 0; k < size; ++k, power *= 10)
      for (std::size_t number = 0; number < 2; ++number) {
        const auto digit = x.subspan((number * size + k) * 11, 11);
        CHECK(std::count(digit.begin(), digit.end(), 1) == 1);
        if (digit[10] == 1) continue;
        ++there;
        sum += power * (std::find(digit.begin(), digit.end(), 1) - digit.begin());
      }
    std::vector<int> labels(size + 1, -1);
    for (int k = 0; k <= there / 2; ++k, sum /= 10) labels[k] = static_cast<int>(sum % 10);
    return {labels, there / 2};
  }
  const auto there = std::count(x.begin() + static_cast<std::ptrdiff_t>(size), x.end(), 1);
  std::vector<int> labels(size, -1);
  for (int i = 0; i < there; ++i) {  // its position is the number of smaller values
    const auto place = std::count_if(x.begin(), x.begin() + there, [&](double v) { return v < x[i]; });
    labels[place] = i;
  }
  return {labels, static_cast<int>(there)};
}

}  // namespace

TEST_CASE("labels follow from inputs, and difficulties are spread") {
  int examples = 0;
  for (const std::string kind : {"parity", "addition", "sort"}) {
    CAPTURE(kind);
    const auto task = make("size=6,least=2,examples=80,kind=" + kind);
    const auto needs = task->dimensions();
    const auto batch = first(*task, Split::train, 80);
    CHECK(extent(batch.numbers("x"), 1) == static_cast<std::size_t>(needs.at("puzzle_width")));
    std::set<int> difficulties, labels;
    for (int b = 0; b < 80; ++b, ++examples) {
      const auto [expected, difficulty] = solved(kind, row_of(batch.numbers("x"), b), 6);
      const auto label = row_of(batch.ints("label"), b);
      CHECK(std::vector<int>(label.begin(), label.end()) == expected);
      CHECK(batch.ints("difficulty")(b) == difficulty);
      CHECK(*std::max_element(label.begin(), label.end()) < needs.at("labels"));
      difficulties.insert(difficulty);
      labels.insert(label[0]);
    }
    CHECK(difficulties == std::set<int>{2, 3, 4, 5, 6});
    CHECK(labels.size() > 1);
  }
  CHECK(examples == 240);
}

TEST_CASE("sequences: the gates' outputs and the sums follow from the inputs so far") {
  const std::vector<std::string> gates{"0001", "0010", "0100", "0110", "0111", "1000", "1001", "1011", "1101", "1110"};
  for (const std::string kind : {"logic", "sums"}) {
    CAPTURE(kind);
    const auto task = make("size=4,least=2,length=5,examples=60,kind=" + kind);
    const auto needs = task->dimensions();
    const auto batch = first(*task, Split::train, 60);
    const std::size_t T = 5, I = needs.at("puzzle_width"), P = needs.at("positions");
    REQUIRE(needs.at("puzzle_steps") == 5);
    std::set<int> lengths, difficulties, labels;
    for (int b = 0; b < 60; ++b) {
      const int length = batch.ints("length")(b);
      lengths.insert(length);
      int bit = 0;
      long sum = 0;
      for (std::size_t t = 0; t < T; ++t) {
        const auto x = row_of(batch.numbers("x"), b).subspan(t * I, I);
        const auto label = row_of(batch.ints("label"), b).subspan(t * P, P);
        const int n = row_of(batch.ints("difficulty"), b)[t];
        if (static_cast<int>(t) >= length) {
          CHECK((n == -1 && std::count(x.begin(), x.end(), 0) == static_cast<long>(I)));
          CHECK(std::count(label.begin(), label.end(), -1) == static_cast<long>(P));
          continue;
        }
        difficulties.insert(n);
        std::vector<int> expected(P, -1);
        if (kind == "logic") {
          std::vector<int> bits{static_cast<int>(x[0]), t == 0 ? static_cast<int>(x[1]) : bit};
          CHECK((t == 0 || x[1] == 0));
          for (int k = 0; k < n; ++k) {
            const auto chunk = x.subspan(2 + k * 10, 10);
            const auto& table = gates[std::find(chunk.begin(), chunk.end(), 1) - chunk.begin()];
            bits.push_back(table[3 - (2 * bits.back() + bits[bits.size() - 2])] - '0');
          }
          CHECK(std::count(x.begin() + 2, x.end(), 1) == n);
          expected[0] = bit = bits.back();
        } else {
          long power = 1;
          for (int k = 0; k < n; ++k, power *= 10) {
            const auto digit = x.subspan(k * 10, 10);
            sum += power * (std::find(digit.begin(), digit.end(), 1) - digit.begin());
          }
          CHECK(std::count(x.begin(), x.end(), 1) == n);
          const auto written = std::to_string(sum);
          for (std::size_t k = 0; t > 0 && k < P; ++k)
            expected[k] = k < written.size() ? written[written.size() - 1 - k] - '0' : 10;
        }
        CHECK(std::vector<int>(label.begin(), label.end()) == expected);
        labels.insert(label[0]);
      }
    }
    CHECK(lengths == std::set<int>{1, 2, 3, 4, 5});
    CHECK(difficulties == std::set<int>{2, 3, 4});
    CHECK(labels.size() > 1);
  }
}

TEST_CASE("inputs of a sequence are scored and their steps averaged by their own difficulty") {
  const auto task = make("kind=logic,size=3,length=4");
  const auto batch = first(*task, Split::test, 40);
  Array<int> said = full<int>({40, 8}, -1);
  double inputs = 0, harder = 0;
  for (int b = 0; b < 40; ++b)
    for (int t = 0; t < batch.ints("length")(b); ++t) {
      const bool hard = row_of(batch.ints("difficulty"), b)[t] > 2;
      const int label = row_of(batch.ints("label"), b)[t];
      row_of(said, b)[2 * t] = hard ? 1 - label : label;
      row_of(said, b)[2 * t + 1] = hard ? 2500 : 500;
      ++inputs;
      harder += hard;
    }
  auto metrics = task->metrics();
  task->score(batch, {said, {}}, metrics);
  CHECK(metrics[0].value() == doctest::Approx(1 - harder / inputs));
  CHECK(metrics[2].value() == 1);
  CHECK((metrics[3].value() == 0 && metrics[3].denominator == harder));
  CHECK((metrics[5].value() == 0.5 && metrics[6].value() == 2.5));
}

TEST_CASE("puzzles do not depend on the batch, and are disjoint between splits") {
  for (const std::string kind : {"parity", "addition", "sort", "logic"}) {
    const auto task = make("size=40,least=30,examples=20,heldout=10,test=10,kind=" + kind);
    std::set<std::vector<double>> different;
    std::set<std::uint32_t> ids;
    for (const auto split : {Split::train, Split::heldout, Split::test}) {
      const auto batch = first(*task, split, static_cast<int>(task->size(split)));
      ids.insert(batch.id.begin(), batch.id.end());
      for (int b = 0; b < batch.examples(); ++b) {
        const auto alone = task->batch(split, {b});
        const auto one = row_of(alone.numbers("x"), 0), of_batch = row_of(batch.numbers("x"), b);
        CHECK(std::equal(one.begin(), one.end(), of_batch.begin()));
        different.emplace(one.begin(), one.end());
      }
    }
    CHECK(ids.size() == 40);
    CHECK(different.size() == 40);
  }
}

TEST_CASE("every label is scored") {
  const auto task = make("kind=sort,size=4,least=4");
  const auto batch = first(*task, Split::test, 2);
  Observation seen{batch.ints("label"), {}};
  auto metrics = task->metrics();
  task->score(batch, seen, metrics);
  CHECK(metrics[0].value() == 1);
  CHECK(metrics[1].value() == 1);
  seen.predictions.flat(5) = 3 - seen.predictions.flat(5);
  metrics = task->metrics();
  task->score(batch, seen, metrics);
  CHECK(metrics[0].value() == 7.0 / 8);
  CHECK(metrics[1].value() == 0.5);
}

TEST_CASE("harder puzzles are scored separately") {
  const auto task = make("kind=parity,size=5");
  const auto batch = first(*task, Split::test, 60);
  Observation seen{batch.ints("label"), {}};
  double harder = 0;
  for (int b = 0; b < 60; ++b)
    if (batch.ints("difficulty")(b) > 3) {
      ++harder;
      seen.predictions.flat(b) = 1 - seen.predictions.flat(b);
    }
  auto metrics = task->metrics();
  task->score(batch, seen, metrics);
  CHECK(metrics[2].name == "solved_easier");
  CHECK(metrics[2].value() == 1);
  CHECK(metrics[3].value() == 0);
  CHECK(metrics[3].denominator == harder);
  CHECK((harder > 0 && harder < 60));
  CHECK(metrics[1].value() == doctest::Approx(1 - harder / 60));
}

TEST_CASE("steps are averaged by difficulty if the network reports them, and absent otherwise") {
  const auto task = make("kind=sort,size=3");
  const auto batch = first(*task, Split::test, 60);
  Array<int> said = full<int>({60, 4}, 0);
  double easier = 0;
  for (int b = 0; b < 60; ++b) {
    const int n = batch.ints("difficulty")(b);  // hard: 3
    row_of(said, b)[3] = n > 2 ? 2500 : 500;
    easier += n <= 2;
  }
  auto metrics = task->metrics();
  task->score(batch, {said, {}}, metrics);
  CHECK(metrics[4].name == "steps");
  CHECK(metrics[5].value() == 0.5);
  CHECK(metrics[5].denominator == easier);
  CHECK(metrics[6].value() == 2.5);
  CHECK(metrics[4].value() == doctest::Approx((0.5 * easier + 2.5 * (60 - easier)) / 60));
  metrics = task->metrics();
  task->score(batch, {batch.ints("label"), {}}, metrics);
  CHECK(metrics[4].denominator == 0);
}

TEST_CASE("settings without valid puzzles are rejected") {
  const Folder folder;
  CHECK(refusal(folder, [] { make("least=5,size=4"); }) == "puzzle: least must be at most size, 4, got 5");
  CHECK(has(refusal(folder, [] { make("kind=crossword"); }), "puzzle"));
  CHECK(has(refusal(folder, [] { make("length=3"); }), "kind=parity has one input: drop length"));
}

}  // namespace hardgrad::testing::puzzle_test
