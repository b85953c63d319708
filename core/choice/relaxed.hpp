// Relaxed choices: weights over the options, differentiable in the logits, with or without a hard option in the forward pass.
#pragma once

#include <functional>
#include <vector>

#include "core/choice/gumbel.hpp"
#include "core/choice/handlers.hpp"

namespace hardgrad {

/// The R choices (columns of rows) after one question, whose weights are to be computed.
template <class T>
struct RelaxationContext {
  Tape<T>& tape;
  const Question<T>& question;
  const Rows& rows;
  Randomness& random;
  const std::vector<std::uint32_t>& id;
  int rao_samples = 1;  ///< draws of the noise given the choice, for relaxations that average over them

  std::vector<int> from = question.parent_choices(rows);  ///< [R] the site's choice in the parent row
  std::vector<int> count = options();                     ///< [R] number of options

  std::size_t size() const { return from.size(); }
  std::size_t width() const { return question.categories().log_p().cols(); }  ///< S
  /// Log probabilities [R, S] of the options of every choice with several options; 0 elsewhere.
  std::vector<double> log_p() const;
  /// softmax((logits + shift) / temperature) over each choice's options [R, S]; shift [R, S] is constant.
  Var<T> softmax(Var<T> shift, double temperature) const;
  /// softmax(logits / temperature) [R, S]; at temperature 1, the probabilities.
  Var<T> softmax(double temperature = 1) const;
  /// A constant [R, S]: put(choice, span) replaces the choice's log probabilities [options] in place; 0 where there is no choice.
  template <class F>
  Var<T> constants(F&& put) const {
    auto numbers = log_p();
    for (std::size_t r = 0; r < size(); ++r)
      if (count[r] > 1) put(r, std::span(numbers).subspan(r * width(), count[r]));
    return constant(numbers);
  }
  /// One option per choice, drawn from softmax(logits / temperature).
  std::vector<int> draw(double temperature = 1) const;
  /// Constant noise [R, S] with logits + noise = z up to a constant per row. `option` receives the argmax of z, if not null.
  Var<T> gumbels(std::vector<int>* option = nullptr) const;
  /// The same given the options; its draws have indices from `index` on. `of` [R, S]: the log probabilities under which the
  /// options were drawn; empty: those of the question.
  Var<T> gumbels_given(const std::vector<int>& option, std::uint32_t index, std::span<const double> of = {}) const;

 private:
  std::vector<int> options() const;
  /// [rows] the place of each row's first column.
  std::vector<Draw> where(std::uint32_t index = 0) const;
  Var<T> softmax_of(Var<T> logits, double temperature) const;
  Var<T> constant(const std::vector<double>& numbers) const;
};

/// one_hot + (soft - detach(soft)): the value is the hard choice, the derivative that of `soft`.
template <class T>
Relaxed<T> straight_through(Tape<T>& tape, const Choice<T>& hard, Var<T> soft);
/// The same of one option for each choice.
template <class T>
Relaxed<T> straight_through(const RelaxationContext<T>& context, std::vector<int> option, Var<T> soft);

/// Answers with the result of `relax`; `samples` rows per example.
template <class T>
class RelaxedHandler final : public Handler<T> {
 public:
  using Relax = std::function<Relaxed<T>(const RelaxationContext<T>&)>;
  RelaxedHandler(int samples, Randomness& random, const std::vector<std::uint32_t>& id, Relax relax, int rao_samples = 1)
      : samples_(samples), rao_samples_(rao_samples), random_(random), id_(id), relax_(std::move(relax)) {}
  Choice<T> choose(Tape<T>& tape, const Question<T>& question) override;

 private:
  int samples_, rao_samples_;
  Randomness& random_;
  const std::vector<std::uint32_t>& id_;
  Relax relax_;
};

extern template struct RelaxationContext<float>;
extern template struct RelaxationContext<double>;

}  // namespace hardgrad
