// Pairs of categories coupled through bits. The options are split in two repeatedly, and a bit says which part a member enters.
// While both members of a pair are in the same part, their bits are antithetic.
//
//   g_logits = 1/2 (f(z) - f(z~)) (e_z - e_z~ - min(r, 1 - r) (P - P~))                   per pair and choice
//
// At the split where the members part, r is the probability of one side. P is the distribution of the option given z's
// side, P~ that given z~'s side. The antithetic bits at this split give max(r, 1 - r) (P - P~): DisARM, where P - P~ is the
// derivative of the split's logit. The bits below it give e_z - P and e_z~ - P~: the score function, with the other member's
// loss as baseline.
// Dong, Mnih & Tucker 2021, Coupled gradient estimators for discrete latent variables.
#pragma once

#include "core/estimator/coupling/coupled_estimator.hpp"

namespace hardgrad {

template <class T>
class SplitCoupling : public CoupledEstimator<T> {
 protected:
  SplitCoupling(int samples, Credit credit) : CoupledEstimator<T>(samples / 2, 2, 0, credit) {}
  /// [S] the order of the options for splitting.
  virtual std::vector<int> order(std::span<const double> p) const;
  /// The split of options from..to-1 of the order (at least two): the first one of the second part.
  virtual std::size_t split(std::size_t from, std::size_t to) const = 0;

 private:
  void draw(Coupling& coupling, Randomness& random, Draw where) const final;
  void gradient(const Coupling& coupling, std::span<const double> f, std::span<double> logits) const override;
};

extern template class SplitCoupling<float>;
extern template class SplitCoupling<double>;

}  // namespace hardgrad
