// Algorithms to learn from examples: sequences of random bits to copy, deduplicate, repeat, recall, sort, reverse or predict.
// (Graves, Wayne & Danihelka 2014, sec. 4; reverse and duplicated input: Zaremba & Sutskever 2015.)
//
// kind=ngrams (Graves et al., sec. 4.4: context=5, 200 vectors of one bit): each sequence has a table of its own, p of each
// context of `context` bits, drawn from Beta(1/2, 1/2). After the first `context` bits, the next bit is 1 with p of the last
// bits. The answer at each step is the next bit. The bits of a vector are independent sequences. No network predicts all bits.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/random/randomness.hpp"
#include "experiments/tasks/algorithm_kinds.hpp"

namespace hardgrad::tasks::algorithm {
namespace {

constexpr double any_length = 0.2;  // share of a curriculum's sequences that have any length

/// Fields: "input" [B, T, I] the bits, then one or two channels of marks; "answer" [B, T, O], -1 at steps without an answer;
/// "length" [B] steps; "longer" [B] 1 if the sequence is longer than those of training. Examples are made on demand from their
/// ids. With a curriculum, training begins with sequences of min_length.
class Algorithm final : public OnDemand, public Graded {
 public:
  Algorithm(const Config& config, Key key) : OnDemand(config.sizes), key_(key), config_(config), kind_(*config.kind) {
    const auto& [kind, bits, least, most, longer, repeats, context, curriculum, sizes] = config;
    if (least > most)
      throw UsageError(fmt::format("algorithm: min_length must be at most max_length, {}, got {}", most, least));
    if (longer != 0 && longer <= most)
      throw UsageError(fmt::format("algorithm: longer must be above max_length, {}, or 0 for none, got {}", most, longer));
    if (kind_.too_short)
      if (const auto reason = kind_.too_short(config); !reason.empty()) throw UsageError("algorithm: " + reason);
  }

  Dimensions dimensions() const override {
    const auto longest = std::max(config_.max_length, config_.longer);
    const auto shown = kind_.shown(config_, longest), kept = kind_.kept(config_, longest);
    Dimensions all{{"input_width", static_cast<int>(inputs())},
                   {"answer_width", static_cast<int>(outputs())},
                   {"steps", static_cast<int>(shown + kind_.wanted(config_, longest))},
                   {"vectors", static_cast<int>(std::max<std::size_t>(kept, 1))}};
    if (kept > 0) all["shown_steps"] = static_cast<int>(shown);  // the whole input is there before the first answer
    return all;
  }

  Batch batch(Split split, const std::vector<int>& indices) const override {
    return drawn(split, indices, config_.max_length, key_);
  }
  /// The maximum length grows linearly from min_length to max_length over the first `curriculum` sequences. A fifth of the
  /// sequences have any length from the beginning (the mixed curriculum of Zaremba & Sutskever 2014, Learning to execute).
  Batch graded_batch(const std::vector<int>& indices, Key epoch, std::uint64_t seen) const override {
    const auto least = config_.min_length, most = config_.max_length;
    if (seen >= config_.curriculum) return batch(Split::train, indices);
    return drawn(Split::train, indices, least + seen * (most - least) / config_.curriculum, epoch);
  }

  std::vector<Metric> metrics() const override {
    std::vector<Metric> all{{.name = "bit_error", .unit = "1", .higher_is_better = false},
                            {.name = "solved", .unit = "1", .share = true}};
    if (config_.longer > 0) {
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
      const auto wanted = row_of(answer, b);
      const auto labels = row_of(seen.predictions, b);
      std::vector<int> said;  // the predicted bits in order, at whatever step
      std::copy_if(labels.begin(), labels.end(), std::back_inserter(said), [](int bit) { return bit >= 0; });
      double wrong = 0;
      std::size_t count = 0;
      for (int bit : wanted) {
        if (bit < 0) continue;
        wrong += count >= said.size() || said[count] != bit;
        ++count;
      }
      auto* const of = &metrics[longer(b) ? 2 : 0];
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
    Array<int> length = zeros<int>({B}), longer = zeros<int>({B});
    for (std::size_t b = 0; b < B; ++b) {
      const auto i = static_cast<std::size_t>(indices[b]);
      batch.id.push_back(id_of(split, indices[b]));
      scripts.push_back(written(split, i, batch.id[b], longest, epoch));
      T = std::max(T, scripts[b].steps);
      length(b) = static_cast<int>(scripts[b].steps);
      longer(b) = is_longer(split, i);
    }
    Array<double> input = zeros<double>({B, T, inputs()});
    Array<int> answer = full<int>({B, T, outputs()}, -1);
    for (std::size_t b = 0; b < B; ++b) {
      std::copy(scripts[b].input.begin(), scripts[b].input.end(), row_of(input, b).begin());
      std::copy(scripts[b].answer.begin(), scripts[b].answer.end(), row_of(answer, b).begin());
    }
    batch.reals = {{"input", std::move(input)}};
    batch.integers = {{"answer", std::move(answer)}, {"length", std::move(length)}, {"longer", std::move(longer)}};
    return batch;
  }

  std::size_t inputs() const { return config_.bits + kind_.marks; }
  std::size_t outputs() const { return config_.bits + kind_.ends; }
  bool is_longer(Split split, std::size_t i) const { return split == Split::test && config_.longer > 0 && i % 2 == 1; }

  /// Training and held-out sequences have lengths from min_length to max_length; test sequences max_length or `longer`.
  Script written(Split split, std::size_t i, std::uint32_t id, std::size_t longest, Key epoch) const {
    const auto least = config_.min_length, most = config_.max_length;
    Draws draw(key_ / "sequence", id);
    if (longest < most && KeyedRandomness(epoch / "curriculum").uniform({.example = id}) < any_length) longest = most;
    const bool test = split == Split::test;
    const auto n = !test ? least + draw.below(longest - least + 1) : is_longer(split, i) ? config_.longer : most;
    Example example{config_, std::move(draw), n, test, Script(inputs(), outputs())};
    kind_.make(example);
    return std::move(example.script);
  }

  Key key_;
  Config config_;
  const Kind& kind_;
};

const TaskEntry entry = {
    .name = "algorithm",
    .summary = "sequences of random bits to copy, deduplicate, repeat, recall, sort, reverse or predict",
    .data = "generated",
    .default_model = "turing_machine",
    .parameters = declared<Config>(),
};
HARDGRAD_TASK(Algorithm, entry)

}  // namespace
}  // namespace hardgrad::tasks::algorithm
