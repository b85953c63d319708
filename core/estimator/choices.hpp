// Notation for gradients at the logits: one value per choice of a run (PerChoice), or one value per logit (AtLogits).
//
// With f and a as PerChoice and score and slope as AtLogits, a paper's
//   g = (f - a) grad log p(z) + eta grad c
// is written `(f - a) * score + eta * slope`, for all samples, steps and columns at once.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/choice/episode.hpp"

namespace hardgrad {

/// The choices of N samples (or groups) in a run. A choice is one column of one sample at one step. Choices are ordered by step,
/// then by sample, then by column.
struct ChoiceLayout {
  struct Step {
    std::size_t columns, options;  ///< D, and S, the largest number of options of a choice
    std::size_t choice, logit;     ///< the step's first choice, and the first logit of that choice
  };
  std::size_t samples = 0;
  std::vector<Step> steps;
  std::vector<int> options;         ///< [choices]; 1 means no choice
  std::vector<std::size_t> logit;   ///< [choices + 1] first logit of each choice; S entries each, zero beyond its options
  std::vector<std::size_t> sample;  ///< [choices] the sample that the choice belongs to

  std::size_t choices() const { return options.size(); }
  std::span<const int> options_of(std::size_t step) const {
    return std::span(options).subspan(steps[step].choice, samples * steps[step].columns);
  }
  std::size_t logits() const { return logit.back(); }
};

/// The values of a layout. `Of` is a tag: one value per choice, or one per logit.
template <class Of>
struct Numbers {
  std::shared_ptr<const ChoiceLayout> of;
  std::vector<double> value;

  Numbers& operator+=(const Numbers& other) { return add(other, 1); }
  Numbers& operator-=(const Numbers& other) { return add(other, -1); }
  Numbers& operator*=(double factor) {
    for (double& v : value) v *= factor;
    return *this;
  }
  /// += factor other
  Numbers& add(const Numbers& other, double factor) {
    for (std::size_t i = 0; i < value.size(); ++i) value[i] += factor * other.value[i];
    return *this;
  }
  friend Numbers operator+(Numbers a, const Numbers& b) { return std::move(a += b); }
  friend Numbers operator-(Numbers a, const Numbers& b) { return std::move(a -= b); }
  friend Numbers operator*(double factor, Numbers a) { return std::move(a *= factor); }
};
using PerChoice = Numbers<struct OfChoices>;  ///< [choices]
using AtLogits = Numbers<struct OfLogits>;    ///< [logits]

AtLogits operator*(const PerChoice& factor, AtLogits x);
/// Elementwise product.
AtLogits times(AtLogits a, const AtLogits& b);
/// For each choice, sum_i a_i b_i.
PerChoice dot(const AtLogits& a, const AtLogits& b);
double total(const PerChoice& x);
/// (diag(p) - p p') x for each choice: the gradient of p . x at the logits.
AtLogits through_softmax(const AtLogits& p, const AtLogits& x);
/// The same of choices among S options or fewer: p, x and result [choices, S].
void through_softmax(std::size_t S, std::span<const int> options, std::span<const double> p, std::span<const double> x,
                     std::span<double> result);
/// result [choices, S] becomes onehot(b) - p of each choice b [choices], with the entry at b summed from the others, so that it
/// does not cancel; 0 where there is no choice.
void scores(std::size_t S, std::span<const int> options, std::span<const double> p, std::span<const int> option,
            std::span<double> result);

/// Which choices of a sample a sum includes, relative to one of them.
enum class Along {
  all,       ///< all choices
  own_step,  ///< the choices of its step
  so_far,    ///< the choices of its step and of earlier steps
  from_here  ///< the choices of its step and of later steps
};
/// For each choice, the sum over the choices of its sample.
PerChoice sum(const PerChoice& x, Along which);
/// [N] number of choices of each sample.
std::vector<double> choices_of_samples(const ChoiceLayout& layout);
/// Copies one value per sample [N] to each of the sample's choices.
PerChoice spread(const std::shared_ptr<const ChoiceLayout>& layout, const std::vector<double>& of_samples);

/// For each value, the mean of the corresponding values of the example's other samples. The K samples of an example are
/// adjacent.
PerChoice mean_of_others(const PerChoice& x, int samples);
/// The same at the logits; zero beyond the options of a choice.
AtLogits mean_of_others(const AtLogits& x, int samples);
/// Values [B K] or [B K, columns]: subtracts from each sample's the mean of the example's other samples. Exactly 0 where all
/// are equal.
void leave_one_out(std::span<double> x, int samples, int columns = 1);
/// The same for every step.
PerChoice leave_one_out(PerChoice x, int samples);

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
  AtLogits met(const AtLogits& g) const;

 private:
  /// Options of one choice of the step.
  std::size_t picks(std::size_t step) const { return episode_.steps()[step].question.distribution->picks(); }
  Episode<T>& episode_;
  std::vector<std::vector<int>> asking_, option_;
  std::shared_ptr<const ChoiceLayout> layout_;
  mutable AtLogits one_hot_, p_, score_;  // without a layout until first used
};

extern template class Choices<float>;
extern template class Choices<double>;

}  // namespace hardgrad
