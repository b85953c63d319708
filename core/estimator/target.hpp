// What an estimator estimates: its target is data, and its exact gradient can be had wherever choices can be
// enumerated.
#pragma once

#include <string>

namespace hardgrad {

struct Target {
  enum class Kind {
    expected_loss,        ///< L_s = E_p(z)[f(z)]
    marginal_likelihood,  ///< -log E_p(z)[exp(-f(z))]
    elbo,                 ///< E_q(z)[f(z)] + KL(q || p): the negative evidence lower bound
    regularised,          ///< lambda_r score term + path term - lambda_e entropy (Show, Attend and Tell)
    sparsemax,            ///< E[f] with softmax replaced by sparsemax
    soft                  ///< the loss of the deterministic network fed with expected weights
  };
  Kind kind = Kind::expected_loss;
  // Of `regularised` only:
  double lambda_r = 1;   ///< weight of the score-function term
  double lambda_e = 0;   ///< weight of the entropy of every site visited
  bool semi = false;     ///< every choice replaced by its expectation with probability 1/2
};

/// "expected_loss", "marginal_likelihood", "elbo", "regularised", "sparsemax", "soft"
std::string to_string(Target::Kind kind);

}  // namespace hardgrad
