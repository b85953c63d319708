// A categorical distribution: the softmax of a choice's logits over its options. A choice with two options is a bit.
#pragma once

#include <span>
#include <vector>

#include "core/choice/distribution.hpp"

namespace hardgrad {

template <class T>
class Categorical final : public Distribution<T> {
 public:
  /// logits [R D, S]; options [R D]: choice c has options 0 .. options[c] - 1. With one option nothing is chosen (a finished
  /// row).
  Categorical(Var<T> logits, std::vector<int> options, int columns);
  const SiteKind& kind() const override { return SiteKind::categorical; }
  const Categorical& categories() const override { return *this; }
  std::vector<std::pair<std::string_view, Var<T>>> parameters() const override { return {{"logits", logits_}}; }
  bool chooses(std::size_t row) const override;
  std::vector<double> parameters_at(std::size_t row, std::size_t column) const override;
  void prepare() const override { log_p(); }
  Var<T> logits() const override { return logits_; }
  const std::vector<int>& options() const override { return options_; }
  double support_size(std::size_t choice) const override { return options_[choice]; }
  std::vector<double> log_p_of_answers(std::size_t choice) const override {
    return parameters_at(choice / this->columns(), choice % this->columns());
  }
  Choice<T> unrank(const RowsPtr& rows, const std::vector<int>& index) const override { return {rows, ChosenOptions{index}}; }

  /// [R D, S] log softmax over the choice's options; -inf beyond them. Computed once, on demand.
  Var<T> log_p() const;
  /// A distribution with these logits and the same options.
  DistributionPtr<T> with(Var<T> logits) const;
  /// [R' D] one option for each choice of `rows`. Rows of examples marked in `skip` draw nothing and get option 0.
  std::vector<int> draw(const Rows& rows, const Noise& noise, const std::vector<bool>* skip = nullptr) const;

  Choice<T> sample(Tape<T>& tape, const RowsPtr& rows, const Noise& noise) const override;
  Choice<T> mode(Tape<T>& tape, const RowsPtr& rows) const override;
  Choice<T> mean(const RowsPtr& rows) const override;
  Choice<T> enumerate(Tape<T>& tape, const RowsPtr& asking, int step, const Visits& visits) const override;
  Var<T> log_probability(const Choice<T>& choice) const override;
  Var<T> log_probability_of_rows(const Choice<T>& choice) const override;
  std::vector<double> squared_scores(const Choice<T>& choice) const override;
  Var<T> entropy() const override;
  Var<T> divergence(const Distribution<T>& other) const override;
  Var<T> log_ratio(const Choice<T>& choice, const Distribution<T>& other) const override;

 private:
  std::vector<int> parent_choices(const Rows& rows) const;
  Var<T> over_columns(Var<T> of_cells) const;
  Var<T> logits_;
  std::vector<int> options_;
  mutable Var<T> log_p_;
};

template <class T>
std::shared_ptr<const Categorical<T>> categorical(Var<T> logits, std::vector<int> options, int columns = 1) {
  return std::make_shared<const Categorical<T>>(logits, std::move(options), columns);
}

/// From log probabilities [R, S] instead of logits. Bug if a row's probabilities do not sum to 1 over its options, because the
/// softmax would hide the error.
template <class T>
std::shared_ptr<const Categorical<T>> normalised(Var<T> log_p, const std::vector<int>& options);

/// D bits per row with log odds phi [R, D]: logits (0, phi).
template <class T>
std::shared_ptr<const Categorical<T>> bernoulli(Var<T> phi);

/// [R' D] for each choice of `rows`, the choice of its parent row: an index into the R D choices.
std::vector<int> parent_choices_of(const Rows& rows, int columns);

extern template class Categorical<float>;
extern template class Categorical<double>;

}  // namespace hardgrad
