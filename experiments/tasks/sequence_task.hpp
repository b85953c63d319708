// Base of sequence-to-sequence tasks over words (letters, sounds, brackets), for the model `translator`.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "experiments/tasks/listed.hpp"
#include "experiments/tasks/loaders/pairs.hpp"
#include "experiments/tasks/text.hpp"

namespace hardgrad::tasks {

/// A source sequence, its target sequence, and the links of their words if they are known.
struct SequencePair {
  std::vector<std::string> source, target;
  GoldLinks gold = {};
};

/// Words joined by spaces.
std::string joined(const std::vector<std::string>& words);

/// Fields: "source" [B, L] and "source_length" [B]; "target" [B, T] with its final end mark and "target_length" [B];
/// "alignment" [B, T] the first sure link of a target word, -1: none; only if links are known.
/// Metrics, besides own_metrics():
///   token_accuracy, exact_match   fed with the truth
///   exact_match_decoded           of free answers
///   positions_used                number of source positions that a sentence's words attend to, scaled: 0 if all words attend
///                                 to the same one (attention has collapsed), 1 for the largest possible number
///   alignment_error_rate          if links are known
class SequenceTask : public Listed {
 public:
  Dimensions dimensions() const override { return dimensions_; }
  Batch batch(Split split, const std::vector<int>& indices) const override;
  std::string word(const std::string& field, int number) const override;
  std::vector<Metric> metrics() const final;
  /// A choice beyond the source's words (the null position) is not a link. Several heads are averaged.
  void score(const Batch& batch, const Observation& seen, std::vector<Metric>& metrics) const final;
  bool decodes() const final { return true; }
  /// Free-running answers end at the first end mark.
  void score_decoded(const Batch& batch, const Observation& seen, std::vector<Metric>& metrics) const final;
  /// The known links of an example; may be empty.
  const GoldLinks& gold(std::uint32_t id) const { return examples_.at(id).gold; }

 protected:
  /// Takes the pairs with their splits, and numbers their words: those of the training split, at most `vocabulary` per side, or
  /// those of `trained`, a task of the same kind. InputError with `none_left` if no pair is trained on.
  void take(std::vector<SequencePair> pairs, const std::vector<Split>& splits, std::size_t vocabulary, Key order,
            const std::string& none_left, const SequenceTask* trained);
  /// The additional metrics of a task, at zero.
  virtual std::vector<Metric> own_metrics() const { return {}; }
  /// Adds one free answer to example `id`, without its end mark, to these metrics.
  virtual void judge(std::uint32_t /*id*/, std::span<const int> /*answer*/, std::vector<Metric>& /*own*/) const {}

  /// The answer of an example, without its end mark.
  std::span<const int> reference(std::uint32_t id) const {
    return std::span(examples_[id].target).first(examples_[id].target.size() - 1);
  }
  const std::string& target_word(int number) const { return target_words_.word(number); }
  std::size_t source_words(std::uint32_t id) const { return examples_[id].source.size(); }
  /// Share of unknown words among the target words.
  double unknown() const { return unknown_; }

 private:
  struct Example {
    std::vector<int> source, target, alignment;
    GoldLinks gold;
  };
  std::vector<Example> examples_;
  Vocabulary source_words_, target_words_;
  Dimensions dimensions_;
  bool has_gold_ = false;
  double unknown_ = 0;
};

}  // namespace hardgrad::tasks
