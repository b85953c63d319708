// Dirichlet noise: the copula, and categories whose noise is swapped.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "core/estimator/coupling/coupled_estimator.hpp"
#include "core/random/edges.hpp"
#include "core/random/randomness.hpp"

namespace hardgrad {

// The Dirichlet copula: K numbers, each uniform on (0, 1), every two of them negatively dependent.
//
//   u_k = (1 - d_k)^(K-1),   d ~ Dirichlet(1, ..., 1): the spacings of K - 1 uniform points
//
// By inclusion and exclusion, P(d_k > t_k for all k) = (1 - sum_k t_k)_+^(K-1) gives the distribution of any discrete function
// of the u_k. Such functions are drawn directly, without drawing u. For K = 2 it is the antithetic pair u, 1 - u.
// Dimitriev & Zhou 2021, ARMS: antithetic-REINFORCE-multi-sample gradient for binary variables.

class DirichletCopula {
 public:
  /// Largest number of members: beyond it, the alternating sums cancel too many digits.
  static constexpr int most = 32;
  explicit DirichletCopula(int members);

  /// P(u_1 <= a and u_2 <= b).
  double pair(Edge a, Edge b) const { return power(left({}, level(a), level(b))); }
  /// P(a_low < u_1 <= a_high and b_low < u_2 <= b_high).
  double box(Edge a_low, Edge a_high, Edge b_low, Edge b_high) const;
  /// result [D] becomes the correlation of [u_1 <= q_d] and [u_2 <= q_d], for q [D] in [0, 1/2]; 0 where q is 0.
  void correlations(std::span<const double> q, std::span<double> result) const;
  /// law [D, K + 1] becomes P(exactly m of the K numbers are at most q_d), for q [D] in [0, 1/2].
  void counts(std::span<const double> q, std::span<double> law) const;
  /// For each number, draws the interval (edge[i], edge[i + 1]] that contains it; edges go from 0 to 1. Time S 2^K. Uses the
  /// index of `where` and the K - 1 following ones.
  void draw_intervals(std::span<const Edge> edge, std::span<int> interval, Randomness& random, Draw where) const;

 private:
  /// u < a is d > level; root = 1 - level.
  struct Level {
    double level = 0, root = 1;
  };
  Level level(Edge a) const;
  /// The sum of two levels.
  static Level plus(Level sum, Level t) { return {sum.level + t.level, left(sum, t)}; }
  /// 1 - sum - t, and the same with one more level.
  static double left(Level sum, Level t) { return sum.level > t.level ? sum.root - t.level : t.root - sum.level; }
  static double left(Level sum, Level s, Level t) { return left(plus(sum, s), t); }
  /// (x)_+^(K-1)
  double power(double x) const;
  /// d in [from, to): u in an interval that does not begin at 0.
  struct Interval {
    Level from, to;
    double width;
  };
  /// P(u_k in the interval from drawn[k][0] to drawn[k][1], k = 1, 2, ...).
  double together(std::span<const std::array<Level, 2>> drawn) const;
  /// The same for d_k in `intervals`, while other d exceed levels whose sum is `above`.
  double together(Level above, std::vector<Interval> intervals) const;
  double n_factorial_times_coefficient(double x, std::span<const Interval> intervals) const;
  // X is a number, or a register of numbers.
  template <class X>
  X root(X a) const;
  template <class X>
  X correlation(X q) const;
  template <class X>
  void counts(X q, X* law) const;
  int members_;
  std::vector<long double> sign_;  // [K + 1, K + 1] coefficients of inclusion and exclusion
};

// Categories from Dirichlet noise, and the pseudo actions obtained by swapping two of its coordinates.
//
// z = argmin_i pi_i / p_i has the law p if pi ~ Dirichlet(1, ..., 1). Swapping coordinates c and j keeps the law of pi, so
//    z^{c <-> j} has the law p, too.
// Yin, Yue & Zhou 2019, ARSM: augment-REINFORCE-swap-merge estimator.

/// pi [S] ~ Dirichlet(1, ..., 1) for a choice with probabilities p [S]. Uses S - 1 indices from that
/// of `where` on.
void draw_dirichlet(std::span<const double> p, std::span<double> pi, Randomness& random, Draw where);
/// z^{c <-> j}; c = j is the true action z.
int swapped_action(std::span<const double> p, std::span<const double> pi, std::size_t c, std::size_t j);

/// Largest number of options for which the swaps are affordable.
inline constexpr int most_swapped_options = 64;
inline constexpr Need few_enough_to_swap =
    need::options(most_swapped_options, "their swaps make up to S (S - 1) / 2 rows each");

}  // namespace hardgrad
