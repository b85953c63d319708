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
  /// From the units u_n, N of [D, 1]; act with this epsilon > 0, geometric without one. A posterior ends at the last step of its `prior`.
  HaltingLaw(const std::vector<Var<T>>& units, std::optional<double> epsilon, const HaltingLaw* prior = nullptr)
      : end_(prior ? prior->end_ : std::vector<int>(units[0].rows(), static_cast<int>(units.size()) - 1)) {
    auto& tape = *units[0].tape;
    const std::size_t D = end_.size(), N = units.size();
    const T least = static_cast<T>(epsilon.value_or(0));
    auto left = tape.constant(D, 1, T{1});  // r_{n-1}
    auto reached = tape.constant(D, 1);     // log prod_{m<n} (1 - lambda_m)
    for (std::size_t n = 0; n < N; ++n) {
      std::vector<int> options(D, n + 1 < N ? 2 : 1);
      if (epsilon) {  // odds sig(u_n) : r_n. Beyond the end r_n is constant and not used
        left = affine(relu(affine(subtract(left, sigmoid(units[n])), T{1}, -least)), T{1}, least);
        for (std::size_t d = 0; d < D; ++d) {
          if (!prior && !(left.value().data[d] > least)) end_[d] = std::min(end_[d], static_cast<int>(n));
          if (end_[d] <= static_cast<int>(n)) options[d] = 1;
        }
        logits_.push_back(concat_columns({affine(softplus(affine(units[n], T{-1})), T{-1}), log(left)}));
      } else {  // odds sig(u_n) : 1 - sig(u_n)
        logits_.push_back(concat_columns({units[n], tape.constant(D, 1)}));
      }
      const auto log_p = log_softmax(logits_[n], std::span<const int>(options));
      log_p_.push_back(add(reached, slice_columns(log_p, 0, 1)));
      reached = add(reached, slice_columns(log_p, 1, 1));
      options_.push_back(std::move(options));
    }
  }

  /// [D, 2] logits of step n: halt, go on.
  Var<T> logits(int n) const { return logits_[n]; }
  /// [D] number of options of step n: 1 where halting is certain.
  const std::vector<int>& options(int n) const { return options_[n]; }
  /// [D] the step at which halting is certain.
  const std::vector<int>& end() const { return end_; }
  /// [D, N] log p_n, 0 beyond the end.
  Var<T> log_p() const {
    const int D = static_cast<int>(end_.size()), N = static_cast<int>(log_p_.size());
    std::vector<int> place;
    for (int d = 0; d < D; ++d)
      for (int n = 0; n < N; ++n) place.push_back(n > end_[d] ? -1 : n * D + d);
    return reshape(gather_rows(std::span<const Var<T>>(log_p_), std::span<const int>(place)), N);
  }
  /// [D] sum_n n p_n, steps counted from 1.
  std::vector<double> mean_steps() const {
    std::vector<double> sums(end_.size());
    for (std::size_t d = 0; d < sums.size(); ++d)
      for (int n = 0; n <= end_[d]; ++n) sums[d] += (n + 1) * std::exp(static_cast<double>(log_p_[n].value().data[d]));
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
  std::vector<int> end_;
  std::vector<Var<T>> logits_, log_p_;
  std::vector<std::vector<int>> options_;
};

}  // namespace hardgrad
