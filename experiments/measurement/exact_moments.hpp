// Exact moments of an estimator: its mean and covariance with no sampling at all.
//
// The estimator runs on a source of noise that replays: a categorical draw visits every outcome in turn (depth first),
// and each complete set of outcomes is weighted by its probability. Examples are independent given the parameters, so
// they are visited one at a time; samples that may be permuted are visited as multisets with multinomial weights.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/estimator/estimator.hpp"
#include "experiments/measurement/quadrature.hpp"
#include "experiments/support/stop.hpp"

namespace hardgrad {

/// A source of noise that visits every outcome; of continuous noise, the nodes of a quadrature.
class Replay final : public Randomness {
 public:
  /// With `exchangeable`, draws of the same step and different replicas are visited as multisets. `nodes`: of the Gauss rule
  /// that stands in for a standard draw; `level`: how often the step of the quadrature for other continuous noise is halved.
  explicit Replay(bool exchangeable, int nodes = 32, int level = 0)
      : exchangeable_(exchangeable), nodes_(nodes), level_(level) {}

  int categorical(std::span<const double> probabilities, Draw where) override;
  /// Both visit the nodes of a quadrature: exact for polynomials, else tanh-sinh.
  double uniform(Draw where, const Pieces& pieces = {}) override;
  using Randomness::logistic;
  double logistic(Draw where, const Pieces& pieces = {}) override;
  /// Visits the points of a Gauss rule.
  double standard(Standard noise, Draw where) override;
  bool replays() const override { return true; }

  /// Starts one visit.
  void begin();
  /// After a visit: its probability, with the multinomial weight if samples are exchangeable; by the quadratures' finest rule
  /// (0) or a coarser one.
  double weight(int rule = 0) const;
  /// Moves to the next set of outcomes; false if all have been visited.
  bool next();
  /// After the first visit of a model with so many complete sets of choices: how many visits are to come, about.
  double expected_visits(double outcomes) const;
  /// True if continuous noise was drawn in the last visit.
  bool continuous() const;
  /// The same of standard draws.
  bool standard_drawn() const;

 private:
  struct Node {
    std::vector<double> probabilities;
    int chosen;
    Quadrature quadrature = {};  ///< of a continuous draw, its finest weights being `probabilities`
    bool standard = false;
  };
  struct Trajectory {
    std::vector<int> choices;   ///< in the order drawn
    bool like_previous = true;  ///< so far the same as the trajectory of the replica before
  };
  /// First possible option from `from` on; -1 if none.
  static int possible(const std::vector<double>& probabilities, int from);
  double visit(const Pieces& pieces, Quadrature (*rule)(const Pieces&, int));
  bool exchangeable_;
  int nodes_, level_;
  std::vector<Node> path_;
  std::size_t position_ = 0;
  std::vector<Trajectory> trajectories_;
};

/// Mean and covariance of an estimate of a batch, with what it cost.
struct Moments {
  std::vector<double> mean;        ///< [P]
  std::vector<double> variances;   ///< [P] diagonal of the covariance
  std::vector<double> covariance;  ///< [P, P], if asked for
  double trace = 0;                ///< sum of the variances
  double cosine = 0;               ///< E of the cosine to the reference; NaN for more than one example, or copy
  double outcomes = 0;             ///< visited
  bool continuous = false;         ///< some of them are nodes of a quadrature
  int nodes = 0;                   ///< of a Gauss rule, one for each standard draw; 0: none was drawn
  /// What quadratures leave in doubt: distance of the mean, and of the trace, from coarser rules', extrapolated. Infinite where
  /// a finer rule comes no nearer: the integral may be.
  double mean_error = 0, trace_error = 0;
  double rows = 0, attention_values = 0, missed_hints = 0;  ///< expected cost of one gradient
};

/// Moments of `estimator` on `batch`. `reference` [B][P] are gradients close to each example's mean (its exact gradient):
/// moments are taken around them, so that they do not cancel. UsageError if more than `outcome_cap` visits are needed,
/// naming how many. Normal draws are integrated over with as many nodes as the cap allows, at most 32; the quadrature
/// of other continuous noise is refined until it is good to 1e-10, or the cap is met. `stop` is polled between visits.
template <class T>
Moments exact_moments(const Estimator<T>& estimator, const Model<T>& model, const Batch& batch,
                      const std::vector<std::vector<double>>& reference, double outcome_cap, bool covariance = false,
                      const Stop& stop = {});

}  // namespace hardgrad
