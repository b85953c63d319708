// Sums along paths: the cost and log probability of complete sets of choices, independent of the layout of their rows.
#pragma once

#include <span>
#include <vector>

#include "core/choice/episode.hpp"

namespace hardgrad {

/// N paths through a run: path n contains row[t][n] of the rows made by choice `from + t`.
struct Paths {
  int from = 0;
  int column = -1;                    ///< of columns side by side, the one these paths are of; -1: all
  std::vector<int> example;           ///< [N]
  std::vector<std::vector<int>> row;  ///< [choices][N]

  std::size_t size() const { return example.size(); }
  /// [N] the row of each path among `rows`; null if the paths do not contain any.
  const std::vector<int>* through(const Rows& rows) const;
};

/// Path n contains row n at every step: for a run whose rows continue one to one, with `copies` rows per example.
template <class T>
Paths paths_side_by_side(const Episode<T>& episode, int copies);

/// The paths from the root to all rows made by choice `step`. Every choice on the way must continue the previous one.
template <class T>
Paths paths_to(const Episode<T>& episode, int step);

/// Adds weight x the paths' entries of x ([R, 1], or [R, D] by column) to one total per path [N] or per path and column [N, D].
template <class T>
void accumulate(Var<T> x, const std::vector<int>& row, std::span<double> total, double weight = 1);

/// The costs along each path, summed [N, 1]; includes costs before any choice only if `with_root`.
template <class T>
Var<T> path_cost(const Episode<T>& episode, const Paths& paths, bool with_root);
/// The same as numbers, summed in double.
template <class T>
std::vector<double> path_cost_values(const Episode<T>& episode, const Paths& paths, bool with_root);
/// log p of the choices along each path, summed [N, 1].
template <class T>
Var<T> path_log_probability(Episode<T>& episode, const Paths& paths);
/// The same as numbers, summed in double.
template <class T>
std::vector<double> path_log_probability_values(Episode<T>& episode, const Paths& paths);

}  // namespace hardgrad
