// Prompts with one right answer, for policies that write it. An answer can be checked: its reward is 1 or 0.
//
//   copy, reverse, sort   n symbols; the same symbols, in reverse order, in ascending order
//   sum                   n digits in base `symbols`; the digits of their sum, the largest place first, no leading zeros
//
// For a network that reads tokens and predicts labels, the sequence is the prompt, a mark (token `symbols`) and the answer; its
// labels are the answer and an end (label `symbols`), from the mark on.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "experiments/tasks/draws.hpp"
#include "experiments/tasks/token_labels.hpp"

namespace hardgrad::tasks::answers {
namespace {

enum class Kind { copy, reverse, sort, sum };
constexpr Named<Kind> kinds[] = {{"copy", Kind::copy}, {"reverse", Kind::reverse}, {"sort", Kind::sort}, {"sum", Kind::sum}};

struct Config {
  Kind kind = Kind::copy;
  int symbols = 4, least = 1, size = 3;
  SplitSizes sizes{.examples = 10000, .heldout = 500, .test = 500};

  void declare(Fields& field) {
    field(kind, "kind", kinds, "the right answer");
    field(symbols, "symbols", 2, 10000, "symbols of a prompt; the base of kind=sum");
    field(least, "least", 1, 1000, "fewest symbols of a prompt");
    field(size, "size", 1, 1000, "most symbols of a prompt");
    sizes.declare(field, "prompts", "prompts held out for the test");
  }
};

/// Fields: "prompt" [B, size] and "answer" [B, longest], -1 pads. Words of answers are the prompt's symbols. Also "token"
/// and "label" (token_labels.hpp). Made on demand.
class Answers final : public OnDemand {
 public:
  Answers(const Config& config, Key key)
      : OnDemand(config.sizes),
        key_(key),
        kind_(config.kind),
        symbols_(config.symbols),
        least_(config.least),
        size_(config.size) {
    if (least_ > size_) throw UsageError(fmt::format("answers: least must be at most size, {}, got {}", size_, least_));
    longest_ = kind_ == Kind::sum ? digits_of(size_ * (symbols_ - 1)).size() : size_;
  }
  Dimensions dimensions() const override {
    return {{"words", symbols_},
            {"longest", static_cast<int>(longest_)},
            {"prompt_symbols", symbols_},
            {"tokens", symbols_ + 1},
            {"positions", size_ + 1 + static_cast<int>(longest_)},
            {"labels", symbols_ + 1}};
  }
  Batch batch(Split split, const std::vector<int>& indices) const override {
    const std::size_t B = indices.size();
    Batch batch;
    Array<int> prompt = full<int>({B, static_cast<std::size_t>(size_)}, -1), answer = full<int>({B, longest_}, -1);
    std::vector<TokenSequence> sequences(B);
    for (std::size_t b = 0; b < B; ++b) {
      batch.id.push_back(id_of(split, indices[b]));
      const auto symbols = prompt_of(batch.id[b]), words = answer_to(symbols);
      std::copy(symbols.begin(), symbols.end(), row_of(prompt, b).begin());
      std::copy(words.begin(), words.end(), row_of(answer, b).begin());
      for (const int symbol : symbols) sequences[b].add(symbol);
      for (std::size_t i = 0; i <= words.size(); ++i)
        sequences[b].add(i == 0 ? symbols_ : words[i - 1], i < words.size() ? words[i] : symbols_);
    }
    batch.integers = {{"prompt", std::move(prompt)}, {"answer", std::move(answer)}};
    put_tokens(sequences, batch, static_cast<std::size_t>(size_) + 1 + longest_);
    return batch;
  }
  std::string word(const std::string& field, int number) const override {
    if ((field != "prompt" && field != "answer" && field != "token" && field != "label") || number < 0) return {};
    return number == symbols_ ? "." : std::to_string(number);
  }

  std::vector<Metric> metrics() const override {
    return {{.name = "exact_match", .unit = "1", .share = true},
            {.name = "length", .unit = "words", .higher_is_better = false}};
  }
  /// exact_match: share of answers that are right, with their end. length: words written.
  void score(const Batch& batch, const Observation& seen, std::vector<Metric>& metrics) const override {
    for (int b = 0; b < batch.examples(); ++b) {
      const auto wanted = row_of(batch.ints("answer"), b);
      const auto said = predicted_labels(seen, b);
      const auto written = std::find_if(said.begin(), said.end(), [&](int w) { return w >= symbols_; });
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
    if (kind_ == Kind::reverse) std::reverse(prompt.begin(), prompt.end());
    if (kind_ == Kind::sort) std::sort(prompt.begin(), prompt.end());
    return kind_ == Kind::sum ? digits_of(std::accumulate(prompt.begin(), prompt.end(), 0)) : prompt;
  }
  std::vector<int> digits_of(int number) const {
    std::vector<int> digits;
    do digits.push_back(number % symbols_);
    while (number /= symbols_);
    std::reverse(digits.begin(), digits.end());
    return digits;
  }

  Key key_;
  Kind kind_;
  int symbols_, least_, size_;
  std::size_t longest_;
};

const TaskEntry entry = {
    .name = "answers",
    .summary = "prompts with one right answer to write: copies, sorted lists, sums",
    .data = "generated",
    .default_model = "writer",
    .parameters = declared<Config>(),
};
HARDGRAD_TASK(Answers, entry)

}  // namespace
}  // namespace hardgrad::tasks::answers
