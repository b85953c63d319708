// Tapes: an input tape that is read at a head, and an output tape that is written symbol by symbol.
//
// Fields of a batch as in sequences.hpp. The steps without an answer are the cells of the input tape, in order. The steps with
// an answer are the wanted symbols, each a vector of bits. The number of symbols written is given as weights, 1 at one number
// if choices are hard. Heads: memory_tape.hpp.
#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "core/autodiff/attention.hpp"
#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/models/batch.hpp"
#include "core/models/parts/memory_tape.hpp"

namespace hardgrad {

/// A circle of N cells for every example: its inputs, then blank cells of zeros.
template <class T>
class InputTape {
 public:
  InputTape(Tape<T>& tape, const Batch& batch, std::size_t cells) : cells_(static_cast<std::size_t>(batch.examples()), cells) {
    const auto& input = batch.numbers("input");
    const auto& answer = batch.ints("answer");
    const auto I = extent(input, 2), O = extent(answer, 2);
    shown_ = tape.constant(cells_.total(), I);
    for (int b = 0; b < batch.examples(); ++b)
      for (int t = 0, k = 0; t < batch.ints("length")(b); ++t)
        if (row_of(answer, b)[t * O] < 0)
          std::copy_n(row_of(input, b).begin() + static_cast<std::ptrdiff_t>(t * I), I,
                      tape.mutable_value(shown_).row(cells_.row(b, k++)));
  }
  /// The cells under the heads: [n, I]
  Var<T> read(const TapeHead<T>& head, std::span<const int> example) const { return head.read(shown_, example); }

 private:
  Items cells_;
  Var<T> shown_;  // [B N, I]
};

/// The wanted symbols y_1..y_L, to be written in order within T steps. u [n, S + 1] are the weights of the number of symbols
/// written; S is the largest L.
template <class T>
class OutputTape {
 public:
  /// `steps` [B]: T of each example.
  OutputTape(Tape<T>& tape, const Batch& batch, std::vector<int> steps) : steps_(std::move(steps)) {
    const auto& answer = batch.ints("answer");
    const auto O = extent(answer, 2);
    std::vector<int> count(steps_.size());
    std::vector<T> bits;
    for (std::size_t b = 0; b < count.size(); ++b)
      for (int t = 0; t < batch.ints("length")(b); ++t)
        if (const auto y = row_of(answer, b).subspan(t * O, O); y[0] >= 0) {
          ++count[b];
          bits.insert(bits.end(), y.begin(), y.end());
        }
    symbols_ = Items(count);
    wanted_ = tape.constant(symbols_.total(), O);
    std::copy(bits.begin(), bits.end(), tape.mutable_value(wanted_).data);
  }
  std::size_t most() const { return symbols_.most(); }

  /// The choices that a state has at step t = 1..T after writing u: `writes` if it may write but need not, `goes_on` if another
  /// step follows.
  struct Free {
    bool writes, goes_on;
  };
  std::vector<Free> free(Var<T> u, std::span<const int> example, int t) const {
    std::vector<Free> all;
    for (std::size_t n = 0; n < example.size(); ++n) {
      const int left = steps_[example[n]] - t + 1, L = symbols_.count(example[n]);
      bool writes = false;
      for (int k = 0; k < L; ++k) writes = writes || (u.value()(n, k) > 0 && L - k < left);
      all.push_back({writes, left > 1});
    }
    return all;
  }
  /// The next symbol, sum_k u_k y_{k+1} [n, O].
  Var<T> next(Var<T> u, std::span<const int> example) const {
    return mix(slice_columns(u, 0, most()), wanted_, example, symbols_);
  }
  /// - sum_k w_k log Bernoulli(y_k; sig(logits)) with the weights `written` [n, S] of the symbols, which sum to `writes` [n, 1]:
  /// logits [n, O] -> [n, 1].
  Var<T> loss(Var<T> logits, Var<T> written, Var<T> writes, std::span<const int> example) const {
    const auto y = mix(written, wanted_, example, symbols_);  // sum_k w_k y_k
    return row_sums(subtract(scale_rows(softplus(logits), writes), multiply(logits, y)));
  }
  /// [n, S] the weight with which each symbol is written at step t, from the weight `writes` [n, 1] of writing. It is u where
  /// as many symbols as steps are left.
  Var<T> written(Var<T> u, Var<T> writes, std::span<const int> example, int t) const {
    const auto must = [&](int b, int k) { return symbols_.count(b) - k >= steps_[b] - t + 1; };
    const auto forced = filled(*u.tape, example, must);
    const auto open = filled(*u.tape, example, [&](int b, int k) { return !must(b, k); });
    return multiply(slice_columns(u, 0, most()), add(forced, scale_rows(open, writes)));
  }
  /// u after writing `written` [n, S].
  Var<T> moved(Var<T> u, Var<T> written) const {
    const auto none = u.tape->constant(u.rows(), 1);
    return add(subtract(u, concat_columns({written, none})), concat_columns({none, written}));
  }
  /// [n] 1 for the states with symbols left to write after step t.
  std::vector<char> unfinished(Var<T> u, std::span<const int> example, int t) const {
    std::vector<char> all(example.size());
    for (std::size_t n = 0; n < all.size(); ++n)
      for (int k = 0; k < symbols_.count(example[n]); ++k)
        if (t < steps_[example[n]] && u.value()(n, k) > 0) all[n] = 1;
    return all;
  }

 private:
  /// [n, S] 1 where the example has a symbol k and f(example, k) holds.
  template <class F>
  Var<T> filled(Tape<T>& tape, std::span<const int> example, F f) const {
    const auto x = tape.constant(example.size(), most());
    for (std::size_t n = 0; n < example.size(); ++n)
      for (int k = 0; k < symbols_.count(example[n]); ++k) tape.mutable_value(x)(n, k) = f(example[n], k);
    return x;
  }

  std::vector<int> steps_;  // [B] T
  Items symbols_;
  Var<T> wanted_;  // [symbols, O]
};

}  // namespace hardgrad
