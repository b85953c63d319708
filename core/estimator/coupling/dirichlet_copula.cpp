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

DirichletCopula::Level DirichletCopula::level(Edge a) const {
  if (a.below <= 0) return {1, 0};
  const double log_root = (a.below < a.above ? std::log(a.below) : std::log1p(-a.above)) / (members_ - 1);
  return {-std::expm1(log_root), a.below < a.above ? root(a.below) : std::exp(log_root)};
}
double DirichletCopula::root(double a) const {
  return members_ == 2 ? a : members_ == 3 ? std::sqrt(a) : std::pow(a, 1.0 / (members_ - 1));
}
double DirichletCopula::power(double x) const { return positive_power(x, members_ - 1); }

double DirichletCopula::between(Level sum, Level low, Level high) const {
  const double a = left(sum, high), b = left(sum, low);
  if (b <= 0) return power(a);
  const double width = low.level < 0.5 ? low.level - high.level : high.root - low.root;
  double terms = 1, b_power = 1;  // a^(n-1) + a^(n-2) b + ... + b^(n-1), n = K - 1
  for (int i = 1; i < members_ - 1; ++i) terms = terms * a + (b_power *= b);
  return width * terms;
}

// P(d_k in [from_k, to_k) for some k) is a difference over the corners of a box of (x)_+^n, x = 1 - sum, n = K - 1. If no
// corner has x < 0 it is n! times the coefficient of z^n in
//
//   e^(x z) prod_k (e^(w_k z) - 1),   x of the corner of all to_k, w_k = to_k - from_k
//
// a sum of positive terms, as good for rare intervals as for others. (Of to_k = 1 there is no upper corner: x has from_k
// instead, and no factor.) Else the signed sum is taken.
class DirichletCopula::Known {
 public:
  explicit Known(const DirichletCopula& copula) : copula_(copula), series_(copula.members_) { series_[0] = 1; }

  double next(Level low, Level high) const {
    const auto sum = plus(least_, low.root > 0 ? low : high);
    if (sum.root >= 0) return coefficient(series(low, high), sum.root);
    double p = 0;
    for (const auto& c : corners_) p += c.sign * copula_.between(c.sum, low, high);
    return std::max(p, 0.0);
  }
  /// Everything is scaled by 1 / probability, that of the draw.
  void take(Level low, Level high, double probability) {
    series_ = series(low, high);
    for (double& c : series_) c /= probability;
    least_ = plus(least_, low.root > 0 ? low : high);
    const auto before = std::exchange(corners_, {});
    for (const auto& c : before)
      for (const auto& next : {Corner{c.sign, plus(c.sum, high)}, Corner{-c.sign, plus(c.sum, low)}})
        if (next.sum.root > 0) corners_.push_back({next.sign / probability, next.sum});
  }

 private:
  struct Corner {
    double sign;
    Level sum;
  };
  /// [K] coefficients of the product with one more interval's factor.
  std::vector<double> series(Level low, Level high) const {
    if (!(low.root > 0)) return series_;
    const double width = low.level < 0.5 ? low.level - high.level : high.root - low.root;
    std::vector<double> product(series_.size());
    for (std::size_t k = 0; k < series_.size(); ++k) {
      double term = 1;  // width^j / j!
      for (std::size_t j = 1; k + j < series_.size(); ++j) {
        term *= width / static_cast<double>(j);
        product[k + j] += series_[k] * term;
      }
    }
    return product;
  }
  /// n! times that of z^n, with the factor e^(x z).
  static double coefficient(const std::vector<double>& series, double x) {
    double sum = 0, falling = 1;  // n! / (n - k)!, by Horner's scheme from the highest power of x
    for (std::size_t k = 0, n = series.size() - 1; k <= n; ++k) {
      sum = sum * x + falling * series[k];
      falling *= static_cast<double>(n - k);
    }
    return sum;
  }
  const DirichletCopula& copula_;
  std::vector<double> series_;  // [K]
  Level least_;                 // of the corner with the least x
  std::vector<Corner> corners_{{1, {}}};
};

double DirichletCopula::box(Edge a_low, Edge a_high, Edge b_low, Edge b_high) const {
  Known known(*this);
  known.take(level(a_low), level(a_high), 1);
  return known.next(level(b_low), level(b_high));
}

// (pair(q, q) - q^2) / (q (1 - q)), divided through by q so that small q do not cancel.
double DirichletCopula::correlation(double q) const {
  const double r = root(q);
  return (power((2 * r - 1) / r) - q) / (1 - q);
}

// P(m) = sum_{n >= m} C(K, m) C(K - m, n - m) (-1)^(n - m) P(n numbers are at most q).
DirichletCopula::DirichletCopula(int members) : members_(members), sign_((members + 1) * (members + 1)) {
  long double choose = 1;  // C(K, m)
  for (int m = 0; m <= members; ++m) {
    long double term = choose;
    for (int n = m; n <= members; ++n) {
      sign_[m * (members + 1) + n] = term;
      term *= -static_cast<long double>(members - n) / (n - m + 1);
    }
    choose = choose * (members - m) / (m + 1);
  }
}

// The probability that n are at most q is (1 - n t)_+^(K-1), t = level(q), which is 1 - n (1 - r) with r = root(q): for n = 1
// it is q itself.
template <class X>
void DirichletCopula::counts(double q, X r, std::span<double> law) const {
  X below[most + 1] = {1, static_cast<X>(q)};
  int last = 1;
  for (; last < members_ && 1 - (last + 1) * (1 - r) > 0; ++last)
    below[last + 1] = positive_power(1 - (last + 1) * (1 - r), members_ - 1);
  for (int m = 0; m <= members_; ++m) {
    X sum = 0;
    for (int n = m; n <= last; ++n) sum += static_cast<X>(sign_[m * (members_ + 1) + n]) * below[n];
    law[m] = static_cast<double>(std::max(sum, X{0}));
  }
}

// Terms cancel. In double the error is 1e-13 at 8 members; beyond, in long double, it is 1e-12 at 24 and 1e-11 at 32.
void DirichletCopula::counts(double q, std::span<double> law) const {
  if (members_ <= 8)
    counts(q, root(q), law);
  else
    counts(q, std::pow(static_cast<long double>(q), 1.0L / (members_ - 1)), law);
  const double share = 1 / std::accumulate(law.begin(), law.end(), 0.0);
  for (double& p : law) p *= share;
}

void DirichletCopula::draw_intervals(std::span<const Edge> edge, std::span<int> interval, Randomness& random,
                                     Draw where) const {
  const std::size_t S = edge.size() - 1;
  std::vector<Level> t(S + 1);
  std::vector<double> p(S);
  for (std::size_t i = 0; i <= S; ++i) t[i] = i == S ? Level{} : level(edge[i]);
  Known known(*this);
  for (int& drawn : interval) {  // one number after the other
    for (std::size_t i = 0; i < S; ++i) p[i] = known.next(t[i], t[i + 1]);
    double total = std::accumulate(p.begin(), p.end(), 0.0);
    if (!(total > 0))  // what was drawn before is rarer than rounding errors
      for (std::size_t i = 0; i < S; ++i) total += p[i] = length(edge[i], edge[i + 1]);
    for (double& probability : p) probability /= total;
    drawn = random.categorical(p, where);
    known.take(t[drawn], t[drawn + 1], p[drawn]);
    ++where.index;
  }
}

}  // namespace hardgrad
