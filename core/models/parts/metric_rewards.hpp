// Rewards of sentences whose words are choices, by their likeness to the right answer:
//   bleu   smoothed BLEU-4 (Lin & Och 2004)        exact  1 if all is right, with the end
//   edit   1 - edit distance / longer length       share  share of the right words, paid step by step
//   f1     F1 of the words                         chrf   F_2 of their 1- to 6-grams, each word a character (Popović 2015):
//                                                         beta = 2, n up to 6 and the shorter sentence (support/text_metrics.hpp)
// All but exact and share are metrics of hard words, paid at the end.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/choice/structure.hpp"
#include "core/models/parts/sequence_rewards.hpp"
#include "core/registry/fields.hpp"
#include "core/support/text_metrics.hpp"

namespace hardgrad {

/// 1 less the edit distance, relative to the longer sequence: in [0, 1].
inline double edit_similarity(std::span<const int> said, std::span<const int> right) {
  const auto longer = std::max(said.size(), right.size());
  return longer == 0 ? 1 : 1 - static_cast<double>(edit_distance(said, right)) / static_cast<double>(longer);
}

/// A metric of the words before the end mark, paid with the end mark or the word at the limit. The gate has the words so far.
/// Relaxed words count as their most probable ones, without a derivative.
template <class T>
class MetricReward final : public SequenceRewards<T> {
 public:
  using Metric = double (*)(std::span<const int> said, std::span<const int> right);
  MetricReward(Array<int> answer, int end, int longest, Metric metric)
      : answer_(std::move(answer)), end_(end), longest_(longest), metric_(metric) {}

  Var<T> paid(int t, Var<T> gate, Var<T> w, std::span<const int> example) const override {
    const auto word = largest(w);
    const auto reward = gate.tape->constant(gate.rows(), 1);
    for (std::size_t r = 0; r < gate.rows(); ++r) {
      auto said = words(gate, r);
      const bool ended = std::find(said.begin(), said.end(), end_) != said.end();  // before: it has been paid
      if (ended || (word[r] != end_ && t < longest_)) continue;
      if (word[r] != end_) said.push_back(word[r]);
      gate.tape->mutable_value(reward)(r, 0) = static_cast<T>(metric_(said, answer_of(answer_, example[r])));
    }
    return reward;
  }
  Var<T> next(int, Var<T> gate, Var<T> w, std::span<const int>) const override {
    const auto word = largest(w);
    const auto said = gate.tape->constant(gate.rows(), 1);
    for (std::size_t r = 0; r < word.size(); ++r) gate.tape->mutable_value(said)(r, 0) = static_cast<T>(word[r]);
    return concat_columns({gate, said});
  }

 private:
  /// The words of a state: all columns of the gate but the first.
  static std::vector<int> words(Var<T> gate, std::size_t r) {
    std::vector<int> said;
    for (std::size_t i = 1; i < gate.cols(); ++i) said.push_back(static_cast<int>(gate.value()(r, i)));
    return said;
  }
  Array<int> answer_;
  int end_, longest_;
  Metric metric_;
};

struct Reward {
  const char* name;
  double (*metric)(std::span<const int> said, std::span<const int> right);  // of hard words; null: RightAnswer
  bool all_or_nothing = false;                                              // of RightAnswer
  /// True if relaxed words have a reward that is differentiable in their weights.
  constexpr bool of_weights() const { return !metric; }
};
inline constexpr Reward all_rewards[] = {{"bleu", sentence_bleu},  {"chrf", chrf},  {"edit", edit_similarity},
                                         {"exact", nullptr, true}, {"f1", word_f1}, {"share", nullptr}};
inline constexpr const Reward& bleu_reward = all_rewards[0];
inline constexpr const Reward& exact_reward = all_rewards[3];

/// The setting `reward` of decoders whose words are choices. `of`: where it applies.
inline void reward_field(Fields& field, const Reward*& reward, const std::string& of) {
  field(reward, "reward", all_rewards,
        of + ": smoothed BLEU, F of n-grams, 1 - relative edit distance, 1 if all is right, F1 of words, "
             "or the share of right words");
}

enum class WordSource { given, sampled };
inline constexpr Named<WordSource> word_sources[] = {{"given", WordSource::given}, {"sampled", WordSource::sampled}};

/// Whether a decoder's words are choices, and their reward.
struct WordsConfig {
  WordSource words = WordSource::given;
  const Reward* reward = &bleu_reward;

  void declare(Fields& field) {
    field(words, "words", word_sources,
          "given: the loss is the target's likelihood; sampled: words are choices, too, and a sentence is "
          "rewarded as a whole");
    reward_field(field, reward, "words=sampled, of a sentence");
  }
};
/// The site of words that are choices.
inline SiteDeclaration word_site(int options, int longest, int state_width, const Reward& reward) {
  auto kind = SiteKind::categorical;
  kind.relaxable = reward.of_weights();
  return {.name = "word",
          .options = options,
          .times = longest,
          .state_width = state_width,
          .scope = DependenceScope::later_choices,
          .kind = kind};
}
/// The rule of a reward. Right answers [B, A] as in RightAnswer.
template <class T>
std::unique_ptr<SequenceRewards<T>> sentence_rewards(const Reward& reward, Array<int> answer, int end, int longest) {
  if (!reward.metric) return std::make_unique<RightAnswer<T>>(std::move(answer), end, longest, reward.all_or_nothing);
  return std::make_unique<MetricReward<T>>(std::move(answer), end, longest, reward.metric);
}

}  // namespace hardgrad
