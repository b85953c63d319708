// Quadrature over one uniform number, piece by piece.
#pragma once

#include <vector>

#include "core/random/randomness.hpp"

namespace hardgrad {

struct Quadrature {
  std::vector<double> points, weights;  ///< weights sum to 1
};

/// Nodes on (0, 1). Between breaks: Gauss-Legendre of 6 nodes where the integrand is a polynomial (exact up to degree 11:
/// the square of a degree of 5), else tanh-sinh (Takahasi & Mori 1974), which bears singular ends like those of logit(u).
Quadrature quadrature(const Pieces& pieces);

}  // namespace hardgrad
