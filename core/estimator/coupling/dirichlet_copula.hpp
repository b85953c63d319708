// The Dirichlet copula: K numbers, each uniform on (0, 1), every two of them negatively dependent.
//
//   u_k = (1 - d_k)^(K-1),   d ~ Dirichlet(1, ..., 1): the spacings of K - 1 uniform points
//
// P(d_k > t_k for all k) = (1 - sum_k t_k)_+^(K-1) gives the laws of all discrete things made of the u_k by inclusion and
// exclusion, so that these are drawn without drawing any u. For K = 2 it is the antithetic pair u, 1 - u.
// Dimitriev & Zhou 2021, ARMS: antithetic-REINFORCE-multi-sample gradient for binary variables.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "core/random/edges.hpp"
#include "core/random/randomness.hpp"

namespace hardgrad {

class DirichletCopula {
 public:
  /// Up to `most` members: beyond it the alternating sums cancel too many digits.
  static constexpr int most = 32;
  explicit DirichletCopula(int members);

  /// P(u_1 <= a and u_2 <= b).
  double pair(Edge a, Edge b) const { return power(left({}, level(a), level(b))); }
  /// P(a_low < u_1 <= a_high and b_low < u_2 <= b_high).
  double box(Edge a_low, Edge a_high, Edge b_low, Edge b_high) const;
  /// Correlation of [u_1 <= q] and [u_2 <= q], for q in (0, 1/2].
  double correlation(double q) const;
  /// law [K + 1] becomes P(exactly m of the K numbers are at most q), for q in [0, 1/2].
  void counts(double q, std::span<double> law) const;
  /// For each number, in which of the intervals (edge[i], edge[i + 1]] it falls; edges go from 0 to 1. Takes time
  /// S 2^K. Draws have the index of `where` and K - 1 more.
  void draw_intervals(std::span<const Edge> edge, std::span<int> interval, Randomness& random, Draw where) const;

 private:
  /// u < a is d > level; root = 1 - level.
  struct Level {
    double level = 0, root = 1;
  };
  Level level(Edge a) const;
  /// Of sums of levels.
  static Level plus(Level sum, Level t) { return {sum.level + t.level, left(sum, t)}; }
  /// 1 - sum - t, and with one more.
  static double left(Level sum, Level t) { return sum.level > t.level ? sum.root - t.level : t.root - sum.level; }
  static double left(Level sum, Level s, Level t) { return left(plus(sum, s), t); }
  /// (x)_+^(K-1)
  double power(double x) const;
  /// d in [from, to): u in an interval that does not reach down to 0.
  struct Interval {
    Level from, to;
    double width;
  };
  /// P(u_k in the interval from drawn[k][0] to drawn[k][1], k = 1, 2, ...).
  double together(std::span<const std::array<Level, 2>> drawn) const;
  /// The same of d_k in the intervals; and some others above levels whose sum is `above`.
  double together(Level above, std::vector<Interval> intervals) const;
  double n_factorial_times_coefficient(double x, std::span<const Interval> intervals) const;
  double root(double a) const;
  template <class X>
  void counts(double q, X root, std::span<double> law) const;
  int members_;
  std::vector<long double> sign_;  // [K + 1, K + 1] of inclusion and exclusion
};

}  // namespace hardgrad
