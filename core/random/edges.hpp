// Points of [0, 1] with full precision at both ends. In a cumulative sum, the last probabilities may be far smaller than the
// rounding error of a number near 1.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

namespace hardgrad {

/// A point `below` and its complement `above` = 1 - `below`. The smaller of the two has full precision.
struct Edge {
  double below = 0, above = 1;

  friend bool operator<(const Edge& a, const Edge& b) {
    return a.below < 0.5 && b.below < 0.5 ? a.below < b.below : a.above > b.above;
  }
  friend bool operator==(const Edge& a, const Edge& b) { return !(a < b) && !(b < a); }
};

/// The length of the interval from a to b.
inline double length(const Edge& a, const Edge& b) { return b.below < 0.5 ? b.below - a.below : a.above - b.above; }

/// [S + 1] the cumulative sums of S probabilities, normalised to sum to 1.
inline std::vector<Edge> cumulated(std::span<const double> p) {
  const std::size_t S = p.size();
  std::vector<Edge> edge(S + 1, {0, 0});
  for (std::size_t i = 0; i < S; ++i) {
    edge[i + 1].below = edge[i].below + p[i];
    edge[S - 1 - i].above = edge[S - i].above + p[S - 1 - i];
  }
  for (const double below = edge[S].below, above = edge[0].above; Edge & e : edge)
    e = {std::min(1.0, e.below / below), std::min(1.0, e.above / above)};
  return edge;
}

}  // namespace hardgrad
