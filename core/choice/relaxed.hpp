// Relaxed choices: weights that carry a derivative to the logits, with or without a hard option in front.
#pragma once

#include <functional>
#include <vector>

#include "core/choice/choosers.hpp"
#include "core/choice/gumbel.hpp"

namespace hardgrad {

/// The cells (columns of rows) that go on from one question, each waiting for its weights: R of them.
template <class T>
struct Relaxing {
  Tape<T>& tape;
  const Question<T>& question;
  const Rows& rows;
  Randomness& random;
  const std::vector<std::uint32_t>& id;

  std::vector<int> from = question.cells(rows);  ///< [R] the cell each continues

  std::size_t size() const { return from.size(); }
  int options(std::size_t cell) const { return question.site.options[from[cell]]; }
  /// Log probabilities of a cell's options.
  std::vector<double> log_p(std::size_t cell) const;
  Draw where(std::size_t cell, std::uint32_t index = 0) const;
  /// softmax((logits + shift) / temperature) over each cell's options [R, S]; shift [R, S] is constant.
  Var<T> softmax(Var<T> shift, double temperature) const;
  /// The probabilities themselves [R, S].
  Var<T> softmax() const;
  /// A constant [R, S]: put(cell, its numbers [options]) for every cell that has a choice, 0 elsewhere.
  template <class F>
  Var<T> constants(F&& put) const {
    auto all = tape.constant(size(), question.log_p.cols());
    auto to = tape.mutable_value(all);
    for (std::size_t r = 0; r < size(); ++r)
      if (const int n = options(r); n > 1) {
        const std::vector<double> row = put(r);
        for (int i = 0; i < n; ++i) to(r, i) = static_cast<T>(row[i]);
      }
    return all;
  }
  /// One option per cell, drawn from the probabilities.
  std::vector<int> draw() const { return draw_options(question, rows, random, id); }
  /// Constant noise [R, S] with logits + noise = z up to a constant per row. Options, if wanted, are those it chooses.
  Var<T> gumbels(std::vector<int>* option = nullptr) const;
  /// The same given the options, whose draws stand at `index` and after it.
  Var<T> gumbels_given(const std::vector<int>& option, std::uint32_t index) const;
};

template <class T>
struct Relaxed {
  std::vector<int> option;  ///< [R], or empty
  Var<T> weights;           ///< [R, S]
};

/// The hard options in value, `soft` in derivative: one_hot + (soft - detach(soft)).
template <class T>
Relaxed<T> straight_through(const Relaxing<T>& asked, std::vector<int> option, Var<T> soft);

/// Answers with what `relax` makes of the logits; `samples` rows per example.
template <class T>
class RelaxedChooser final : public Chooser<T> {
 public:
  using Relax = std::function<Relaxed<T>(const Relaxing<T>&)>;
  RelaxedChooser(int samples, Randomness& random, const std::vector<std::uint32_t>& id, Relax relax)
      : samples_(samples), random_(random), id_(id), relax_(std::move(relax)) {}
  Choice<T> choose(Tape<T>& tape, const Question<T>& question) override;

 private:
  int samples_;
  Randomness& random_;
  const std::vector<std::uint32_t>& id_;
  Relax relax_;
};

extern template struct Relaxing<float>;
extern template struct Relaxing<double>;

}  // namespace hardgrad
