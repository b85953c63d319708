// Puzzles of varying difficulty, for networks that choose how long to think: parity, addition, sorting (Graves 2016, sec. 3;
// parity as in Banino, Balaguer & Blundell 2021, sec. 3.1).
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "experiments/tasks/draws.hpp"
#include "experiments/tasks/on_demand.hpp"

namespace hardgrad::tasks::puzzle {
namespace {

constexpr int digits = 10;  // decimal

/// Fields: "x" [B, I]; "label" [B, P], -1: no label; "difficulty" [B]. Examples are made on demand.
///   parity    x: 1 or -1 in `difficulty` of I = size places, 0 in the others; label: 1 if the number of ones is odd
///   addition  x: one-hot digits of two numbers of `difficulty` digits each, the last digit first, I = 2 size 11 (the eleventh:
///             no digit); labels: the P = size + 1 digits of the sum, the last first, -1 beyond difficulty + 1
///   sort      x: `difficulty` numbers in (-1, 1), then `size` flags that mark them, I = 2 size; label k: the index of the
///             k-th smallest number, P = size
class Puzzle final : public OnDemand {
 public:
  Puzzle(const Settings& settings, Key key)
      : OnDemand(settings),
        key_(key),
        kind_(settings.text("kind")),
        least_(settings.integer("least")),
        size_(settings.integer("size")) {
    if (least_ > size_) throw UsageError(fmt::format("puzzle: least must be at most size, {}, got {}", size_, least_));
  }

  Dimensions dimensions() const override {
    const int n = static_cast<int>(size_);
    const bool parity = kind_ == "parity", addition = kind_ == "addition";
    return {{"puzzle_width", parity     ? n
                             : addition ? 2 * n * (digits + 1)
                                        : 2 * n},
            {"positions", parity     ? 1
                          : addition ? n + 1
                                     : n},
            {"labels", parity     ? 2
                       : addition ? digits
                                  : n}};
  }

  Batch batch(Split split, const std::vector<int>& indices) const override {
    auto needs = dimensions();
    const auto B = indices.size();
    const auto I = static_cast<std::size_t>(needs["puzzle_width"]), P = static_cast<std::size_t>(needs["positions"]);
    Batch batch;
    Array<double> x({B, I});
    Array<int> label({B, P}, -1), difficulty({B});
    for (std::size_t b = 0; b < B; ++b) {
      batch.id.push_back(id_of(split, indices[b]));
      difficulty.data[b] = set(batch.id[b], x.row(b), label.row(b));
    }
    batch.reals = {{"x", std::move(x)}};
    batch.integers = {{"label", std::move(label)}, {"difficulty", std::move(difficulty)}};
    return batch;
  }

  std::vector<Metric> metrics() const override {
    return {{.name = "accuracy", .unit = "1"},
            {.name = "solved", .unit = "1"},
            {.name = "solved_easier", .unit = "1"},
            {.name = "solved_harder", .unit = "1"},
            {.name = "steps", .unit = "step", .higher_is_better = false},
            {.name = "steps_easier", .unit = "step", .higher_is_better = false},
            {.name = "steps_harder", .unit = "step", .higher_is_better = false}};
  }
  /// accuracy: share of right labels. solved: share of puzzles with every label right; harder ones are above the middle
  /// difficulty. steps: the network's steps, if it predicts them after the labels, in thousandths.
  void score(const Batch& batch, const Observation& seen, std::vector<Metric>& metrics) const override {
    const auto &label = batch.ints("label"), &difficulty = batch.ints("difficulty");
    for (int b = 0; b < batch.examples(); ++b) {
      const auto wanted = label.row(b);
      const auto said = seen.predictions.row(b);
      double right = 0, count = 0;
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (wanted[i] < 0) continue;
        ++count;
        right += i < said.size() && said[i] == wanted[i];
      }
      metrics[0].add(right, count);
      const bool harder = 2 * static_cast<std::size_t>(difficulty.data[b]) > least_ + size_;
      for (auto* metric : {&metrics[1], &metrics[harder ? 3 : 2]}) metric->add(right == count);
      if (said.size() <= wanted.size() || said[wanted.size()] < 0) continue;
      for (auto* metric : {&metrics[4], &metrics[harder ? 6 : 5]}) metric->add(said[wanted.size()] / 1000.0);
    }
  }

 private:
  int set(std::uint32_t id, std::span<double> x, std::span<int> label) const {
    Draws numbers(key_ / "puzzle", id);
    const std::size_t n = least_ + numbers.below(size_ - least_ + 1);
    if (kind_ == "parity") {
      std::vector<std::size_t> place(size_);
      std::iota(place.begin(), place.end(), 0);
      std::size_t ones = 0;
      for (std::size_t k = 0; k < n; ++k) {  // the first n of a shuffle
        std::swap(place[k], place[k + numbers.below(size_ - k)]);
        const bool one = numbers.below(2) == 1;
        x[place[k]] = one ? 1 : -1;
        ones += one;
      }
      label[0] = static_cast<int>(ones % 2);
    } else if (kind_ == "addition") {
      std::size_t carry = 0;
      for (std::size_t k = 0; k < size_; ++k) {
        std::size_t sum = carry;
        for (std::size_t number = 0; number < 2; ++number) {
          const std::size_t digit = k < n ? numbers.below(digits) : digits;
          x[(number * size_ + k) * (digits + 1) + digit] = 1;
          sum += k < n ? digit : 0;
        }
        if (k < n) label[k] = static_cast<int>(sum % digits);
        carry = k < n ? sum / digits : carry;
      }
      label[n] = static_cast<int>(carry);
    } else {
      std::vector<std::size_t> order(n);
      std::iota(order.begin(), order.end(), 0);
      for (std::size_t k = 0; k < n; ++k) {
        x[k] = 2 * numbers.numbered(static_cast<std::uint32_t>(k)) - 1;
        x[size_ + k] = 1;
      }
      std::sort(order.begin(), order.end(), [&](auto a, auto b) { return x[a] < x[b]; });
      std::copy(order.begin(), order.end(), label.begin());
    }
    return static_cast<int>(n);
  }

  Key key_;
  std::string kind_;
  std::size_t least_, size_;
};

using P = ParameterInfo;

const TaskEntry entry = {
    .name = "puzzle",
    .summary = "parity, addition or sorting, some examples harder than others",
    .data = "generated",
    .default_model = "ponderer",
    .parameters = {P::choice("kind", "parity", {"parity", "addition", "sort"}, "kind of puzzle"),
                   P::integer("least", 1, 1, 1000, "least difficulty: nonzero elements, digits per number, or numbers to sort"),
                   P::integer("size", 8, 1, 1000, "largest difficulty: elements, digits per number, or numbers to sort"),
                   P::integer("examples", 100000, 1, 1e8, "training puzzles, made on demand"),
                   P::integer("heldout", 1000, 1, 1e6, "puzzles held out for validation"),
                   P::integer("test", 1000, 1, 1e6, "test puzzles")},
};
HARDGRAD_TASK(Puzzle, entry)

}  // namespace
}  // namespace hardgrad::tasks::puzzle
