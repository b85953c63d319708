// The conditional Poisson distribution: subsets S of exactly k of n options, p(S) = prod_{i in S} exp(x_i) / Z.
//
// It is the distribution of n independent bits with log odds y_i = x_i + t, given that k of them are 1, for every tilt t (Chen,
// Dempster & Liu 1994, Weighted finite population sampling to maximize entropy). With about k bits expected, k of them has a
// probability that does not underflow. So all sums are sums of probabilities, without a logarithm per entry:
//
//   U[i][j] = (1 - p_i) U[i + 1][j] + p_i U[i + 1][j + 1]      k bits in total, given j before bit i;  U[n][k] = 1
//   A[j] = P(j bits before bit i)
//   pi_i = p_i sum_j A[j] U[i + 1][j + 1] / U[0][0]            the marginals
//   Z = prod_i (1 + exp(y_i)) U[0][0] exp(-k t)
//
// Each takes O(n k). Rows go side by side in a register, one each.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "core/kernels/functions.hpp"
#include "core/support/array.hpp"
#include "core/support/error.hpp"
#include "core/support/views.hpp"

namespace hardgrad::kernels {

class ConditionalPoisson {
 public:
  using V = Batch<double>;
  static constexpr std::size_t lanes = width<double>;

  /// Rows first, first + 1, ... of x, as many as fit. Option i < options[r] of row r is possible if its logit is above -inf.
  /// picks[r] of its possible options are picked, or all if they are fewer. UsageError if none is possible.
  template <class T>
  void load(MatrixView<const T> x, std::span<const int> options, std::size_t first, SubsetSizes subset_size) {
    count_ = std::min(lanes, x.rows - first);
    options_ = most_ = 0;
    for (std::size_t lane = 0; lane < count_; ++lane) {
      options_ = std::max(options_, static_cast<std::size_t>(options[first + lane]));
      most_ = std::max(most_, static_cast<std::size_t>(subset_size[first + lane]));
      asked_[lane] = subset_size[first + lane];
    }
    x_.assign(options_ * lanes, -std::numeric_limits<double>::infinity());
    for (std::size_t lane = 0; lane < count_; ++lane) {
      const T* row = x.row(first + lane);
      for (std::size_t i = 0; i < static_cast<std::size_t>(options[first + lane]); ++i) x_[i * lanes + lane] = row[i];
    }
    tilt();
    complete();
  }
  std::size_t size() const { return count_; }
  std::size_t options() const { return options_; }
  int subset_size(std::size_t lane) const { return subset_size_[lane]; }
  /// log Z
  double log_normaliser(std::size_t lane) const { return base_[lane] + log_odds_of_all_[lane] + log_total_[lane]; }
  /// Probability that option i is picked, given that j options before it are.
  double pick_next(std::size_t lane, std::size_t i, std::size_t j) const {
    const double skipped = q_[i * lanes + lane] * u(i + 1, j)[lane], picked = p_[i * lanes + lane] * u(i + 1, j + 1)[lane];
    return picked / (skipped + picked);
  }

  /// put(i, pi) for each option, with the registers of all rows' marginals.
  template <class F>
  void marginals(F&& put) {
    const V scale = V(1) / total();
    sweep([&](std::size_t i, V p, V sum) { put(i, p * sum * scale); });
  }
  /// Entropies of the rows in nats: sum_i log(1 + exp(y_i)) - pi_i y_i, plus log U[0][0].
  V entropy() {
    V sum = V::load_unaligned(log_total_) - log_likely_;
    const V scale = V(1) / total();
    prefixes_.assign((most_ + 1) * lanes, 0.0);
    std::fill_n(prefixes_.data(), lanes, 1.0);
    for (std::size_t i = 0; i < options_; ++i) {
      const V p = at(p_, i), q = at(q_, i), y = at(y_, i);
      V in(0), out(0), before(0);
      for (std::size_t j = 0; j <= most_; ++j) {
        const V a = at(prefixes_, j);
        in = xsimd::fma(a, V::load_unaligned(u(i + 1, j + 1)), in);
        out = xsimd::fma(a, V::load_unaligned(u(i + 1, j)), out);
        step(j, p, q, a, before);
      }
      // y (1 - pi) of a likely option, -y pi of an unlikely one: neither cancels
      sum += xsimd::select(y > V(0), y * q * out * scale, V(0) - y * p * in * scale);
    }
    return sum;
  }
  /// put(i, c) with c = Cov(b, b'g)_i of the indicators b of the options: the gradient of pi . g, and that of pi in direction
  /// g. g [options][lanes].
  template <class F>
  void covariance(std::span<const double> g, F&& put) {
    const auto center = centers(g);
    // W[i][j]: the mean of g' b over options from i on, times U[i][j]
    clear(means_);
    const auto w = [&](std::size_t i, std::size_t j) { return means_.data() + (i * (most_ + 2) + j) * lanes; };
    for (std::size_t i = options_; i-- > 0;) {
      const V p = at(p_, i), q = at(q_, i), gi = V::load_unaligned(g.data() + i * lanes) - center;
      for (std::size_t j = 0; j <= most_; ++j) {
        const V next = xsimd::fma(gi, V::load_unaligned(u(i + 1, j + 1)), V::load_unaligned(w(i + 1, j + 1)));
        xsimd::fma(q, V::load_unaligned(w(i + 1, j)), p * next).store_unaligned(w(i, j));
      }
    }
    const V scale = V(1) / total(), mean = V::load_unaligned(w(0, 0)) * scale;
    prefixes_.assign((most_ + 1) * lanes, 0.0);
    std::fill_n(prefixes_.data(), lanes, 1.0);
    sums_.assign((most_ + 1) * lanes, 0.0);  // the mean of g' b over options before i, times A[j]
    for (std::size_t i = 0; i < options_; ++i) {
      const V p = at(p_, i), q = at(q_, i), gi = V::load_unaligned(g.data() + i * lanes) - center;
      V in(0), weighted(0), a_before(0), b_before(0);
      for (std::size_t j = 0; j <= most_; ++j) {
        const V a = at(prefixes_, j), b = at(sums_, j), next = V::load_unaligned(u(i + 1, j + 1));
        in = xsimd::fma(a, next, in);
        weighted = xsimd::fma(a, V::load_unaligned(w(i + 1, j + 1)), xsimd::fma(b, next, weighted));
        const V moved = xsimd::fma(gi, a_before, b_before);
        xsimd::fma(q, b, p * moved).store_unaligned(sums_.data() + j * lanes);
        b_before = b;
        step(j, p, q, a, a_before);
      }
      put(i, p * scale * xsimd::fma(in, gi - mean, weighted));
    }
  }

 private:
  static V at(const std::vector<double>& x, std::size_t i) { return V::load_unaligned(x.data() + i * lanes); }
  const double* u(std::size_t i, std::size_t j) const { return u_.data() + (i * (most_ + 2) + j) * lanes; }
  double* u(std::size_t i, std::size_t j) { return u_.data() + (i * (most_ + 2) + j) * lanes; }
  /// Sizes U, or a table like it, and sets its last option and last column to 0. The rest is written later.
  void clear(std::vector<double>& table) const {
    const std::size_t row = (most_ + 2) * lanes;
    table.resize((options_ + 1) * row);
    for (std::size_t i = 0; i < options_; ++i) std::fill_n(table.data() + (i + 1) * row - lanes, lanes, 0.0);
    std::fill_n(table.data() + options_ * row, row, 0.0);
  }
  V total() const { return V::load_unaligned(u(0, 0)); }
  /// A[j] after one more bit; `before` is A[j - 1] and becomes a = A[j].
  void step(std::size_t j, V p, V q, V a, V& before) {
    xsimd::fma(q, a, p * before).store_unaligned(prefixes_.data() + j * lanes);
    before = a;
  }
  /// f(i, p_i, sum_j A[j] U[i + 1][j + 1]) for each option.
  template <class F>
  void sweep(F&& f) {
    prefixes_.assign((most_ + 1) * lanes, 0.0);
    std::fill_n(prefixes_.data(), lanes, 1.0);
    for (std::size_t i = 0; i < options_; ++i) {
      const V p = at(p_, i), q = at(q_, i);
      V sum(0), before(0);
      for (std::size_t j = 0; j <= most_; ++j) {
        const V a = at(prefixes_, j);
        sum = xsimd::fma(a, V::load_unaligned(u(i + 1, j + 1)), sum);
        step(j, p, q, a, before);
      }
      f(i, p, sum);
    }
  }
  /// A constant in g changes nothing, since k is fixed; without its mean less cancels.
  V centers(std::span<const double> g) const {
    V sum(0), of(0);
    for (std::size_t i = 0; i < options_; ++i) {
      sum = xsimd::fma(at(p_, i), V::load_unaligned(g.data() + i * lanes), sum);
      of += at(p_, i);
    }
    return xsimd::select(of > V(0), sum / of, V(0));
  }

  /// k is a likely number of bits, given its mean and variance: were some of k bits (nearly) impossible, it would be at least 2
  /// standard deviations away.
  static bool near(double off, double variance) { return off * off <= variance + 1e-12; }

  /// The bits of all rows, with about as many expected as picked.
  void tilt() {
    const V impossible(-std::numeric_limits<double>::infinity()), none(0), one(1);
    V most = impossible, possible = none, unknown = none;
    for (std::size_t i = 0; i < options_; ++i) {
      const V x = at(x_, i);
      most = xsimd::max(most, x);
      possible += xsimd::select(x > impossible, one, none);
      unknown += xsimd::select(x < V(std::numeric_limits<double>::infinity()), none, one);  // NaN, too
    }
    alignas(64) double most_of[lanes], possible_of[lanes], unknown_of[lanes], scales[lanes];
    most.store_aligned(most_of);
    possible.store_aligned(possible_of);
    unknown.store_aligned(unknown_of);
    std::fill_n(subset_size_, lanes, 0);
    for (std::size_t lane = 0; lane < count_; ++lane) {
      if (possible_of[lane] == 0 && unknown_of[lane] == 0)
        throw UsageError("a subset has no possible option: all of its logits are -inf; leave at least one finite");
      subset_size_[lane] = static_cast<int>(std::min(static_cast<double>(asked_[lane]), possible_of[lane]));
    }
    most = xsimd::select(most > impossible, most, none);  // of rows that are not there
    w_.resize(options_ * lanes);
    V total = none;
    for (std::size_t i = 0; i < options_; ++i) {
      const V w = kernels::exp<double>(at(x_, i) - most);
      w.store_unaligned(w_.data() + i * lanes);
      total += w;
    }
    for (std::size_t lane = 0; lane < lanes; ++lane) scales[lane] = std::max(subset_size_[lane], 1);
    const V scale = V::load_aligned(scales) / xsimd::max(total, V(1e-300)), log_scale = kernels::log<double>(scale);
    p_.resize(options_ * lanes);
    q_.resize(options_ * lanes);
    y_.resize(options_ * lanes);
    V sum = none, variance = none;
    for (std::size_t i = 0; i < options_; ++i) {
      const V odds = at(w_, i) * scale, q = one / (one + odds), p = odds * q, x = at(x_, i);
      p.store_unaligned(p_.data() + i * lanes);
      q.store_unaligned(q_.data() + i * lanes);
      xsimd::select(x > impossible, x - most + log_scale, none).store_unaligned(y_.data() + i * lanes);
      sum += p;
      variance = xsimd::fma(p, q, variance);
    }
    alignas(64) double sums[lanes], variances[lanes], log_scales[lanes];
    sum.store_aligned(sums);
    variance.store_aligned(variances);
    log_scale.store_aligned(log_scales);
    for (std::size_t lane = 0; lane < count_; ++lane) {
      base_[lane] = subset_size_[lane] * (most_of[lane] - log_scales[lane]);
      if (unknown_of[lane] > 0)
        set_unknown(lane);
      else if (possible_of[lane] <= static_cast<double>(asked_[lane]))
        set_certain(lane);
      else if (!near(sums[lane] - subset_size_[lane], variances[lane]))
        tilt_further(lane);
    }
  }
  /// Of logits that are NaN or +inf: the results are NaN, which callers report.
  void set_unknown(std::size_t lane) {
    base_[lane] = std::nan("");
    for (std::size_t i = 0; i < options_; ++i) p_[i * lanes + lane] = q_[i * lanes + lane] = std::nan("");
  }
  /// All possible options are picked.
  void set_certain(std::size_t lane) {
    base_[lane] = 0;
    for (std::size_t i = lane; i < options_ * lanes; i += lanes) {
      const bool in = x_[i] > -std::numeric_limits<double>::infinity();
      if (in) base_[lane] += x_[i];
      p_[i] = in;
      q_[i] = !in;
      y_[i] = 0;
    }
  }
  /// Newton's method in the logarithm of the bits' odds, with bisection where it leaves the bracket. Relative to the least of the
  /// k largest weights, no weight that matters underflows, and the first guess expects k / 2 to 2 k bits.
  void tilt_further(std::size_t lane) {
    const int k = subset_size_[lane];
    row_.resize(options_);
    for (std::size_t i = 0; i < options_; ++i) row_[i] = x_[i * lanes + lane];
    std::nth_element(row_.begin(), row_.begin() + k - 1, row_.end(), std::greater<>());
    const double shift = row_[k - 1];
    double total = 0;
    for (std::size_t i = 0; i < options_; ++i) {
      row_[i] = std::exp(std::min(x_[i * lanes + lane] - shift, 600.0));
      total += std::min(row_[i], 1.0);
    }
    double guess = std::log(k / total), low = -std::numeric_limits<double>::infinity(), high = -low, log_scale = guess;
    for (int tries = 0; tries < 100; ++tries) {
      log_scale = guess;
      const double scale = std::exp(guess);
      double off = -k, variance = 0;
      for (std::size_t i = 0; i < options_; ++i) {
        const double odds = row_[i] * scale, q = 1 / (1 + odds), p = odds * q;
        p_[i * lanes + lane] = p;
        q_[i * lanes + lane] = q;
        off += p;
        variance = std::fma(p, q, variance);  // explicitly: the compiler may fuse it for some addresses only
      }
      if (near(off, variance)) break;
      (off < 0 ? low : high) = guess;
      guess -= std::clamp(off / variance, -3.0, 3.0);
      if (!(guess > low && guess < high)) guess = (low + high) / 2;
    }
    base_[lane] = k * (shift - log_scale);
    for (std::size_t i = lane; i < options_ * lanes; i += lanes)
      if (x_[i] > -std::numeric_limits<double>::infinity()) y_[i] = x_[i] - shift + log_scale;
  }
  /// U, and the logarithms of the normaliser's factors.
  void complete() {
    constexpr std::size_t few = 512;  // products of as many factors of at least 1/2 do not underflow
    clear(u_);
    for (std::size_t lane = 0; lane < lanes; ++lane) u(options_, subset_size_[lane])[lane] = 1;
    V log_likely(0), product(1), likely_odds(0);
    for (std::size_t i = options_; i-- > 0;) {
      const V p = at(p_, i), q = at(q_, i), y = at(y_, i);
      for (std::size_t j = 0; j <= most_; ++j)
        xsimd::fma(q, V::load_unaligned(u(i + 1, j)), p * V::load_unaligned(u(i + 1, j + 1))).store_unaligned(u(i, j));
      product *= xsimd::max(p, q);
      likely_odds += xsimd::max(y, V(0));
      if (i % few == 0) {
        log_likely += kernels::log<double>(product);
        product = V(1);
      }
    }
    log_likely_ = log_likely;                                      // sum_i log max(p_i, 1 - p_i)
    (likely_odds - log_likely).store_unaligned(log_odds_of_all_);  // sum_i log(1 + exp(y_i))
    kernels::log<double>(total()).store_unaligned(log_total_);
  }

  std::size_t count_ = 0, options_ = 0, most_ = 0;
  int asked_[lanes] = {}, subset_size_[lanes] = {};  // k, and the options that are picked
  double base_[lanes] = {}, log_odds_of_all_[lanes] = {}, log_total_[lanes] = {};
  V log_likely_ = V(0.0);
  std::vector<double> x_, w_, p_, q_, y_;  // [options][lanes]
  std::vector<double> row_;                // [options]
  std::vector<double> u_, means_;          // [options + 1][picks + 2][lanes]
  std::vector<double> prefixes_, sums_;    // [picks + 1][lanes]
};

}  // namespace hardgrad::kernels
