// Rewards of written sequences, paid step by step. They are multilinear in the words' weights: a hard word has one-hot weights.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/models/batch.hpp"

namespace hardgrad {

/// The sequences of at most L of V words, in order of their length. The first word varies fastest: y_1 .. y_n has number
/// first(n) + sum_i y_i V^(i-1).
struct SequenceNumbers {
  std::size_t words = 0;  ///< V
  int longest = 0;        ///< L

  /// The number of sequences of at most n words, as a real number: it may be large.
  double count(int n) const {
    double sum = 0;
    for (int i = 0; i <= n; ++i) sum += std::pow(static_cast<double>(words), i);
    return sum;
  }
  /// The first sequence of n words.
  std::size_t first(int n) const { return n == 0 ? 0 : static_cast<std::size_t>(count(n - 1)); }
};

/// [N, V P] the weights of prefixes with one more word, from those of the prefixes [N, P] and of the word [N, V].
template <class T>
Var<T> longer_prefixes(Var<T> prefixes, Var<T> word) {
  Var<T> all;
  for (std::size_t v = 0; v < word.cols(); ++v) {
    const auto with = scale_rows(prefixes, slice_columns(word, v, 1));
    all = all ? concat_columns({all, with}) : with;
  }
  return all;
}

/// The words of example b's right answer, of answers [B, A] padded with -1.
inline std::span<const int> answer_of(const Array<int>& answers, int b) {
  const auto words = row_of(answers, b);
  return words.first(std::find(words.begin(), words.end(), -1) - words.begin());
}

/// [N] the options of the largest weights w [N, S].
template <class T>
std::vector<int> largest(Var<T> w) {
  std::vector<int> options;
  for (std::size_t n = 0; n < w.rows(); ++n) {
    const T* row = w.value().row(n);
    options.push_back(static_cast<int>(std::max_element(row, row + w.cols()) - row));
  }
  return options;
}

/// A rule of rewards. At step t = 1.. N states have a gate [N, G], the rule's memory of the words before t, and the weights
/// w [N, S] of their options at t: the words and the end mark. `example` [N]: the states' examples in the batch.
template <class T>
class SequenceRewards {
 public:
  virtual ~SequenceRewards() = default;
  /// The gate of one state before the first word: [1, 1] in every rule.
  Var<T> start(Tape<T>& tape, std::size_t states) const { return tape.constant(states, 1, T{1}); }
  /// [N, 1] the reward paid at step t.
  virtual Var<T> paid(int t, Var<T> gate, Var<T> w, std::span<const int> example) const = 0;
  /// The gate after step t.
  virtual Var<T> next(int t, Var<T> gate, Var<T> w, std::span<const int> example) const = 0;
};

/// A table [B, sequences], field "rewards": a step pays the sequences that end there. The end mark is the last option. The gate
/// has the prefixes' weights.
template <class T>
class TabledRewards final : public SequenceRewards<T> {
 public:
  TabledRewards(const Batch& data, SequenceNumbers numbers) : rewards_(data.numbers("rewards")), numbers_(numbers) {}
  Var<T> paid(int t, Var<T> gate, Var<T> w, std::span<const int> example) const override {
    const auto ended = multiply(slice_columns(w, numbers_.words, 1), worth(gate, t - 1, example));
    return t < numbers_.longest ? ended : add(ended, worth(next(t, gate, w, example), t, example));
  }
  Var<T> next(int, Var<T> gate, Var<T> w, std::span<const int>) const override {
    return longer_prefixes(gate, slice_columns(w, 0, numbers_.words));
  }

 private:
  /// [N, 1] sum over the prefixes of n words of weight times reward.
  Var<T> worth(Var<T> prefixes, int n, std::span<const int> example) const {
    auto& tape = *prefixes.tape;
    const auto reward = tape.constant(prefixes.rows(), prefixes.cols());
    for (std::size_t r = 0; r < prefixes.rows(); ++r)
      for (std::size_t p = 0; p < prefixes.cols(); ++p)
        tape.mutable_value(reward)(r, p) = static_cast<T>(rewards_(example[r], numbers_.first(n) + p));
    return row_sums(multiply(prefixes, reward));
  }
  const Array<double>& rewards_;
  SequenceNumbers numbers_;
};

/// The right answers [B, A] of words, -1 pads; then the end mark `end`, if the limit of `longest` words allows it. Exact: 1
/// for the whole answer, and the gate is the weight of having been right so far. Otherwise each right step pays the same share
/// of 1, and the gate is the weight of writing still.
template <class T>
class RightAnswer final : public SequenceRewards<T> {
 public:
  RightAnswer(Array<int> answer, int end, int longest, bool exact)
      : answer_(std::move(answer)), end_(end), longest_(longest), exact_(exact) {}
  Var<T> paid(int t, Var<T> gate, Var<T> w, std::span<const int> example) const override {
    auto& tape = *gate.tape;
    const auto pays = tape.constant(gate.rows(), 1);
    for (std::size_t r = 0; r < gate.rows(); ++r) {
      const int last = steps(example[r]);
      tape.mutable_value(pays)(r, 0) = exact_ ? T(t == last) : T(t <= last) / static_cast<T>(last);
    }
    return multiply(pays, multiply(gate, right(t, w, example)));
  }
  Var<T> next(int t, Var<T> gate, Var<T> w, std::span<const int> example) const override {
    return multiply(gate, exact_ ? right(t, w, example) : affine(slice_columns(w, end_, 1), T{-1}, T{1}));
  }

 private:
  /// Steps of the right answer, with its end mark.
  int steps(int b) const { return std::min(static_cast<int>(answer_of(answer_, b).size()) + 1, longest_); }
  /// [N, 1] the weight of the right option at step t.
  Var<T> right(int t, Var<T> w, std::span<const int> example) const {
    std::vector<int> row(w.rows()), option(w.rows());
    for (std::size_t r = 0; r < row.size(); ++r) {
      const auto words = answer_of(answer_, example[r]);
      row[r] = static_cast<int>(r);
      option[r] = t <= static_cast<int>(words.size()) ? words[t - 1] : end_;
    }
    return pick(w, std::span<const int>(row), std::span<const int>(option));
  }
  Array<int> answer_;
  int end_, longest_;
  bool exact_;
};

}  // namespace hardgrad
