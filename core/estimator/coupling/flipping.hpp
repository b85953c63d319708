// Estimators that flip one bit. Beside every sample runs a row that differs from it in one choice, drawn uniformly.
//
// The flipped row copies all other options of the sample. If a flip changes the distribution of later choices, the flipped row
// draws those itself. Optionally the sample's antithetic twin, each bit drawn as the other of a pair, runs beside it.
// Kunes, Yin, Land, Haviv, Pe'er & Tavare 2022, Gradient estimation for binary latent variables via gradient variance clipping.
#pragma once

#include "core/estimator/score_function/score_function.hpp"

namespace hardgrad {

/// A bit of a sample, and the losses of the sample and of the rows beside it.
struct FlippedBit {
  double p[2];             ///< probabilities of the two options
  int option, antithetic;  ///< the options of the sample and of the twin
  bool flipped;            ///< true if this bit is the one changed in the flipped row
  int choices;             ///< T of the longest run; the flipped choice is drawn among these
  double f, f_flipped, f_antithetic;

  /// T p (1 - p) (f(1) - f(0)) for the flipped bit, 0 for others. Its mean is the derivative with respect to the bit's logit.
  double by_flip() const { return flipped ? choices * p[0] * p[1] * (2 * option - 1) * (f - f_flipped) : 0; }
};

template <class T>
class FlippingEstimator : public Estimator<T> {
 public:
  Estimate<T> estimate(const Problem<T>& problem) const final;
  bool exchangeable() const final { return false; }
  int copies() const final { return groups_; }

 protected:
  /// `groups` samples per example. Twins are valid only if no choice changes another's distribution.
  FlippingEstimator(int groups, bool antithetic) : groups_(groups), antithetic_(antithetic) {}
  /// An unbiased estimate of dE[f]/dphi, phi the logit of option 1.
  virtual double derivative(const FlippedBit& bit) const = 0;

 private:
  int groups_;
  bool antithetic_;
};

extern template class FlippingEstimator<float>;
extern template class FlippingEstimator<double>;

}  // namespace hardgrad
