// Subsets of exactly k of a choice's options: p(S) = prod_{i in S} exp(x_i) / Z, x the logits (conditional Poisson; Ahmed, Zeng,
// Niepert & Van den Broeck 2023, SIMPLE: a gradient estimator for k-subset sampling, eq. 1). For k = 1 a categorical choice.
// Density, marginals, entropy and draws are exact, in O(S k) for each choice (autodiff/subsets.hpp).
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/choice/distribution.hpp"

namespace hardgrad {

template <class T>
class Subsets final : public Distribution<T> {
 public:
  /// logits [R D, S]; options [R D]: choice c picks among options 0 .. options[c] - 1 whose logit is above -inf. If they are
  /// `picks` or fewer, all are picked: nothing is chosen (a finished row). UsageError where no option is possible.
  Subsets(Var<T> logits, std::vector<int> options, int picks, int columns);
  const SiteKind& kind() const override { return SiteKind::subsets; }
  std::vector<std::pair<std::string_view, Var<T>>> parameters() const override { return {{"logits", logits_}}; }
  bool chooses(std::size_t row) const override;
  std::vector<double> law(std::size_t row, std::size_t column) const override;
  Var<T> logits() const override { return logits_; }
  const std::vector<int>& options() const override { return options_; }
  int picks() const override { return picks_; }
  double answers(std::size_t choice) const override;
  std::vector<double> log_p_of_answers(std::size_t choice) const override;
  /// Subsets are ordered by their options, as words of ascending letters.
  Choice<T> nth_answer(const RowsPtr& rows, const std::vector<int>& index) const override;

  /// [R D, S] probability that each option is picked. Computed once, on demand.
  Var<T> marginals() const;

  /// As Randomness has it: one number for each option picked, or one categorical draw among all subsets.
  Choice<T> sample(Tape<T>& tape, const RowsPtr& rows, const Noise& noise) const override;
  Choice<T> mode(Tape<T>& tape, const RowsPtr& rows) const override;
  Choice<T> mean(const RowsPtr& rows) const override;
  Choice<T> enumerate(Tape<T>& tape, const RowsPtr& asking, int step, const Visits& visits) const override;
  Var<T> log_probability(const Choice<T>& choice) const override;
  std::vector<double> squared_scores(const Choice<T>& choice) const override;
  Var<T> entropy() const override;
  Var<T> divergence(const Distribution<T>& other) const override;
  Var<T> log_ratio(const Choice<T>& choice, const Distribution<T>& other) const override;

 private:
  /// The possible options of a choice, ascending.
  std::vector<int> possible(std::size_t choice) const;
  /// The index-th subset of these options; `to` [picks] beyond them is -1.
  void write_subset(std::span<const int> possible, std::size_t index, std::span<int> to) const;
  Var<T> log_ratio_under(Var<T> weights, const std::vector<int>& from, const Distribution<T>& other) const;
  Var<T> log_normaliser() const;
  Var<T> logits_;
  std::vector<int> options_;
  int picks_;
  mutable Var<T> marginals_, log_normaliser_;
};

template <class T>
std::shared_ptr<const Subsets<T>> subsets(Var<T> logits, std::vector<int> options, int picks, int columns = 1) {
  return std::make_shared<const Subsets<T>>(logits, std::move(options), picks, columns);
}

extern template class Subsets<float>;
extern template class Subsets<double>;

}  // namespace hardgrad
