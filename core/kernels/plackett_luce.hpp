// The first k of draws without replacement, without their order (Plackett-Luce): sums over the k! orders by the 2^k sets on the way.
//
//   M: the picks that are still to be drawn; rest(M): the weights exp(x_i) of M and of the options that are not picked
//   B(M) = P(the next |M| draws are M)        B({}) = 1,  B(M) = sum_{i in M} exp(x_i) / rest(M) B(M - i)
//   F(M) = P(all picks but M are drawn first)  F(S) = 1,  F(M - i) += F(M) exp(x_i) / rest(M)
//   p(S) = B(S),   d log p / dx_i = [i in S] - sum_M F(M) B(M) / p(S) [i is left at M] exp(x_i) / rest(M)
//
// Logarithms of all: sums of positive terms, so that nothing cancels or underflows.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

namespace hardgrad::kernels {

/// log(e^a + e^b)
inline double log_sum(double a, double b) {
  const double most = std::max(a, b);
  return std::isinf(most) && most < 0 ? most : most + std::log1p(std::exp(std::min(a, b) - most));
}

class PlackettLuce {
 public:
  static constexpr int most_picks = 10;

  /// Options of logits x [options]; one of -inf is impossible. `picked`: at most `most_picks` of them; -1 is none.
  template <class T>
  void load(const T* x, int options, std::span<const int> picked) {
    x_.assign(x, x + options);
    const double most = *std::max_element(x_.begin(), x_.end());  // a constant in the logits changes nothing
    for (double& v : x_) v -= most;
    subset_size_.clear();
    for (int i : picked)
      if (i >= 0) subset_size_.push_back(i);
    others_ = nothing;
    for (int i = 0; i < options; ++i)
      if (std::find(subset_size_.begin(), subset_size_.end(), i) == subset_size_.end()) others_ = log_sum(others_, x_[i]);
    const std::size_t sets = std::size_t{1} << subset_size_.size();
    rest_.assign(sets, others_);
    next_.assign(sets, nothing);
    next_[0] = 0;
    for (std::size_t M = 1; M < sets; ++M) {
      rest_[M] = log_sum(rest_[M & (M - 1)], x_[subset_size_[lowest(M)]]);
      for_picks(M, [&](std::size_t j) { next_[M] = log_sum(next_[M], step(M, j) + next_[M ^ (std::size_t{1} << j)]); });
    }
  }
  /// log p(S); 0 where all possible options are picked.
  double log_probability() const { return others_ == nothing ? 0 : next_.back(); }
  /// put(i, d log p / dx_i) for each option.
  template <class F>
  void score(F&& put) {
    std::vector<double> result(x_.size());
    if (others_ != nothing) {
      first_.assign(next_.size(), nothing);
      first_.back() = 0;
      for (int i : subset_size_) result[i] = 1;
      double left = nothing;  // log sum_M F(M) B(M) / p(S) / rest(M)
      for (std::size_t M = next_.size() - 1; M > 0; --M) {
        const double here = first_[M] + next_[M] - next_.back();
        left = log_sum(left, here - rest_[M]);
        for_picks(M, [&](std::size_t j) {
          double& after = first_[M ^ (std::size_t{1} << j)];
          after = log_sum(after, first_[M] + step(M, j));
          result[subset_size_[j]] -= std::exp(here + step(M, j));
        });
      }
      for (std::size_t i = 0; i < x_.size(); ++i)
        if (std::find(subset_size_.begin(), subset_size_.end(), static_cast<int>(i)) == subset_size_.end())
          result[i] = -std::exp(x_[i] + left);
    }
    for (std::size_t i = 0; i < x_.size(); ++i) put(i, result[i]);
  }

 private:
  static constexpr double nothing = -std::numeric_limits<double>::infinity();
  static std::size_t lowest(std::size_t M) { return static_cast<std::size_t>(__builtin_ctzll(M)); }
  template <class F>
  static void for_picks(std::size_t M, F&& f) {
    for (std::size_t left = M; left > 0; left &= left - 1) f(lowest(left));
  }
  /// log P(pick j is drawn next, if M and the others are left)
  double step(std::size_t M, std::size_t j) const { return x_[subset_size_[j]] - rest_[M]; }

  std::vector<double> x_;
  std::vector<int> subset_size_;
  double others_ = nothing;                  // log of the weights that are not picked
  std::vector<double> rest_, next_, first_;  // log rest, B and F of each M, a set of bits
};

}  // namespace hardgrad::kernels
