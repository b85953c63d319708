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

enum class RewardDistribution { normal, binary };
constexpr Named<RewardDistribution> reward_laws[] = {{"normal", RewardDistribution::normal},
                                                     {"binary", RewardDistribution::binary}};

struct Config {
  std::size_t words = 2;
  int longest = 4;
  RewardDistribution rewards = RewardDistribution::normal;
  double success = 0.3;

  void declare(Fields& field) {
    field(words, "words", 1, 10000, "words V beside the end mark");
    field(longest, "longest", 1, 1000, "most words of a sequence; 1: a bandit");
    field(rewards, "rewards", reward_laws, "standard normal, or 0 and 1");
    field(success, "success", 0, 1, "probability of the reward 1 of rewards=binary");
  }
};

/// One example. Field: "rewards" [B, sequences], numbered as in core/models/parts/sequence_rewards.hpp.
class Sequences final : public Task {
 public:
  Sequences(const Config& config, Key key) : numbers_{config.words, config.longest} {
    const double count = numbers_.count(numbers_.longest);
    if (count > most_sequences)
      throw UsageError(
          fmt::format("sequences: the table would have {:.6g} rewards, at most {:.0f}: take fewer words or a smaller "
                      "longest",
                      count, most_sequences));
    KeyedRandomness random(key / "rewards");
    for (std::uint32_t i = 0; i < count; ++i)
      rewards_.push_back(config.rewards == RewardDistribution::normal
                             ? random.normal({.index = i})
                             : static_cast<double>(random.uniform({.index = i}) < config.success));
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
    Array<double> rewards = xt::broadcast(xt::adapt(rewards_), Shape{indices.size(), rewards_.size()});
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
    .parameters = declared<Config>(),
};
HARDGRAD_TASK(Sequences, entry)

}  // namespace
}  // namespace hardgrad::tasks::sequences
