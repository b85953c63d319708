// Tasks that make a sequence of words (letters, sounds, brackets) of another: the data of the network `translator`.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "experiments/tasks/links.hpp"
#include "experiments/tasks/listed.hpp"
#include "experiments/tasks/vocabulary.hpp"

namespace hardgrad::tasks {

/// A sequence, what becomes of it, and which word comes from which, if that is known.
struct SequencePair {
  std::vector<std::string> source, target;
  GoldLinks gold = {};
};

/// Words with a blank between them.
std::string joined(const std::vector<std::string>& words);

/// Fields: "source" [B, L] and "source_length" [B]; "target" [B, T] with its final end mark and "target_length" [B];
/// "alignment" [B, T] the first sure link of a target word, -1 where there is none; only there if links are known at all.
/// Metrics, besides those of a task's own: `token_accuracy` and `exact_match` fed with the truth, `exact_match_decoded` of free
/// answers, `positions_used`, how many source positions a sentence's words attend to: 0 if all attend to one, whatever they are
/// (attention has collapsed), 1 if to as many as there can be; and, where links are known, `alignment_error_rate`.
class SequenceTask : public Listed {
 public:
  Dimensions dimensions() const override { return dimensions_; }
  Batch batch(Split split, const std::vector<int>& indices) const override;
  std::string word(const std::string& field, int number) const override;
  std::vector<Metric> metrics() const final;
  /// Choices beyond the source's words (a null position) are no links. Of several heads, the mean over them.
  void score(const Batch& batch, const Observation& seen, std::vector<Metric>& metrics) const final;
  bool decodes() const final { return true; }
  /// Free-running answers end at the first end mark.
  void score_decoded(const Batch& batch, const Observation& seen, std::vector<Metric>& metrics) const final;
  /// The links known of an example; perhaps none.
  const GoldLinks& gold(std::uint32_t id) const { return examples_.at(id).gold; }

 protected:
  /// Takes the pairs, a split each, and gives their words numbers: those that stand in the training split, or the words of
  /// `trained`, a task of the same kind, if there is one. At most `vocabulary` a side. `none_left` says what would help if none
  /// is trained on.
  void take(std::vector<SequencePair> pairs, const std::vector<Split>& splits, std::size_t vocabulary, Key order,
            const std::string& none_left, const SequenceTask* trained);
  /// Metrics of a task's own, at zero.
  virtual std::vector<Metric> own_metrics() const { return {}; }
  /// Adds to them one free answer to example `id`, without its end mark.
  virtual void judge(std::uint32_t /*id*/, std::span<const int> /*answer*/, std::vector<Metric>& /*own*/) const {}

  /// The answer of an example, without its end mark.
  std::span<const int> reference(std::uint32_t id) const {
    return std::span(examples_[id].target).first(examples_[id].target.size() - 1);
  }
  const std::string& target_word(int number) const { return target_words_.word(number); }
  std::size_t source_words(std::uint32_t id) const { return examples_[id].source.size(); }
  /// Share of the target words that have no number.
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
