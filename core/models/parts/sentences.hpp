// The sentences of a decoder: the truth, as input and labels, or the decoder's own words (Feeding).
#pragma once

#include <algorithm>
#include <vector>

#include "core/choice/episode.hpp"
#include "core/models/parts/replicates.hpp"

namespace hardgrad {

/// The sentences of the distinct examples of a batch, from its fields `target` and `target_length`.
class Sentences {
 public:
  /// The decoder's own sentences have at most `most` words and end with the word `last`. The arguments must outlive the object.
  template <class T>
  Sentences(const Episode<T>& episode, const Distinct& distinct, int most, int last)
      : known_(episode.feeding() == Feeding::teacher_forced),
        last_(last),
        target_(distinct.batch().ints("target")),
        length_(distinct.batch().ints("target_length").storage()),
        steps_(known_ ? *std::max_element(length_.begin(), length_.end()) : most),
        over_(distinct.size(), false) {
    if (!known_ && !distinct.all()) throw Bug("equal examples can be merged only if they are fed with the truth");
  }

  bool known() const { return known_; }
  int steps() const { return steps_; }
  /// [D, T] the true words.
  const Array<int>& target() const { return target_; }
  /// A predicate for States::only: whether an example has a word at step t.
  auto have(int t) const {
    return [this, t](int example) { return known_ ? t < length_[example] : !over_[example]; };
  }
  /// y_{t-1} of all steps [T D], step by step, or of the first step [D] if they are not known beforehand. y_0 is `first`.
  std::vector<int> before(int first) const {
    const std::size_t D = length_.size();
    std::vector<int> words((known_ ? steps_ : 1) * D, first);
    for (std::size_t t = 1; t * D < words.size(); ++t)
      for (std::size_t b = 0; b < D; ++b) words[t * D + b] = target_(b, t - 1);
    return words;
  }
  /// The label at step t; -1 if there is none.
  int label(int example, int t) const { return known_ ? target_(example, t) : -1; }
  /// Records the decoder's words of a step [D], -1 for ended sentences, and replaces -1 by `last`. True if all sentences have
  /// ended.
  bool over(std::vector<int>& words) {
    if (words.size() != over_.size()) throw Bug("a decoder fed with its own words takes one row per example");
    for (std::size_t b = 0; b < words.size(); ++b) {
      over_[b] = over_[b] || words[b] == last_;
      if (words[b] < 0) words[b] = last_;
    }
    return std::all_of(over_.begin(), over_.end(), [](bool over) { return over; });
  }

 private:
  bool known_;
  int last_;
  const Array<int>& target_;
  const std::vector<int>& length_;
  int steps_;
  std::vector<bool> over_;
};

/// The target's words without the end, [B, T], -1 pads.
inline Array<int> answers_of(const Batch& batch) {
  auto words = batch.ints("target");
  for (std::size_t b = 0; b < batch.ints("target_length").size(); ++b)
    std::fill(row_of(words, b).begin() + batch.ints("target_length")(b) - 1, row_of(words, b).end(), -1);
  return words;
}

/// The batch with its targets replaced by drawn sentences [place][B] (-1 beyond a sentence's last word), padded with `last`.
/// For AnswerSampler::with_observations.
inline Batch with_sentences(const Batch& batch, const std::vector<std::vector<int>>& drawn, int last) {
  auto result = batch;
  auto& length = result.integers.at("target_length").storage();
  Array<int> target = zeros<int>({length.size(), drawn.size()});
  for (std::size_t b = 0; b < length.size(); ++b) {
    length[b] = 0;
    for (std::size_t t = 0; t < drawn.size(); ++t) {
      length[b] += drawn[t][b] >= 0;
      target(b, t) = drawn[t][b] >= 0 ? drawn[t][b] : last;
    }
  }
  result.integers.at("target") = std::move(target);
  return result;
}

}  // namespace hardgrad
