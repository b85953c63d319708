#include "core/estimator/coupling/dirichlet_copula.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace hardgrad {
namespace {

template <class X>
X positive_power(X x, int n) {
  if (x <= 0) return 0;
  X result = 1;
  for (; n > 0; n /= 2, x *= x)
    if (n % 2) result *= x;
  return result;
}

}  // namespace

double DirichletCopula::level(double a) const { return a <= 0 ? 1 : -std::expm1(std::log(a) / (members_ - 1)); }
double DirichletCopula::power(double x) const { return positive_power(x, members_ - 1); }
double DirichletCopula::pair(double a, double b) const { return power(1 - level(a) - level(b)); }

// (pair(q, q) - q^2) / (q (1 - q)), divided through by q so that small q do not cancel.
double DirichletCopula::correlation(double q) const {
  const double root = 1 - level(q);
  return (power((2 * root - 1) / root) - q) / (1 - q);
}

// P(m) = C(K, m) sum_j (-1)^j C(K - m, j) (1 - (m + j) t)_+^(K-1), t = level(q). In long double, because terms cancel: at
// 32 members the error is 1e-11, at 24 it is 1e-12.
std::vector<double> DirichletCopula::counts(double q) const {
  const int K = members_;
  const long double t = q <= 0 ? 1 : -std::expm1(std::log(static_cast<long double>(q)) / (K - 1));
  std::vector<double> law(K + 1);
  long double choose = 1;  // C(K, m)
  for (int m = 0; m <= K; ++m) {
    long double sum = 0, term = 1;  // (-1)^j C(K - m, j)
    for (int j = 0; j <= K - m && (m + j) * t < 1; ++j) {
      sum += term * positive_power(1 - (m + j) * t, K - 1);
      term *= -static_cast<long double>(K - m - j) / (j + 1);
    }
    law[m] = static_cast<double>(std::max(choose * sum, 0.0L));
    choose = choose * (K - m) / (m + 1);
  }
  const double total = std::accumulate(law.begin(), law.end(), 0.0);
  for (double& p : law) p /= total;
  return law;
}

// One number after the other: of those before it we know d_k in [low_k, high_k), a signed sum over the corners of a box.
void DirichletCopula::draw_intervals(std::span<const double> edge, std::span<int> interval, Randomness& random,
                                     Draw where) const {
  struct Corner {
    double sign, sum;
  };
  const std::size_t S = edge.size() - 1;
  std::vector<double> t(S + 1), p(S);
  for (std::size_t i = 0; i <= S; ++i) t[i] = i == S ? 0 : level(edge[i]);
  std::vector<Corner> corners{{1, 0}};
  for (int& drawn : interval) {
    double above = 0;  // P(numbers before as drawn, and this one's u <= edge[i]); nothing is at most 0
    for (std::size_t i = 0; i < S; ++i) {
      double next = 0;
      for (const auto& c : corners) next += c.sign * power(1 - c.sum - t[i + 1]);
      p[i] = edge[i + 1] > edge[i] ? std::max(next - above, 0.0) : 0;
      above = next;
    }
    double total = std::accumulate(p.begin(), p.end(), 0.0);
    if (!(total > 0))  // what was drawn before is rarer than rounding errors
      for (std::size_t i = 0; i < S; ++i) total += p[i] = edge[i + 1] - edge[i];
    for (double& probability : p) probability /= total;
    drawn = random.categorical(p, where);
    ++where.index;
    const auto before = std::exchange(corners, {});
    for (const auto& c : before)
      for (const auto& next : {Corner{c.sign, c.sum + t[drawn + 1]}, Corner{-c.sign, c.sum + t[drawn]}})
        if (next.sum < 1) corners.push_back(next);
  }
}

}  // namespace hardgrad
