// Puzzles of varying difficulty, for networks that choose how long to think: parity, logic, addition, sorting (Graves 2016,
// sec. 3; parity as in Banino, Balaguer & Blundell 2021, sec. 3.1).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "experiments/tasks/draws.hpp"
#include "experiments/tasks/on_demand.hpp"

namespace hardgrad::tasks::puzzle {
namespace {

constexpr int digits = 10;  // decimal

/// The gates of two bits that depend on both (Graves 2016, Table 1), as the outputs for (1,1), (1,0), (0,1), (0,0).
constexpr std::array<std::array<int, 4>, 10> gates{{{0, 0, 0, 1},    // NOR
                                                    {0, 0, 1, 0},    // not P, and Q
                                                    {0, 1, 0, 0},    // P, and not Q
                                                    {0, 1, 1, 0},    // XOR
                                                    {0, 1, 1, 1},    // NAND
                                                    {1, 0, 0, 0},    // AND
                                                    {1, 0, 0, 1},    // XNOR
                                                    {1, 0, 1, 1},    // if P then Q
                                                    {1, 1, 0, 1},    // if Q then P
                                                    {1, 1, 1, 0}}};  // OR

enum class Kind { parity, addition, sort, logic, sums };
constexpr Named<Kind> kinds[] = {
    {"parity", Kind::parity}, {"addition", Kind::addition}, {"sort", Kind::sort}, {"logic", Kind::logic}, {"sums", Kind::sums}};

struct Config {
  Kind kind = Kind::parity;
  int least = 1, size = 8, length = 1;
  SplitSizes sizes{.examples = 100000, .heldout = 1000, .test = 1000};

  void declare(Fields& field) {
    field(kind, "kind", kinds, "kind of puzzle");
    field(least, "least", 1, 1000, "least difficulty: nonzero elements, digits per number, numbers to sort, or gates");
    field(size, "size", 1, 1000, "largest difficulty: elements, digits per number, numbers to sort, or gates");
    field(length, "length", 1, 100, "kind=logic and sums: most inputs of a sequence");
    sizes.declare(field, "puzzles");
  }
};

/// Fields: "x" [B, I]; "label" [B, P], -1: no label; "difficulty" [B]. Examples are made on demand.
///   parity    x: 1 or -1 in `difficulty` of I = size places, 0 in the others; label: 1 if the number of ones is odd
///   addition  x: one-hot digits of two numbers of `difficulty` digits each, the last digit first, I = 2 size 11 (the eleventh:
///             no digit); labels: the P = size + 1 digits of the sum, the last first, -1 beyond difficulty + 1
///   sort      x: `difficulty` numbers in (-1, 1), then `size` flags that mark them, I = 2 size; label k: the index of the
///             k-th smallest number, P = size
/// Sequences of 1 to `length` inputs have "x" [B, T, I]; "label" [B, T, P] and "difficulty" [B, T], -1 beyond "length" [B]. Each
/// input has a difficulty of its own.
///   logic     x: bits b_0 and b_1, then one-hot chunks for `size` gates, I = 2 + 10 size; gate k = 1..difficulty makes
///             b_{k+1} = g_k(b_k, b_{k-1}); label: the last bit. From the second input on b_1 is the last label, not shown.
///   sums      x: one-hot digits of a number of `difficulty` digits, the last digit first, I = 10 size; labels: the digits of
///             the sum so far, the last first, 10 beyond its first digit; none for the first input
class Puzzle final : public OnDemand {
 public:
  Puzzle(const Config& config, Key key)
      : OnDemand(config.sizes),
        key_(key),
        kind_(config.kind),
        least_(config.least),
        size_(config.size),
        length_(config.length) {
    if (least_ > size_) throw UsageError(fmt::format("puzzle: least must be at most size, {}, got {}", size_, least_));
    if (!sequence() && length_ > 1)
      throw UsageError(
          fmt::format("puzzle: kind={} has one input: drop length, or take kind=logic or kind=sums", name_of(kind_, kinds)));
  }

  Dimensions dimensions() const override {
    const int n = static_cast<int>(size_), T = static_cast<int>(length_);
    if (kind_ == Kind::parity) return {{"puzzle_width", n}, {"positions", 1}, {"labels", 2}};
    if (kind_ == Kind::addition) return {{"puzzle_width", 2 * n * (digits + 1)}, {"positions", n + 1}, {"labels", digits}};
    if (kind_ == Kind::sort) return {{"puzzle_width", 2 * n}, {"positions", n}, {"labels", n}};
    if (kind_ == Kind::logic)
      return {{"puzzle_width", 2 + static_cast<int>(gates.size()) * n}, {"positions", 1}, {"labels", 2}, {"puzzle_steps", T}};
    const int carried = static_cast<int>(std::ceil(std::log10(T)));  // T numbers of n digits are below T 10^n
    return {{"puzzle_width", digits * n}, {"positions", n + carried}, {"labels", digits + 1}, {"puzzle_steps", T}};
  }

  Batch batch(Split split, const std::vector<int>& indices) const override {
    auto needs = dimensions();
    const auto B = indices.size(), T = length_;
    const auto I = static_cast<std::size_t>(needs["puzzle_width"]), P = static_cast<std::size_t>(needs["positions"]);
    Batch batch;
    using Shape = std::vector<std::size_t>;
    Array<double> x = zeros<double>(sequence() ? Shape{B, T, I} : Shape{B, I});
    Array<int> label = full<int>(sequence() ? Shape{B, T, P} : Shape{B, P}, -1),
               difficulty = full<int>(sequence() ? Shape{B, T} : Shape{B}, -1);
    Array<int> length = full<int>({B}, 1);
    for (std::size_t b = 0; b < B; ++b) {
      batch.id.push_back(id_of(split, indices[b]));
      if (sequence())
        length(b) = set_sequence(batch.id[b], row_of(x, b), row_of(label, b), row_of(difficulty, b));
      else
        difficulty(b) = set(batch.id[b], row_of(x, b), row_of(label, b));
    }
    batch.reals = {{"x", std::move(x)}};
    batch.integers = {{"label", std::move(label)}, {"difficulty", std::move(difficulty)}};
    if (sequence()) batch.integers["length"] = std::move(length);
    return batch;
  }

  std::vector<Metric> metrics() const override {
    return {{.name = "accuracy", .unit = "1", .share = true},
            {.name = "solved", .unit = "1", .share = true},
            {.name = "solved_easier", .unit = "1"},
            {.name = "solved_harder", .unit = "1"},
            {.name = "steps", .unit = "step", .higher_is_better = false},
            {.name = "steps_easier", .unit = "step", .higher_is_better = false},
            {.name = "steps_harder", .unit = "step", .higher_is_better = false}};
  }
  /// accuracy: share of right labels. solved: share of puzzles (inputs of a sequence) with every label right; harder ones are
  /// above the middle difficulty. steps: the network's steps for an input, if it predicts them after its labels, in
  /// thousandths.
  void score(const Batch& batch, const Observation& seen, std::vector<Metric>& metrics) const override {
    const auto &label = batch.ints("label"), &difficulty = batch.ints("difficulty");
    const std::size_t P = label.size() / difficulty.size();
    for (int b = 0; b < batch.examples(); ++b) {
      const auto said = row_of(seen.predictions, b);
      for (std::size_t t = 0; t < length_ && row_of(difficulty, b)[t] >= 0; ++t) {
        const auto wanted = row_of(label, b).subspan(t * P, P);
        const std::size_t at = t * (P + 1);  // of its predictions
        double right = 0, count = 0;
        for (std::size_t i = 0; i < P; ++i) {
          if (wanted[i] < 0) continue;
          ++count;
          right += at + i < said.size() && said[at + i] == wanted[i];
        }
        const bool harder = 2 * static_cast<std::size_t>(row_of(difficulty, b)[t]) > least_ + size_;
        if (count > 0) {
          metrics[0].add(right, count);
          for (auto* metric : {&metrics[1], &metrics[harder ? 3 : 2]}) metric->add(right == count);
        }
        if (said.size() <= at + P || said[at + P] < 0) continue;
        for (auto* metric : {&metrics[4], &metrics[harder ? 6 : 5]}) metric->add(said[at + P] / 1000.0);
      }
    }
  }

 private:
  int set(std::uint32_t id, std::span<double> x, std::span<int> label) const {
    Draws numbers(key_ / "puzzle", id);
    const std::size_t n = least_ + numbers.below(size_ - least_ + 1);
    if (kind_ == Kind::parity) {
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
    } else if (kind_ == Kind::addition) {
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

  bool sequence() const { return kind_ == Kind::logic || kind_ == Kind::sums; }
  /// The number of inputs.
  int set_sequence(std::uint32_t id, std::span<double> x, std::span<int> label, std::span<int> difficulty) const {
    Draws numbers(key_ / "puzzle", id);
    const std::size_t T = 1 + numbers.below(length_), I = x.size() / length_, P = label.size() / length_;
    int last = 0;             // logic: the last label
    std::vector<int> sum(P);  // sums: its digits, the last first
    for (std::size_t t = 0; t < T; ++t) {
      const auto input = x.subspan(t * I, I);
      const auto wanted = label.subspan(t * P, P);
      const std::size_t n = least_ + numbers.below(size_ - least_ + 1);
      difficulty[t] = static_cast<int>(n);
      if (kind_ == Kind::logic) {
        int before = static_cast<int>(numbers.below(2)), now = t == 0 ? static_cast<int>(numbers.below(2)) : last;
        input[0] = before;
        if (t == 0) input[1] = now;
        for (std::size_t k = 0; k < n; ++k) {
          const auto gate = numbers.below(gates.size());
          input[2 + k * gates.size() + gate] = 1;
          before = std::exchange(now, gates[gate][2 * (1 - now) + (1 - before)]);
        }
        wanted[0] = last = now;
      } else {
        int carry = 0;
        for (std::size_t k = 0; k < P; ++k) {
          const auto digit = k < n ? numbers.below(digits) : 0;
          if (k < n) input[k * digits + digit] = 1;
          carry += sum[k] + static_cast<int>(digit);
          sum[k] = std::exchange(carry, carry / digits) % digits;
        }
        std::size_t most = P;  // digits of the sum
        while (most > 1 && sum[most - 1] == 0) --most;
        for (std::size_t k = 0; t > 0 && k < P; ++k) wanted[k] = k < most ? sum[k] : digits;
      }
    }
    return static_cast<int>(T);
  }

  Key key_;
  Kind kind_;
  std::size_t least_, size_, length_;
};

const TaskEntry entry = {
    .name = "puzzle",
    .summary = "parity, addition, sorting, or sequences of logic gates or sums, some examples harder than others",
    .data = "generated",
    .default_model = "ponderer",
    .parameters = declared<Config>(),
};
HARDGRAD_TASK(Puzzle, entry)

}  // namespace
}  // namespace hardgrad::tasks::puzzle
