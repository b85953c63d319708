// The choices of a run's samples: their places, options and probabilities, and gradients at their logits.
#pragma once

#include <memory>
#include <vector>

#include "core/choice/episode.hpp"
#include "core/estimator/at_logits.hpp"

namespace hardgrad {

/// The choices of a run's samples, and their logits.
template <class T>
class Choices {
 public:
  /// asking[t][n]: the row of step t's site at which sample n chooses. In column d it chose option[t][n D + d], or of subsets
  /// the k options from (n D + d) k on.
  Choices(Episode<T>& episode, const std::vector<std::vector<int>>& asking, const std::vector<std::vector<int>>& option);

  const std::shared_ptr<const ChoiceLayout>& layout() const { return layout_; }
  /// The chosen options, the probabilities (of subsets, that the option is picked), and their difference: grad log p(z), whose
  /// entry at the chosen option of a category is the probability of the others. All are 0 where there is no choice. Each is
  /// computed on first use.
  const AtLogits& one_hot() const;
  const AtLogits& p() const;
  const AtLogits& score() const;
  /// [N] the row of a step's site at which each sample chooses.
  const std::vector<int>& asking(int step) const { return asking_[step]; }
  /// Gathers one matrix [N D, S] per step, e.g. a derivative; 0 where there is no choice.
  AtLogits gathered(const std::vector<MatrixView<const T>>& of_steps) const;
  /// Joins one vector [N D, S] per step.
  AtLogits flat(std::vector<std::vector<double>> of_steps) const;
  AtLogits zeros() const { return {layout_, std::vector<double>(layout_->logits())}; }

  /// Mean over the samples of <g, logits>. Its gradient at the logits is g / N.
  Var<T> surrogate(const AtLogits& g) const;
  /// For each sample, the sum of g over all samples that choose by the same logits: the gradient at those logits.
  AtLogits summed_by_logits(const AtLogits& g) const;

 private:
  /// Options of one choice of the step.
  std::size_t subset_size(std::size_t step) const { return episode_.steps()[step].question.distribution->subset_size(); }
  Episode<T>& episode_;
  std::vector<std::vector<int>> asking_, option_;
  std::shared_ptr<const ChoiceLayout> layout_;
  mutable AtLogits one_hot_, p_, score_;  // without a layout until first used
};

extern template class Choices<float>;
extern template class Choices<double>;

}  // namespace hardgrad
