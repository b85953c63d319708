// Heads on circular tapes, and a memory tape that they read and write. With hard choices a head is at one cell, and nothing is
// copied: a state knows where the newest value of each cell is. Relaxed, a head is at all cells, with weights.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/autodiff/attention.hpp"
#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/models/batch.hpp"
#include "core/models/parts/histories.hpp"
#include "core/models/parts/memories.hpp"

namespace hardgrad {

/// A head of each of n states, on a tape of N cells.
template <class T>
class TapeHead {
 public:
  TapeHead() = default;
  /// At the first cell.
  TapeHead(std::size_t n, std::size_t N) : cells_(N), at_(n) {}
  /// At all cells, with these weights [n, N].
  explicit TapeHead(Var<T> weights) : cells_(weights.cols()), weights_(weights) {}

  /// True if it is at one cell, number at()[n].
  bool hard() const { return !weights_; }
  const std::vector<int>& at() const { return at_; }
  /// [n, N] 1 at its cell; or the weights of all cells.
  Var<T> weights(Tape<T>& tape) const {
    if (!hard()) return weights_;
    const auto ones = tape.constant(at_.size(), cells_);
    for (std::size_t n = 0; n < at_.size(); ++n) tape.mutable_value(ones)(n, at_[n]) = 1;
    return ones;
  }
  TapeHead after(const States<T>& i) const {
    auto next = *this;
    if (hard())
      next.at_ = taken(at_, i.histories().parent);
    else
      next.weights_ = i.after(weights_);
    return next;
  }
  /// It stays, moves right or left with the weights `moves` [n, 3] of the choice i.
  TapeHead moved(const States<T>& i, Var<T> moves) const {
    if (hard() && i.hard()) {
      std::vector<int> distance;
      for (std::size_t n = 0; n < at_.size(); ++n) {
        const T* move = moves.value().row(n);
        distance.push_back(move[1] > 0 ? 1 : move[2] > 0 ? -1 : 0);
      }
      return moved(distance);
    }
    const auto go = [&](std::size_t move) { return slice_columns(moves, move, 1); };
    return TapeHead(circular_shift(weights(*moves.tape), concat_columns({go(2), go(0), go(1)})));
  }
  /// The hard head moves `distance` [n] cells to the right, at most one tape to the left.
  TapeHead moved(const std::vector<int>& distance) const {
    const int N = static_cast<int>(cells_);
    auto next = *this;
    for (std::size_t n = 0; n < at_.size(); ++n) next.at_[n] = (at_[n] + distance[n] + N) % N;
    return next;
  }
  /// sum_i w_i x_i of the cells x [B N, I] of each state's example: [n, I]
  Var<T> read(Var<T> x, std::span<const int> example) const {
    if (!hard()) return mix(weights_, x, example, Items(x.rows() / cells_, cells_));
    std::vector<int> row(at_.size());
    for (std::size_t n = 0; n < row.size(); ++n) row[n] = example[n] * static_cast<int>(cells_) + at_[n];
    return gather_rows(x, std::span<const int>(row));
  }

 private:
  std::size_t cells_ = 0;
  std::vector<int> at_;  // [n]
  Var<T> weights_;       // [n, N], if it is not hard
};

/// Memory tapes of n states: N cells of W numbers, at first 0.
template <class T>
class MemoryTape {
 public:
  MemoryTape() = default;
  MemoryTape(Tape<T>& tape, std::size_t n, std::size_t N, std::size_t W)
      : N_(N),
        values_{tape.constant(1, W)},
        rows_(1),
        newest_(std::make_shared<const std::vector<int>>(n * N, 0)),
        of_(range(n)) {}

  MemoryTape after(const States<T>& i) const {
    auto next = *this;
    if (mixed_)
      next.mixed_ = mixed_->after(i);
    else
      next.of_ = taken(of_, i.histories().parent);
    return next;
  }
  /// sum_i w_i M_i with the head's weights w: [n, W]
  Var<T> read(const TapeHead<T>& head) const {
    return reads_values(head) ? newest(head.at()) : mixed().read(head.weights(tape()));
  }
  /// M_i + w_i g (.) (v - M_i): g and v [n, W]; `under` is the value that the head reads.
  MemoryTape written(const TapeHead<T>& head, Var<T> under, Var<T> g, Var<T> v) const {
    if (reads_values(head)) return put(head.at(), add(under, multiply(g, subtract(v, under))));
    auto next = *this;
    next.mixed_ = mixed().written(head.weights(tape()), g, multiply(g, v));
    return next;
  }
  /// M_i + (w_{i-1} + w_{i+1}) x: x [n, W] is added to the cells beside the head.
  MemoryTape added_beside(const TapeHead<T>& head, Var<T> x) const {
    if (reads_values(head)) {
      const auto beside = [&](int distance) { return head.moved(std::vector<int>(x.rows(), distance)).at(); };
      const auto left = beside(-1), right = beside(1);
      return put(left, add(newest(left), x)).put(right, add(newest(right), x));
    }
    const auto sides = tape().constant(x.rows(), 3), nothing = tape().constant(x.rows(), x.cols());
    for (std::size_t n = 0; n < x.rows(); ++n) tape().mutable_value(sides)(n, 0) = tape().mutable_value(sides)(n, 2) = 1;
    auto next = *this;
    next.mixed_ = mixed().written(circular_shift(head.weights(tape()), sides), nothing, x);
    return next;
  }

 private:
  Tape<T>& tape() const { return *values_[0].tape; }
  bool reads_values(const TapeHead<T>& head) const { return head.hard() && !mixed_; }
  /// The number of the newest value of cell i of state n.
  int number(std::size_t n, int i) const { return (*newest_)[of_[n] * N_ + i]; }
  /// The values of cell at[n] of each state.
  Var<T> newest(const std::vector<int>& at) const {
    std::vector<int> row(at.size());
    for (std::size_t n = 0; n < at.size(); ++n) row[n] = number(n, at[n]);
    return gather_rows(std::span<const Var<T>>(values_), std::span<const int>(row));
  }
  /// With the values x [n, W] in the cells at[n].
  MemoryTape put(const std::vector<int>& at, Var<T> x) const {
    std::vector<int> all(at.size() * N_);
    for (std::size_t n = 0; n < at.size(); ++n) {
      std::copy_n(newest_->begin() + of_[n] * N_, N_, all.begin() + n * N_);
      all[n * N_ + at[n]] = rows_ + static_cast<int>(n);
    }
    auto next = *this;
    next.values_.push_back(x);
    next.rows_ += static_cast<int>(at.size());
    next.newest_ = std::make_shared<const std::vector<int>>(std::move(all));
    next.of_ = range(at.size());
    return next;
  }
  /// All cells of each state, as a head at many cells needs them.
  Memories<T> mixed() const {
    if (mixed_) return *mixed_;
    std::vector<int> row;
    for (std::size_t n = 0; n < of_.size(); ++n)
      for (std::size_t i = 0; i < N_; ++i) row.push_back(number(n, static_cast<int>(i)));
    return {gather_rows(std::span<const Var<T>>(values_), std::span<const int>(row)), N_};
  }

  std::size_t N_ = 0;
  std::vector<Var<T>> values_;                      // a row of 0, then the values written at each step
  int rows_ = 0;                                    // of all of them
  std::shared_ptr<const std::vector<int>> newest_;  // [P N] the row that each cell of P memories has
  std::vector<int> of_;                             // [n] which of the P memories
  std::optional<Memories<T>> mixed_;                // instead, once a head was at many cells
};

// Tapes: an input tape that is read at a head, and an output tape that is written symbol by symbol.
//
// Fields of a batch as of the Turing machine. The steps without an answer are the cells of the input tape, in order. The steps
// with an answer are the wanted symbols, each a vector of bits. The number of symbols written is given as weights, 1 at one number
// if choices are hard.

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
