// The formula of a registered estimator, for code that computes its estimates by array operations: what its file declares
// (core/estimator/closed_form.hpp), or a score function that is found to be linear in the losses.
#pragma once

#include <optional>
#include <string>

#include "core/registry/settings.hpp"

namespace hardgrad::python {

/// The estimate 1/K sum_k f_k with the slope 1/K sum_k c_k (onehot_k - p) at the logits, from K independent samples of each
/// example, and c_k = own f_k + others (sum of the other samples' f) + offset.
struct LinearScore {
  double own = 0, others = 0, offset = 0;
};

/// Most samples of an estimator that is asked: some take a time that grows with their square.
inline constexpr int most_asked = 1000;

/// How the estimator weighs its K samples, found by asking it: the three numbers are fitted to one draw, and must then give the
/// slopes of nine others, with losses of different size, and other probabilities, columns and options. Empty if they do not, or the
/// estimator learns, couples examples, does not support such problems, makes other draws, or has more samples than `most_asked`.
std::optional<LinearScore> linear_score(const Spec& spec);

}  // namespace hardgrad::python
