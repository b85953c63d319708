// Memories of a run's states (core/autodiff/attention.hpp): N cells of W numbers for each. After a choice a state reads the memory
// of the state before; cells are copied only when they are written.
#pragma once

#include <span>
#include <vector>

#include "core/autodiff/attention.hpp"
#include "core/models/parts/states.hpp"

namespace hardgrad {

template <class T>
class Memories {
 public:
  Memories() = default;
  /// n states, each with its own rows of `cells` [n N, W].
  Memories(Var<T> cells, std::size_t N) : cells_(cells), N_(N), of_(range(cells.rows() / N)) {}

  /// Those of the states after a choice.
  Memories after(const States<T>& i) const {
    auto next = *this;
    next.of_ = taken(of_, i.histories().parent);
    return next;
  }

  /// sum_i w_i^h M_i of H heads: w [n H, N] -> [n H, W]
  Var<T> read(Var<T> w) const { return mix(w, cells_, each_head(w), items()); }
  /// q^h . M_i: q [n H, W] -> [n H, N]
  Var<T> dots(Var<T> q) const { return dot_scores(q, cells_, each_head(q), items()); }
  /// cos(q^h, M_i): q [n H, W] -> [n H, N]
  Var<T> cosines(Var<T> q, T floor) const { return hardgrad::cosines(q, cells_, std::span<const int>(of_), N_, floor); }
  /// The memories after heads wrote to them: w [n H, N], erase and add [n H, W].
  Memories written(Var<T> w, Var<T> erase, Var<T> add) const {
    return {write_cells(cells_, std::span<const int>(of_), w, erase, add), N_};
  }

 private:
  /// The memory of each head.
  std::vector<int> each_head(Var<T> x) const {
    std::vector<int> memory(x.rows());
    for (std::size_t h = 0; h < memory.size(); ++h) memory[h] = of_[h * of_.size() / memory.size()];
    return memory;
  }
  Items items() const { return {cells_.rows() / N_, N_}; }

  Var<T> cells_;  // [P N, W]
  std::size_t N_ = 0;
  std::vector<int> of_;  // [n] which of the P memories
};

}  // namespace hardgrad
