// Countdown: numbers and a target, for policies that write an expression of these numbers with this value. Several may be right;
// a reward of 1 or 0 checks one (core/support/text_metrics.hpp, also on how words are expressions).
#include <algorithm>

#include "core/support/text_metrics.hpp"
#include "experiments/tasks/draws.hpp"
#include "experiments/tasks/on_demand.hpp"

namespace hardgrad::tasks::countdown {
namespace {

struct Config {
  int numbers = 2, largest = 4, most = 20;
  SplitSizes sizes{.examples = 10000, .heldout = 500, .test = 500};

  void declare(Fields& field) {
    field(numbers, "numbers", 2, 8, "numbers of a prompt");
    field(largest, "largest", 1, 1000, "largest number, from 1");
    field(most, "most", 1, 100000, "largest target, from 0");
    sizes.declare(field, "prompts", "prompts held out for the test");
  }
};

/// Fields: "prompt" [B, n + 1] the numbers less 1, then the target plus the largest number; "wanted" [B, n + 1] the target, then
/// the numbers' words. Made on demand, each from an expression that solves it.
class Countdown final : public OnDemand {
 public:
  Countdown(const Config& config, Key key)
      : OnDemand(config.sizes), key_(key), numbers_(config.numbers), largest_(config.largest), most_(config.most) {
    if (most_ < largest_) throw UsageError("countdown: most must be at least largest, or a prompt may have no target");
  }
  Dimensions dimensions() const override {
    return {{"words", expression_operators + largest_},
            {"longest", 2 * numbers_ - 1},
            {"prompt_symbols", largest_ + most_ + 1},
            {"expressions", 1}};
  }
  Batch batch(Split split, const std::vector<int>& indices) const override {
    const std::size_t B = indices.size(), width = static_cast<std::size_t>(numbers_) + 1;
    Batch batch;
    Array<int> prompt = zeros<int>({B, width}), wanted = zeros<int>({B, width});
    for (std::size_t b = 0; b < B; ++b) {
      batch.id.push_back(id_of(split, indices[b]));
      const auto [words, target] = made(batch.id[b]);
      for (int i = 0; i < numbers_; ++i) {
        prompt(b, i) = words[i] - expression_operators;
        wanted(b, i + 1) = words[i];
      }
      prompt(b, numbers_) = largest_ + target;
      wanted(b, 0) = target;
    }
    batch.integers = {{"prompt", std::move(prompt)}, {"wanted", std::move(wanted)}};
    return batch;
  }
  std::string word(const std::string& field, int number) const override {
    if (field == "prompt") return number < largest_ ? std::to_string(number + 1) : "=" + std::to_string(number - largest_);
    if (field != "answer" || number < 0) return {};
    return number < expression_operators              ? std::string(1, "+-*"[number])
           : number < expression_operators + largest_ ? std::to_string(number - expression_operators + 1)
                                                      : ".";
  }

  std::vector<Metric> metrics() const override { return {{.name = "solved", .unit = "1", .share = true}}; }
  /// solved: share of expressions that have the target's value and all numbers.
  void score(const Batch& batch, const Observation& seen, std::vector<Metric>& metrics) const override {
    for (int b = 0; b < batch.examples(); ++b) {
      const auto said = row_of(seen.predictions, b);
      const auto end =
          std::find_if(said.begin(), said.end(), [&](int w) { return w < 0 || w >= expression_operators + largest_; });
      metrics[0].add(solves(said.first(end - said.begin()), row_of(batch.ints("wanted"), b)));
    }
  }

 private:
  struct CountdownGame {
    std::vector<int> words;  ///< of the numbers
    int target;
  };
  /// Numbers, and the value of the first random expression of them that is from 0 to the largest target.
  CountdownGame made(std::uint32_t id) const {
    Draws draws(key_ / "countdown", id);
    std::vector<int> words(numbers_);
    for (int& w : words) w = expression_operators + draws.below(largest_);
    for (auto order = words;;) {
      for (int i = numbers_ - 1; i > 0; --i) std::swap(order[i], order[draws.below(i + 1)]);
      std::vector<int> expression{order[0]};
      for (int i = 1; i < numbers_; ++i) expression.insert(expression.end(), {draws.below(expression_operators), order[i]});
      if (const auto value = *expression_value(expression); value >= 0 && value <= most_)
        return {words, static_cast<int>(value)};
    }
  }

  Key key_;
  int numbers_, largest_, most_;
};

const TaskEntry entry = {
    .name = "countdown",
    .summary = "numbers and a target: an expression of all numbers, with + - *, that has the target's value",
    .data = "generated",
    .default_model = "writer",
    .parameters = declared<Config>(),
};
HARDGRAD_TASK(Countdown, entry)

}  // namespace
}  // namespace hardgrad::tasks::countdown
