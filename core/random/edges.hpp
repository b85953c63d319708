// Points of [0, 1] that keep their digits at both ends: where probabilities are cumulated, the last ones may be far smaller
// than the rounding of a number next to 1.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

namespace hardgrad {

/// A point with what is left of 1 above it: one of the two is small, and has all its digits.
struct Edge {
  double below = 0, above = 1;

  friend bool operator<(const Edge& a, const Edge& b) {
    return a.below < 0.5 && b.below < 0.5 ? a.below < b.below : a.above > b.above;
  }
  friend bool operator==(const Edge& a, const Edge& b) { return !(a < b) && !(b < a); }
};

/// From a up to b.
inline double length(const Edge& a, const Edge& b) { return b.below < 0.5 ? b.below - a.below : a.above - b.above; }

/// [S + 1] the ends of S probabilities, one behind the other and scaled to sum to 1.
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
