// A toy for policies that write: every sequence of at most `longest` words has a reward of its own, drawn once. Small enough to
// enumerate: with 2 words and at most 4 of them there are 31 sequences.
#include <fmt/format.h>

#include <algorithm>

#include "core/models/parts/sequence_rewards.hpp"
#include "core/random/randomness.hpp"
#include "experiments/tasks/task.hpp"

namespace hardgrad::tasks::sequences {
namespace {

constexpr double most_sequences = 1 << 20;

/// One example. Field: "rewards" [B, sequences], numbered as in core/models/parts/sequence_rewards.hpp.
class Sequences final : public Task {
 public:
  Sequences(const Settings& settings, Key key)
      : numbers_{static_cast<std::size_t>(settings.integer("words")), settings.integer("longest")} {
    const double count = numbers_.count(numbers_.longest);
    if (count > most_sequences)
      throw UsageError(
          fmt::format("sequences: the table would have {:.6g} rewards, at most {:.0f}: take fewer words or a smaller "
                      "longest",
                      count, most_sequences));
    KeyedRandomness random(key / "rewards");
    for (std::uint32_t i = 0; i < count; ++i)
      rewards_.push_back(settings.text("rewards") == "normal"
                             ? random.normal({.index = i})
                             : static_cast<double>(random.uniform({.index = i}) < settings.real("success")));
  }
  Dimensions dimensions() const override {
    Dimensions all{{"words", static_cast<int>(numbers_.words)},
                   {"longest", numbers_.longest},
                   {"reward_table", static_cast<int>(rewards_.size())}};
    if (std::all_of(rewards_.begin(), rewards_.end(), [](double r) { return r >= 0; })) all["rewards_from_0"] = 1;
    return all;
  }
  std::size_t size(Split) const override { return 1; }
  Batch batch(Split, const std::vector<int>& indices) const override {
    Batch batch;
    batch.id.assign(indices.size(), 0);
    Array<double> rewards({indices.size(), rewards_.size()});
    for (std::size_t b = 0; b < indices.size(); ++b) std::copy(rewards_.begin(), rewards_.end(), rewards.row(b).begin());
    batch.reals = {{"rewards", std::move(rewards)}};
    return batch;
  }

 private:
  SequenceNumbers numbers_;
  std::vector<double> rewards_;
};

const TaskEntry entry = {
    .name = "sequences",
    .summary = "every sequence of words has a random reward: a toy that can be enumerated",
    .data = "generated",
    .default_model = "writer[policy=table]",
    .parameters = {ParameterInfo::integer("words", 2, 1, 10000, "words V beside the end mark"),
                   ParameterInfo::integer("longest", 4, 1, 1000, "most words of a sequence; 1: a bandit"),
                   ParameterInfo::choice("rewards", "normal", {"normal", "binary"}, "standard normal, or 0 and 1"),
                   ParameterInfo::real("success", 0.3, 0, 1, "probability of the reward 1 of rewards=binary")},
};
HARDGRAD_TASK(Sequences, entry)

}  // namespace
}  // namespace hardgrad::tasks::sequences
