// Estimators defined by a coupling: how K options are drawn jointly, and the gradient at the logits from their losses.
#pragma once

#include "core/estimator/coupling/coupled.hpp"
#include "core/support/error.hpp"

namespace hardgrad {

/// The coupled draws of one choice with probabilities p [S].
struct Coupling {
  std::span<const double> p;
  std::span<int> option;   ///< [K]
  std::span<double> kept;  ///< values that `gradient` needs besides the options
};

/// An estimator that computes the gradient choice by choice, from the losses of the coupled options. It defines `draw` and
/// `gradient`, and, `by_columns`, the same for many columns of a row.
template <class T>
class CoupledEstimator : public Estimator<T> {
 public:
  Estimate<T> estimate(const Problem<T>& problem) const final;
  bool exchangeable() const final { return false; }
  int copies() const final { return groups_; }

 protected:
  /// `groups`: independent sets of K `members`; `kept`: number of values kept per choice.
  CoupledEstimator(int groups, int members, int kept, Credit credit)
      : groups_(groups), members_(members), kept_(kept), credit_(credit) {}
  /// Draws the K options (0 on entry) of a choice; the first must have the distribution p.
  virtual void draw(Coupling& coupling, Randomness& random, Draw where) const = 0;
  /// An unbiased estimate of dE[f]/dlogits [S] (0 on entry) from the members' losses f [K].
  virtual void gradient(const Coupling& coupling, std::span<const double> f, std::span<double> logits) const;
  /// True if columns of a row may be drawn and estimated together, some hundreds at a time: D columns with S options each, log_p,
  /// p and logits [D, S], options [K][D], f [K][D]. Nothing is kept.
  virtual bool by_columns() const { return false; }
  virtual void draw_columns(std::span<const T> /*log_p*/, const std::vector<std::span<int>>& /*option*/, Randomness&,
                            Draw /*where*/) const {
    throw Bug("an estimator that draws columns together has no draw_columns");
  }
  virtual void gradient_of_columns(std::span<const double> /*p*/, const std::vector<std::span<const int>>& /*option*/,
                                   const std::vector<std::span<const double>>& /*f*/, std::span<double> /*logits*/) const {
    throw Bug("an estimator that draws columns together has no gradient_of_columns");
  }
  /// Probabilities from their logarithms.
  static std::vector<double> exponentials(std::span<const T> log_p);
  /// True if every member has the distribution p. Then all members may serve the path term and the losses of other choices.
  virtual bool all_lawful() const { return true; }

 private:
  /// The part of the surrogate of a step whose columns are estimated together.
  Var<T> surrogate_of_columns(Coupled<T>& run, int step, Credit credit) const;
  int groups_, members_, kept_;
  Credit credit_;
};

/// `unsupported` for estimators that draw pairs.
std::string needs_pairs(const SamplesConfig<>& config, const Structure&);

extern template class CoupledEstimator<float>;
extern template class CoupledEstimator<double>;

}  // namespace hardgrad
