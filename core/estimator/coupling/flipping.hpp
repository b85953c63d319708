// Estimators that flip one bit: beside every sample runs a row that differs from it in one choice, drawn uniformly.
//
// The flipped row takes what the sample takes but for that bit; where a flip changes the distribution of later choices, it
// draws these for itself. If wanted, the sample's antithetic twin (every bit of it drawn as the other of a pair) runs beside.
// Kunes, Yin, Land, Haviv, Pe'er & Tavare 2022, Gradient estimation for binary latent variables via gradient variance clipping.
#pragma once

#include "core/estimator/score_function/score_function.hpp"

namespace hardgrad {

/// A bit of a sample, and what the sample and the rows beside it cost.
struct FlippedBit {
  double p[2];       ///< of its two options
  int option, twin;  ///< what sample and twin took
  bool flipped;      ///< it is this one that the flipped row has otherwise
  int choices;       ///< T of the longest run, among which the flip was drawn
  double f, f_flipped, f_twin;

  /// T p (1 - p) (f(1) - f(0)) of the bit that is flipped, 0 of others: the derivative in its logit, whose mean it has.
  double by_flip() const { return flipped ? choices * p[0] * p[1] * (2 * option - 1) * (f - f_flipped) : 0; }
};

template <class T>
class FlippingEstimator : public Estimator<T> {
 public:
  Estimate<T> estimate(const Problem<T>& problem) const final;
  bool exchangeable() const final { return false; }
  int copies() const final { return groups_; }

 protected:
  /// `groups` samples an example. Twins: only where no choice changes another's distribution.
  FlippingEstimator(int groups, bool twins) : groups_(groups), twins_(twins) {}
  /// An unbiased estimate of dE[f]/dphi, phi the logit of option 1.
  virtual double derivative(const FlippedBit& bit) const = 0;

 private:
  int groups_;
  bool twins_;
};

extern template class FlippingEstimator<float>;
extern template class FlippingEstimator<double>;

}  // namespace hardgrad
