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
#include "core/models/parts/indices.hpp"
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

}  // namespace hardgrad
