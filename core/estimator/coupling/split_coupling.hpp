// Pairs of categories coupled through the bits that choose them: the options are split in two again and again, and as long
// as both members of a pair are in the same part, the bits that say where they go are antithetic.
//
//   g_logits = 1/2 (f(z) - f(z~)) (e_z - e_z~ - min(r, 1 - r) (P - P~))                   per pair and choice
//
// At the split where the pair parts, r is the probability of one side; P and P~ are the distributions of the option given
// z's and z~'s side. The antithetic bits there give max(r, 1 - r) (P - P~) (DisARM: P - P~ is the derivative of the split's
// logit), the bits below give e_z - P and e_z~ - P~ (the score function, with the other member's loss as baseline).
// Dong, Mnih & Tucker 2021, Coupled gradient estimators for discrete latent variables.
#pragma once

#include "core/estimator/coupling/coupled_estimator.hpp"

namespace hardgrad {

template <class T>
class SplitCoupling : public CoupledEstimator<T> {
 protected:
  SplitCoupling(const Settings& settings) : CoupledEstimator<T>(settings.integer("samples") / 2, 2, 0, credit_of(settings)) {}
  /// The order [S] in which the options stand when they are split.
  virtual std::vector<int> order(std::span<const double> p) const;
  /// Where the options from..to-1 (of the order, at least two) are split: the first one of the second part.
  virtual std::size_t split(std::size_t from, std::size_t to) const = 0;

 private:
  void draw(Coupling& coupling, Randomness& random, Draw where) const final;
  void gradient(const Coupling& coupling, std::span<const double> f, std::span<double> logits) const override;
};

extern template class SplitCoupling<float>;
extern template class SplitCoupling<double>;

}  // namespace hardgrad
