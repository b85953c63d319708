// What gradients at the logits are written in: numbers of the choices of a run, and numbers at the logits these were made by.
//
// With f, a: PerChoice and score, slope: AtLogits, a paper's
//   g = (f - a) grad log p(z) + eta grad c
// is written `(f - a) * score + eta * slope`, for all samples, steps and columns at once.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/choice/episode.hpp"

namespace hardgrad {

/// The choices of N samples (or groups) in a run. A cell is one column of one sample at one step; cells go step by step, sample
/// by sample, column by column.
struct ChoiceLayout {
  struct Step {
    std::size_t columns, options;  ///< D, and the most options S of a cell
    std::size_t cell, logit;       ///< its first cell, and that cell's first logit
  };
  std::size_t samples = 0;
  std::vector<Step> steps;
  std::vector<int> options;         ///< [cells] 1: no choice
  std::vector<std::size_t> logit;   ///< [cells + 1] first logit of each cell; S of its step follow, zero beyond its own options
  std::vector<std::size_t> sample;  ///< [cells]

  std::size_t cells() const { return options.size(); }
  std::span<const int> options_of(std::size_t step) const {
    return std::span(options).subspan(steps[step].cell, samples * steps[step].columns);
  }
  std::size_t logits() const { return logit.back(); }
};

/// Numbers of a layout. `Of` says of what: of each choice, or of each logit.
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
  friend Numbers operator+(Numbers a, const Numbers& b) { return std::move(a += b); }
  friend Numbers operator-(Numbers a, const Numbers& b) { return std::move(a -= b); }
  friend Numbers operator*(double factor, Numbers a) { return std::move(a *= factor); }

 private:
  Numbers& add(const Numbers& other, double factor) {
    for (std::size_t i = 0; i < value.size(); ++i) value[i] += factor * other.value[i];
    return *this;
  }
};
using PerChoice = Numbers<struct OfChoices>;  ///< [cells]
using AtLogits = Numbers<struct OfLogits>;    ///< [logits]

AtLogits operator*(const PerChoice& factor, AtLogits x);
/// Entry by entry.
AtLogits times(AtLogits a, const AtLogits& b);
/// Of each choice, sum_i a_i b_i.
PerChoice dot(const AtLogits& a, const AtLogits& b);
double total(const PerChoice& x);
/// (diag(p) - p p') x of each choice: the gradient at the logits of p . x.
AtLogits through_softmax(const AtLogits& p, const AtLogits& x);

/// Which choices of a sample a sum takes, seen from one of them.
enum class Along {
  all,       ///< all of them
  own_step,  ///< those of its own step
  so_far,    ///< those of its own step and of earlier ones
  from_here  ///< those of its own step and of later ones
};
/// Of each choice, the sum over its sample's choices.
PerChoice sum(const PerChoice& x, Along which);
/// [N] the number of choices a sample has.
std::vector<double> choices_of_samples(const ChoiceLayout& layout);
/// A number of each sample [N], at each of its choices.
PerChoice spread(const std::shared_ptr<const ChoiceLayout>& layout, const std::vector<double>& of_samples);

/// Of each number, the mean of those in the same place of the example's other samples; an example has K of them, side by side.
PerChoice mean_of_others(const PerChoice& x, int samples);
/// The same at the logits; zero beyond a choice's own options.
AtLogits mean_of_others(const AtLogits& x, int samples);
/// Numbers [B K] or [B K, columns] become each sample's minus the mean of its example's other samples; exactly 0 where they are
/// equal.
void leave_one_out(std::span<double> x, int samples, int columns = 1);
/// The same of every step's.
PerChoice leave_one_out(PerChoice x, int samples);

/// The choices of a run's samples, and its logits.
template <class T>
class Choices {
 public:
  /// asking[t][n]: the row of step t's site in which sample n chooses; it chose option[t][n D + d] in column d.
  Choices(Episode<T>& episode, const std::vector<std::vector<int>>& asking, const std::vector<std::vector<int>>& option);

  const std::shared_ptr<const ChoiceLayout>& layout() const { return layout_; }
  /// What was chosen, the probabilities, and the difference of both: grad log p(z), whose entry of the option chosen is the
  /// others' probability. All are 0 where there is no choice. Each is worked out when it is first asked for.
  const AtLogits& one_hot() const;
  const AtLogits& p() const;
  const AtLogits& log_p() const;
  const AtLogits& score() const;
  /// [N] the row of a step's site in which each sample chooses.
  const std::vector<int>& asking(int step) const { return asking_[step]; }
  /// A value [N D, S] of every step, e.g. a derivative; 0 where there is no choice.
  AtLogits gathered(const std::vector<MatrixView<const T>>& of_steps) const;
  /// Numbers [N D, S] of every step.
  AtLogits flat(std::vector<std::vector<double>> of_steps) const;
  AtLogits zeros() const { return {layout_, std::vector<double>(layout_->logits())}; }

  /// Mean over the samples of <g, logits>: its gradient at the logits is g / N.
  Var<T> surrogate(const AtLogits& g) const;
  /// The sum of g over the samples that choose by the same logits, at each of them: the gradient there.
  AtLogits met(const AtLogits& g) const;

 private:
  Episode<T>& episode_;
  std::vector<std::vector<int>> asking_, option_;
  std::shared_ptr<const ChoiceLayout> layout_;
  mutable AtLogits one_hot_, p_, log_p_, score_;  // without a layout until asked for
};

extern template class Choices<float>;
extern template class Choices<double>;

}  // namespace hardgrad
