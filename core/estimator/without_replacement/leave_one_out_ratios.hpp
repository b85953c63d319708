// Leave-one-out ratios of a sample without replacement (Kool, van Hoof & Welling 2020, Estimating gradients for discrete
// random variables by sampling without replacement).
//
// S is the set of the first k outcomes of a sample without replacement from outcomes D with probabilities p. p^A(C) is the
// probability that a sample without replacement from A is the set C. Then
//   R(S, s)      = p^{D\s}(S\s) / p(S)                   p(s) R(S, s)       = P(s came first | S)
//   R^{D\s}(S,s') = p^{D\{s,s'}}(S\{s,s'}) / p^{D\s}(S\s)  p(s') R^{D\s}(S,s') = (1 - p(s)) P(s' came next | S, s first)
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace hardgrad {

/// Ratios times probabilities: the weight of an outcome, and its weight in the baseline of another outcome.
struct LeaveOneOutRatios {
  std::vector<double> first;   ///< [k] p(s) R(S, s); they sum to 1
  std::vector<double> second;  ///< [k, k] p(s') R^{D\s}(S, s') in row s, p(s) on the diagonal: rows sum to 1
};

/// For a set with these probabilities and total probability `rest` outside it: by subsets up to k = 12, above by integration.
LeaveOneOutRatios leave_one_out_ratios(std::span<const double> probability, double rest);
/// By recursion over the 2^k subsets; no terms cancel.
LeaveOneOutRatios ratios_by_subsets(std::span<const double> probability, double rest);
/// By one integral over the threshold (appendix of the paper on numerical integration); needs rest > 0.
LeaveOneOutRatios ratios_by_integration(std::span<const double> probability, double rest);

/// Quadrature over the distribution of kappa given S; kappa is the largest perturbed log probability outside S. With E =
/// exp(-kappa) the density in E is proportional to prod_s (1 - exp(-p(s) E)) rest exp(-rest E).
struct ThresholdNodes {
  std::vector<double> kappa, weight;  ///< weights sum to 1
};
ThresholdNodes threshold_nodes(std::span<const double> probability, double rest);

/// p / P(p's perturbed log probability exceeds kappa) = p / (1 - exp(-p exp(-kappa))); p itself if kappa is -inf or p is 0.
double inclusion_weight(double probability, double kappa);

}  // namespace hardgrad
