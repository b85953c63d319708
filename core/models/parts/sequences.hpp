// Sequences of inputs with bits as answers: the input and the wanted answer of each step.
//
// Fields of a batch: reals "input" [B, T, I]; integers "answer" [B, T, O] bits, -1 at steps without an answer; "length" [B]
// steps.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/models/batch.hpp"
#include "core/models/parts/states.hpp"

namespace hardgrad {

/// The batch must outlive the object.
template <class T>
class Sequences {
 public:
  explicit Sequences(const Batch& batch)
      : input_(batch.numbers("input")), answer_(batch.ints("answer")), length_(batch.ints("length").storage()) {}

  /// Steps of the longest example.
  std::size_t steps() const { return length_.empty() ? 0 : *std::max_element(length_.begin(), length_.end()); }
  /// A predicate for States::only: whether an example has a step t.
  auto have(std::size_t t) const {
    return [this, t](int b) { return static_cast<std::size_t>(length_[b]) > t; };
  }
  /// x_t of the examples [n, I].
  Var<T> x(Tape<T>& tape, std::span<const int> example, std::size_t t) const {
    return rows_of(tape, input_, example, t, [](double x) { return static_cast<T>(x); });
  }
  /// y_t of the examples [n, O]; 0 at steps without an answer.
  Var<T> y(Tape<T>& tape, std::span<const int> example, std::size_t t) const {
    return rows_of(tape, answer_, example, t, [](int y) { return y > 0 ? T{1} : T{0}; });
  }

  /// Passes to the episode the losses - sum_o log Bernoulli(y_to; sig(logit_o)) of the states with an answer at step t, and the
  /// predicted bits: O labels per step, -1 without an answer. logits [n, O].
  void answer(const States<T>& states, std::size_t t, Var<T> logits) const {
    const auto due = states.each([&](int b) { return row_of(answer_, b)[t * logits.cols()] >= 0; });
    for (std::size_t o = 0; o < logits.cols(); ++o) {
      std::vector<int> bit(states.size());
      for (std::size_t n = 0; n < bit.size(); ++n) bit[n] = due[n] ? logits.value()(n, o) > 0 : -1;
      states.predict(bit);
    }
    if (std::none_of(due.begin(), due.end(), [](int d) { return d; })) return;
    const auto loss = subtract(softplus(logits), multiply(y(*logits.tape, states.example(), t), logits));
    const auto counts = logits.tape->constant(due.size(), 1);
    std::copy(due.begin(), due.end(), logits.tape->mutable_value(counts).data);
    states.cost(scale_rows(row_sums(loss), counts));
  }

 private:
  template <class X, class F>
  static Var<T> rows_of(Tape<T>& tape, const Array<X>& field, std::span<const int> example, std::size_t t, F f) {
    const std::size_t width = extent(field, 2);
    const auto out = tape.constant(example.size(), width);
    for (std::size_t n = 0; n < example.size(); ++n) {
      const auto from = row_of(field, example[n]).subspan(t * width, width);
      std::transform(from.begin(), from.end(), tape.mutable_value(out).row(n), f);
    }
    return out;
  }

  const Array<double>& input_;
  const Array<int>& answer_;
  const std::vector<int>& length_;
};

}  // namespace hardgrad
