// What an estimator estimates: its target is data, and its exact gradient can be had wherever choices can be
// enumerated.
#pragma once

#include <string>
#include <vector>

namespace hardgrad {

struct Target {
  enum class Kind {
    expected_loss,        ///< L_s = E_p(z)[f(z)]
    marginal_likelihood,  ///< -log E_p(z)[exp(-f(z))]
    elbo,                 ///< E_q(z)[f(z)] + KL(q || p): the negative evidence lower bound
    regularised,          ///< lambda_r score term + path term - lambda_e entropy (Show, Attend and Tell)
    sparsemax,            ///< E[f] with softmax replaced by sparsemax
    soft,                 ///< the loss of the deterministic network fed with expected weights
    importance_bound,     ///< -E_q(z_1..z_K)[log 1/K sum_k p(z_k) exp(-f(z_k)) / q(z_k)]: the K-sample bound
    wake,                 ///< reweighted wake-sleep: a field, -log p(y) for the network, KL(p(z|y) || q) for the posterior
    wake_sleep,           ///< a field as wake, but for the posterior KL(p(z|x,y) || q) over y the network itself draws
    thermodynamic         ///< -sum_j (b_j+1 - b_j) E_pi_j[log p exp(-f) / q], pi_j ~ (p exp(-f))^b_j q^(1 - b_j)
  };
  Kind kind = Kind::expected_loss;
  // Of `regularised` only:
  double lambda_r = 1;   ///< weight of the score-function term
  double lambda_e = 0;   ///< weight of the entropy of every site visited
  bool semi = false;     ///< every choice replaced by its expectation with probability 1/2
  // Of `importance_bound` only:
  int samples = 1;       ///< K
  // Of `thermodynamic` only:
  std::vector<double> partition = {};  ///< 0 = b_0 < b_1 < ... = 1
};

/// The kind's name as it is written above.
std::string to_string(Target::Kind kind);
/// The target with all its numbers: two with the same text are the same target.
std::string to_string(const Target& target);
/// True if it is a target of the learned posterior q too.
bool needs_posterior(Target::Kind kind);
/// True if its exact form weighs complete sets of choices one by one.
bool needs_outcomes(Target::Kind kind);

}  // namespace hardgrad
