// The distribution of the halting step over the inner steps of a recurrent network, from its halting units.
//
// The unit of step n = 1..N is u_n. The probability of halting at step n once it is reached is
//   geometric (Banino, Balaguer & Blundell 2021):  lambda_n = sig(u_n), lambda_N = 1
//   act (Graves 2016, sec. 2):                     lambda_n = sig(u_n) / r_{n-1} with r_n = 1 - sum_{m<=n} sig(u_m), and
//                                                  lambda_K = 1 at the first step K with r_K <= epsilon, or N
// and p_n = lambda_n prod_{m<n} (1 - lambda_m). With act p_n = sig(u_n) below K, and p_K is the rest.
//
// A posterior has the same lambda_n from other units, but the prior's last step. With act
//   lambda_n = sig(u_n) / (sig(u_n) + r_n) with r_n = max(r_{n-1} - sig(u_n), epsilon) before the prior's K, and lambda_K = 1.
// So its support is that of the prior, as wake-sleep and importance weights require.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/softmax.hpp"
#include "core/models/parts/indices.hpp"

namespace hardgrad {

/// The law of D examples. The class counts steps from 0.
template <class T>
class HaltingLaw {
 public:
  HaltingLaw() = default;
  /// From the units u [D, N]; act with this epsilon > 0, geometric without one. A posterior ends at the last step of its
  /// `prior`.
  HaltingLaw(Var<T> u, std::optional<double> epsilon, const HaltingLaw* prior = nullptr)
      : steps_(static_cast<int>(u.cols())), end_(prior ? prior->end_ : std::vector<int>(u.rows(), steps_ - 1)) {
    if (epsilon)
      logits_ = act(u, static_cast<T>(*epsilon), !prior);
    else  // odds sig(u_n) : 1 - sig(u_n)
      logits_ = concat_columns({reshape(u, 1), u.tape->constant(u.rows() * u.cols(), 1)});
    const std::vector<int> both(logits_.rows(), 2);
    log_lambda_ = log_softmax(logits_, std::span<const int>(both));
  }

  /// [D N, 2] logits of each step: halt, go on; those of an example together.
  Var<T> logits() const { return logits_; }
  /// [D N, 2] log lambda_n and log(1 - lambda_n) before the end.
  Var<T> log_lambda() const { return log_lambda_; }
  /// [D] the step at which halting is certain.
  const std::vector<int>& end() const { return end_; }
  /// [D, N] log p_n, 0 beyond the end.
  Var<T> log_p() const {
    const int D = static_cast<int>(end_.size());
    const auto halts = reshape(slice_columns(log_lambda_, 0, 1), steps_),
               goes_on = reshape(slice_columns(log_lambda_, 1, 1), steps_);
    std::vector<Var<T>> before{log_lambda_.tape->constant(D, 1)}, log_p;  // log prod_{m<n} (1 - lambda_m)
    for (int n = 0; n + 1 < steps_; ++n) {
      log_p.push_back(add(before[n], slice_columns(halts, n, 1)));
      before.push_back(add(before[n], slice_columns(goes_on, n, 1)));
    }
    const int first = D * static_cast<int>(log_p.size());  // row of `before`
    log_p.insert(log_p.end(), before.begin(), before.end());
    std::vector<int> row;
    for (int d = 0; d < D; ++d)
      for (int n = 0; n < steps_; ++n) row.push_back(n > end_[d] ? -1 : n * D + d + (n == end_[d] ? first : 0));
    return reshape(gather_rows(std::span<const Var<T>>(log_p), std::span<const int>(row)), steps_);
  }
  /// [D] sum_n n p_n, steps counted from 1.
  std::vector<double> mean_steps() const {
    std::vector<double> sums(end_.size());
    for (std::size_t d = 0; d < sums.size(); ++d) {
      double before = 0;
      for (int n = 0; n <= end_[d]; ++n) {
        const T* log_lambda = log_lambda_.value().row(d * steps_ + n);
        sums[d] += (n + 1) * std::exp(before + (n < end_[d] ? static_cast<double>(log_lambda[0]) : 0));
        before += static_cast<double>(log_lambda[1]);
      }
    }
    return sums;
  }
  /// [D, 1] K + p_K, steps counted from 1 (Graves 2016, sec. 2.1).
  Var<T> ponder_cost() const {
    const auto p = exp(log_p());
    const auto steps = p.tape->constant(p.rows(), 1);
    const auto each = range(p.rows());
    for (std::size_t d = 0; d < each.size(); ++d) p.tape->mutable_value(steps).data[d] = static_cast<T>(end_[d] + 1);
    return add(steps, pick(p, std::span<const int>(each), std::span<const int>(end_)));
  }

 private:
  /// Odds sig(u_n) : r_n. Beyond the end r_n is constant and not used. `ends`: finds the first step K with r_K <= epsilon.
  Var<T> act(Var<T> u, T epsilon, bool ends) {
    const std::size_t D = u.rows();
    auto left = u.tape->constant(D, 1, T{1});  // r_{n-1}
    const auto halts = sigmoid(u);
    std::vector<Var<T>> log_left;
    for (int n = 0; n < steps_; ++n) {
      left = affine(relu(affine(subtract(left, slice_columns(halts, n, 1)), T{1}, -epsilon)), T{1}, epsilon);
      for (std::size_t d = 0; ends && d < D; ++d)
        if (!(left.value().data[d] > epsilon)) end_[d] = std::min(end_[d], n);
      log_left.push_back(log(left));
    }
    std::vector<int> place;
    for (int d = 0; d < static_cast<int>(D); ++d)
      for (int n = 0; n < steps_; ++n) place.push_back(n * static_cast<int>(D) + d);
    return concat_columns({affine(softplus(affine(reshape(u, 1), T{-1})), T{-1}),
                           gather_rows(std::span<const Var<T>>(log_left), std::span<const int>(place))});
  }

  int steps_ = 0;  // N
  std::vector<int> end_;
  Var<T> logits_, log_lambda_;  // [D N, 2]
};

}  // namespace hardgrad
