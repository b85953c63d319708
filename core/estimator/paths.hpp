// Sums along paths: what complete sets of choices cost and how probable they are, whatever rows they run through.
#pragma once

#include <span>
#include <vector>

#include "core/choice/episode.hpp"

namespace hardgrad {

/// N paths through a run: path n passes row[t][n] of the rows that choice `from + t` made.
struct Paths {
  int from = 0;
  int column = -1;                    ///< of columns side by side, the one these paths are of; -1: all
  std::vector<int> example;           ///< [N]
  std::vector<std::vector<int>> row;  ///< [choices][N]

  std::size_t size() const { return example.size(); }
  /// [N] which of `rows` they pass; null if they pass none.
  const std::vector<int>* through(const Rows& rows) const;
};

/// Path n passes row n wherever it goes: of a run whose rows go on by themselves, `copies` of each example.
template <class T>
Paths paths_side_by_side(const Episode<T>& episode, int copies);

/// The paths from the root to all rows that choice `step` made, where every choice on the way goes on from the one before.
template <class T>
Paths paths_to(const Episode<T>& episode, int step);

/// Adds weight x what paths pass of x ([R, 1], or [R, D] by column) to their numbers [N], or to each of their columns [N, D].
template <class T>
void accumulate(Var<T> x, const std::vector<int>& row, std::span<double> total, double weight = 1);

/// The costs on the way, summed [N, 1]; those before any choice only if `with_root`.
template <class T>
Var<T> path_cost(const Episode<T>& episode, const Paths& paths, bool with_root);
/// The same as numbers, summed in double.
template <class T>
std::vector<double> path_cost_values(const Episode<T>& episode, const Paths& paths, bool with_root);
/// log p of the choices on the way, summed [N, 1].
template <class T>
Var<T> path_log_probability(Episode<T>& episode, const Paths& paths);
/// The same as numbers, summed in double.
template <class T>
std::vector<double> path_log_probability_values(Episode<T>& episode, const Paths& paths);

}  // namespace hardgrad
