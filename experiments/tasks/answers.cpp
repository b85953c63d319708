// Prompts with one right answer, for policies that write it. An answer can be checked: its reward is 1 or 0.
//
//   copy, reverse, sort   n symbols; the same symbols, in reverse order, in ascending order
//   sum                   n digits in base `symbols`; the digits of their sum, the largest place first, no leading zeros
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "experiments/tasks/draws.hpp"
#include "experiments/tasks/on_demand.hpp"

namespace hardgrad::tasks::answers {
namespace {

/// Fields: "prompt" [B, size] and "answer" [B, longest], -1 pads. Words of answers are the prompt's symbols. Made on demand.
class Answers final : public OnDemand {
 public:
  Answers(const Settings& settings, Key key)
      : OnDemand(settings),
        key_(key),
        kind_(settings.text("kind")),
        symbols_(settings.integer("symbols")),
        least_(settings.integer("least")),
        size_(settings.integer("size")) {
    if (least_ > size_) throw UsageError(fmt::format("answers: least must be at most size, {}, got {}", size_, least_));
    longest_ = kind_ == "sum" ? digits_of(size_ * (symbols_ - 1)).size() : size_;
  }
  Dimensions dimensions() const override {
    return {{"words", symbols_}, {"longest", static_cast<int>(longest_)}, {"prompt_symbols", symbols_}};
  }
  Batch batch(Split split, const std::vector<int>& indices) const override {
    const std::size_t B = indices.size();
    Batch batch;
    Array<int> prompt({B, static_cast<std::size_t>(size_)}, -1), answer({B, longest_}, -1);
    for (std::size_t b = 0; b < B; ++b) {
      batch.id.push_back(id_of(split, indices[b]));
      const auto symbols = prompt_of(batch.id[b]), words = answer_to(symbols);
      std::copy(symbols.begin(), symbols.end(), prompt.row(b).begin());
      std::copy(words.begin(), words.end(), answer.row(b).begin());
    }
    batch.integers = {{"prompt", std::move(prompt)}, {"answer", std::move(answer)}};
    return batch;
  }
  std::string word(const std::string& field, int number) const override {
    if ((field != "prompt" && field != "answer") || number < 0) return {};
    return number == symbols_ ? "." : std::to_string(number);
  }

  std::vector<Metric> metrics() const override {
    return {{.name = "exact_match", .unit = "1", .share = true},
            {.name = "length", .unit = "words", .higher_is_better = false}};
  }
  /// exact_match: share of answers that are right, with their end. length: words written.
  void score(const Batch& batch, const Observation& seen, std::vector<Metric>& metrics) const override {
    for (int b = 0; b < batch.examples(); ++b) {
      const auto wanted = batch.ints("answer").row(b);
      const auto said = seen.predictions.row(b);
      const auto written = std::find_if(said.begin(), said.end(), [&](int w) { return w < 0 || w >= symbols_; });
      const auto right = std::find(wanted.begin(), wanted.end(), -1);
      metrics[0].add(std::equal(said.begin(), written, wanted.begin(), right));
      metrics[1].add(static_cast<double>(written - said.begin()));
    }
  }

 private:
  std::vector<int> prompt_of(std::uint32_t id) const {
    Draws numbers(key_ / "answers", id);
    std::vector<int> prompt(least_ + numbers.below(size_ - least_ + 1));
    for (int& symbol : prompt) symbol = numbers.below(symbols_);
    return prompt;
  }
  std::vector<int> answer_to(std::vector<int> prompt) const {
    if (kind_ == "reverse") std::reverse(prompt.begin(), prompt.end());
    if (kind_ == "sort") std::sort(prompt.begin(), prompt.end());
    return kind_ == "sum" ? digits_of(std::accumulate(prompt.begin(), prompt.end(), 0)) : prompt;
  }
  std::vector<int> digits_of(int number) const {
    std::vector<int> digits;
    do digits.push_back(number % symbols_);
    while (number /= symbols_);
    std::reverse(digits.begin(), digits.end());
    return digits;
  }

  Key key_;
  std::string kind_;
  int symbols_, least_, size_;
  std::size_t longest_;
};

using P = ParameterInfo;

const TaskEntry entry = {
    .name = "answers",
    .summary = "prompts with one right answer to write: copies, sorted lists, sums",
    .data = "generated",
    .default_model = "writer",
    .parameters = {P::choice("kind", "copy", {"copy", "reverse", "sort", "sum"}, "the right answer"),
                   P::integer("symbols", 4, 2, 10000, "symbols of a prompt; the base of kind=sum"),
                   P::integer("least", 1, 1, 1000, "fewest symbols of a prompt"),
                   P::integer("size", 3, 1, 1000, "most symbols of a prompt"),
                   P::integer("examples", 10000, 1, 1e8, "training prompts, made on demand"),
                   P::integer("heldout", 500, 1, 1e6, "prompts held out for validation"),
                   P::integer("test", 500, 1, 1e6, "prompts held out for the test")},
};
HARDGRAD_TASK(Answers, entry)

}  // namespace
}  // namespace hardgrad::tasks::answers
