// Algorithms to learn from examples: sequences of random bits to copy, deduplicate, repeat, recall, sort, reverse or predict.
// (Graves, Wayne & Danihelka 2014, sec. 4; reverse and duplicated input: Zaremba & Sutskever 2015.)
//
// kind=ngrams (Graves et al., sec. 4.4: context=5, 200 vectors of one bit): each sequence has a table of its own, p of each
// context of `context` bits, drawn from Beta(1/2, 1/2). After the first `context` bits, the next bit is 1 with p of the last
// bits. The answer at each step is the next bit. The bits of a vector are independent sequences. No network predicts all bits.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <numeric>
#include <span>

#include "core/random/randomness.hpp"
#include "experiments/tasks/draws.hpp"
#include "experiments/tasks/graded.hpp"
#include "experiments/tasks/on_demand.hpp"

namespace hardgrad::tasks::algorithm {
namespace {

constexpr std::size_t item_vectors = 3;  // vectors per item of associative recall
constexpr std::size_t duplicates = 3;    // copies of each vector of duplicated input
constexpr double any_length = 0.2;       // share of a curriculum's sequences that have any length

/// One example, built step by step: first the inputs, then the wanted answers.
class Script {
 public:
  Script(std::size_t inputs, std::size_t outputs) : inputs_(inputs), outputs_(outputs) {}
  /// A step with the input `bits`, and `value` on channel `channel`.
  void show(std::span<const int> bits, std::size_t channel = 0, double value = 0) {
    input.insert(input.end(), bits.begin(), bits.end());
    input.resize(++steps * inputs_);
    answer.resize(steps * outputs_, -1);
    if (value != 0) input[(steps - 1) * inputs_ + channel] = value;
  }
  /// A step with a mark only.
  void mark(std::size_t channel, double value = 1) { show({}, channel, value); }
  /// A step with the input `bits` and the answer `next`.
  void predict(std::span<const int> bits, std::span<const int> next) {
    show(bits);
    std::copy(next.begin(), next.end(), answer.end() - static_cast<std::ptrdiff_t>(outputs_));
  }
  /// A step without input and with the answer `bits`, padded with 0.
  void want(std::span<const int> bits) {
    show({});
    std::fill(answer.end() - static_cast<std::ptrdiff_t>(outputs_), answer.end(), 0);
    std::copy(bits.begin(), bits.end(), answer.end() - static_cast<std::ptrdiff_t>(outputs_));
  }
  void want_end() {
    want({});
    answer.back() = 1;
  }

  std::vector<double> input;  // [steps, inputs]
  std::vector<int> answer;    // [steps, outputs]
  std::size_t steps = 0;

 private:
  std::size_t inputs_, outputs_;
};

/// Fields: "input" [B, T, I] the bits, then one or two channels of marks; "answer" [B, T, O], -1 at steps without an answer;
/// "length" [B] steps; "longer" [B] 1 if the sequence is longer than those of training. Examples are made on demand from their
/// ids. With a curriculum, training begins with sequences of min_length.
class Algorithm final : public OnDemand, public Graded {
 public:
  Algorithm(const Settings& settings, Key key)
      : OnDemand(settings),
        key_(key),
        kind_(settings.text("kind")),
        bits_(settings.integer("bits")),
        least_(settings.integer("min_length")),
        most_(settings.integer("max_length")),
        longer_(settings.integer("longer")),
        repeats_(settings.integer("repeats")),
        context_(settings.integer("context")),
        curriculum_(static_cast<std::uint64_t>(settings.integer("curriculum"))) {
    if (least_ > most_)
      throw UsageError(fmt::format("algorithm: min_length must be at most max_length, {}, got {}", most_, least_));
    if (longer_ != 0 && longer_ <= most_)
      throw UsageError(fmt::format("algorithm: longer must be above max_length, {}, or 0 for none, got {}", most_, longer_));
    if (kind_ == "ngrams" && least_ <= context_)
      throw UsageError(fmt::format("algorithm: ngrams of context={} need min_length of at least {}, got {}", context_,
                                   context_ + 1, least_));
    if (kind_ == "associative_recall" && least_ < 2)
      throw UsageError(fmt::format("algorithm: associative_recall needs min_length of at least 2 items, got {}", least_));
  }

  Dimensions dimensions() const override {
    const auto longest = std::max(most_, longer_);
    const auto vectors = kind_ == "associative_recall" ? item_vectors * longest : longest;
    Dimensions all{{"input_width", static_cast<int>(inputs())},
                   {"answer_width", static_cast<int>(outputs())},
                   {"steps", static_cast<int>(steps(longest))}};
    if (kind_ == "ngrams") {  // no vector has to be kept, and the whole input is not there before the first answer
      all["vectors"] = 1;
    } else {
      all["shown_steps"] = static_cast<int>(steps(longest) - wanted(longest));
      all["vectors"] = static_cast<int>(vectors);
    }
    return all;
  }

  Batch batch(Split split, const std::vector<int>& indices) const override { return drawn(split, indices, most_, key_); }
  /// The maximum length grows linearly from min_length to max_length over the first `curriculum` sequences. A fifth of the
  /// sequences have any length from the beginning (the mixed curriculum of Zaremba & Sutskever 2014, Learning to execute).
  Batch graded_batch(const std::vector<int>& indices, Key epoch, std::uint64_t seen) const override {
    if (seen >= curriculum_) return batch(Split::train, indices);
    return drawn(Split::train, indices, least_ + seen * (most_ - least_) / curriculum_, epoch);
  }

  std::vector<Metric> metrics() const override {
    std::vector<Metric> all{{.name = "bit_error", .unit = "1", .higher_is_better = false},
                            {.name = "solved", .unit = "1", .share = true}};
    if (longer_ > 0) {
      all.push_back({.name = "longer_bit_error", .unit = "1", .higher_is_better = false});
      all.push_back({.name = "longer_solved", .unit = "1"});
    }
    return all;
  }
  /// Compares the predicted bits, in order, with the wanted ones. Solved: every bit of the sequence is right. Longer sequences
  /// have separate metrics.
  void score(const Batch& batch, const Observation& seen, std::vector<Metric>& metrics) const override {
    const auto &answer = batch.ints("answer"), &longer = batch.ints("longer");
    for (int b = 0; b < batch.examples(); ++b) {
      const auto wanted = answer.row(b);
      const auto labels = seen.predictions.row(b);
      std::vector<int> said;  // the predicted bits in order, at whatever step
      std::copy_if(labels.begin(), labels.end(), std::back_inserter(said), [](int bit) { return bit >= 0; });
      double wrong = 0;
      std::size_t count = 0;
      for (int bit : wanted) {
        if (bit < 0) continue;
        wrong += count >= said.size() || said[count] != bit;
        ++count;
      }
      auto* const of = &metrics[longer.data[b] ? 2 : 0];
      of[0].add(wrong, static_cast<double>(count));
      of[1].add(wrong == 0);
    }
  }

 private:
  /// Training and held-out sequences have at most `longest` vectors, except for a curriculum's share of any length, which the
  /// epoch's key draws.
  Batch drawn(Split split, const std::vector<int>& indices, std::size_t longest, Key epoch) const {
    Batch batch;
    std::vector<Script> scripts;
    std::size_t T = 0;
    const auto B = indices.size();
    Array<int> length({B}), longer({B});
    for (std::size_t b = 0; b < B; ++b) {
      const auto i = static_cast<std::size_t>(indices[b]);
      batch.id.push_back(id_of(split, indices[b]));
      scripts.push_back(written(split, i, batch.id[b], longest, epoch));
      T = std::max(T, scripts[b].steps);
      length.data[b] = static_cast<int>(scripts[b].steps);
      longer.data[b] = is_longer(split, i);
    }
    Array<double> input({B, T, inputs()});
    Array<int> answer({B, T, outputs()}, -1);
    for (std::size_t b = 0; b < B; ++b) {
      std::copy(scripts[b].input.begin(), scripts[b].input.end(), input.row(b).begin());
      std::copy(scripts[b].answer.begin(), scripts[b].answer.end(), answer.row(b).begin());
    }
    batch.reals = {{"input", std::move(input)}};
    batch.integers = {{"answer", std::move(answer)}, {"length", std::move(length)}, {"longer", std::move(longer)}};
    return batch;
  }

  std::size_t inputs() const {
    if (kind_ == "ngrams") return bits_;
    return bits_ + (kind_ == "repeat_copy" || kind_ == "associative_recall" || kind_ == "priority_sort" ? 2 : 1);
  }
  std::size_t outputs() const { return bits_ + (kind_ == "repeat_copy"); }
  static std::size_t kept(std::size_t sorted) { return (4 * sorted + 4) / 5; }
  /// Steps of the longest example with n vectors (items).
  std::size_t steps(std::size_t n) const {
    if (kind_ == "ngrams") return n - 1;  // the last vector is only predicted
    if (kind_ == "associative_recall") return n * (1 + item_vectors) + 2 + item_vectors + wanted(n);
    return (kind_ == "duplicated_input" ? duplicates * n : n) + 1 + wanted(n);
  }
  /// Steps with an answer among them.
  std::size_t wanted(std::size_t n) const {
    if (kind_ == "repeat_copy") return n * repeats_ + 1;
    if (kind_ == "associative_recall") return item_vectors;
    return kind_ == "priority_sort" ? kept(n) : n;
  }

  bool is_longer(Split split, std::size_t i) const { return split == Split::test && longer_ > 0 && i % 2 == 1; }

  /// Training and held-out sequences have lengths from min_length to max_length; test sequences max_length or `longer`.
  Script written(Split split, std::size_t i, std::uint32_t id, std::size_t longest, Key epoch) const {
    Draws draw(key_ / "sequence", id);
    if (longest < most_ && KeyedRandomness(epoch / "curriculum").uniform({.example = id}) < any_length) longest = most_;
    const auto n = split != Split::test ? least_ + draw.below(longest - least_ + 1) : is_longer(split, i) ? longer_ : most_;
    const auto drawn = [&](std::size_t count) {
      std::vector<std::vector<int>> all(count, std::vector<int>(bits_));
      for (auto& vector : all)
        for (int& bit : vector) bit = static_cast<int>(draw.below(2));
      return all;
    };
    Script script(inputs(), outputs());
    if (kind_ == "associative_recall") {  // each item after a mark; then one item between other marks; answer: the next item
      const auto all = drawn(n * item_vectors);
      const auto item = [&](std::size_t k) { return std::span(all).subspan(k * item_vectors, item_vectors); };
      for (std::size_t k = 0; k < n; ++k) {
        script.mark(bits_);
        for (const auto& vector : item(k)) script.show(vector);
      }
      const auto asked = draw.below(n - 1);
      script.mark(bits_ + 1);
      for (const auto& vector : item(asked)) script.show(vector);
      script.mark(bits_ + 1);
      for (const auto& vector : item(asked + 1)) script.want(vector);
    } else if (kind_ == "priority_sort") {  // a priority in (-1, 1) with each vector; answer: the highest, in order
      const auto all = drawn(n);
      std::vector<double> priority(n);
      for (std::size_t k = 0; k < n; ++k) {
        priority[k] = 2 * draw.numbered(static_cast<std::uint32_t>(k)) - 1;
        script.show(all[k], bits_, priority[k]);
      }
      std::vector<std::size_t> order(n);
      std::iota(order.begin(), order.end(), 0);
      std::sort(order.begin(), order.end(), [&](auto a, auto b) { return priority[a] > priority[b]; });
      script.mark(bits_ + 1);
      for (std::size_t k = 0; k < kept(n); ++k) script.want(all[order[k]]);
    } else if (kind_ == "ngrams") {
      auto all = drawn(context_);
      while (all.size() < n) {
        auto& vector = all.emplace_back(bits_);
        for (std::size_t d = 0; d < bits_; ++d) {
          auto of = static_cast<std::uint32_t>(d);  // of the table
          for (std::size_t k = 2; k < context_ + 2; ++k) of = 2 * of + static_cast<std::uint32_t>(all[all.size() - k][d]);
          const double angle = std::numbers::pi / 2 * draw.numbered(of);  // its squared sine has the law Beta(1/2, 1/2)
          vector[d] = draw.chance(std::sin(angle) * std::sin(angle));
        }
      }
      for (std::size_t t = 0; t + 1 < n; ++t)
        if (t + 1 < context_)
          script.show(all[t]);
        else
          script.predict(all[t], all[t + 1]);
    } else {
      auto all = drawn(n);
      for (const auto& vector : all)
        for (std::size_t k = 0; k < (kind_ == "duplicated_input" ? duplicates : 1); ++k) script.show(vector);
      if (kind_ == "reverse") std::reverse(all.begin(), all.end());
      const auto times = kind_ != "repeat_copy" ? 1 : split == Split::test ? repeats_ : 1 + draw.below(repeats_);
      if (kind_ == "repeat_copy") {  // the number of repetitions, normalised to mean 0 and variance 1
        const auto R = static_cast<double>(repeats_);
        script.show({}, bits_ + 1, R > 1 ? (static_cast<double>(times) - (R + 1) / 2) / std::sqrt((R * R - 1) / 12) : 0);
        script.input[script.input.size() - 2] = 1;
      } else {
        script.mark(bits_);
      }
      for (std::size_t r = 0; r < times; ++r)
        for (const auto& vector : all) script.want(vector);
      if (kind_ == "repeat_copy") script.want_end();
    }
    return script;
  }

  Key key_;
  std::string kind_;
  std::size_t bits_, least_, most_, longer_, repeats_, context_;
  std::uint64_t curriculum_;
};

using P = ParameterInfo;

const TaskEntry entry = {
    .name = "algorithm",
    .summary = "sequences of random bits to copy, deduplicate, repeat, recall, sort, reverse or predict",
    .data = "generated",
    .default_model = "turing_machine",
    .parameters = {P::choice(
                       "kind", "copy",
                       {"copy", "duplicated_input", "repeat_copy", "associative_recall", "priority_sort", "reverse", "ngrams"},
                       "the algorithm to learn"),
                   P::integer("bits", 8, 1, 64, "bits per vector"),
                   P::integer("min_length", 1, 1, 1000, "fewest vectors of a sequence (items of associative_recall)"),
                   P::integer("max_length", 20, 1, 1000, "most vectors of a training sequence"),
                   P::integer("longer", 0, 0, 1000, "vectors of every second test sequence; 0: all have max_length"),
                   P::integer("repeats", 10, 1, 100, "most repetitions of repeat_copy, and those of all test sequences"),
                   P::integer("context", 5, 1, 16, "kind=ngrams: bits on which the next one depends"),
                   P::integer("curriculum", 0, 0, 1e9,
                              "training sequences over which the maximum length grows to max_length; 0: no curriculum"),
                   P::integer("examples", 100000, 1, 1e8, "training sequences, made on demand"),
                   P::integer("heldout", 500, 1, 1e6, "sequences held out for validation"),
                   P::integer("test", 500, 1, 1e6, "test sequences")},
};
HARDGRAD_TASK(Algorithm, entry)

}  // namespace
}  // namespace hardgrad::tasks::algorithm
