// Noise that replays: an estimator that runs on it again and again has had, in the end, every outcome once.
#pragma once

#include <span>
#include <vector>

#include "core/random/gauss_rules.hpp"
#include "core/random/randomness.hpp"
#include "experiments/measurement/quadrature.hpp"

namespace hardgrad::measurement {

class Kinks;

/// A source of noise that visits every outcome; of continuous noise, the nodes of a quadrature.
class Replay : public Randomness {
 public:
  /// With `exchangeable`, draws of the same step and different replicas are visited as multisets. `nodes`: of the Gauss rule
  /// that stands in for a standard draw; `level`: how often the step of the quadrature for other continuous noise is halved,
  /// which is parted at its kinks, if some are known.
  explicit Replay(bool exchangeable, int nodes = 32, int level = 0, const Kinks* kinks = nullptr)
      : exchangeable_(exchangeable), nodes_(nodes), level_(level), kinks_(kinks) {}

  int categorical(std::span<const double> probabilities, Draw where) override;
  /// Both visit the nodes of a quadrature: exact for polynomials, else tanh-sinh.
  double uniform(Draw where, const Pieces& pieces = {}) override;
  using Randomness::logistic;
  double logistic(Draw where, double edge) override;
  /// Visits the points of a Gauss rule, or of the rules that `part` says.
  double standard(Standard noise, Draw where) override;
  bool replays() const override { return true; }

  /// Of runs that draw standard noise alone, `draws` times: it is visited by rules of so many pieces, the last draw left open.
  /// A run that comes to an open draw is no visit: it is repeated with other numbers there, by `set_open` and `begin`, until
  /// `close` says at which it is visited.
  void part(int pieces, std::size_t draws);
  bool open() const { return open_; }
  Standard open_noise() const { return path_.back().noise; }
  void set_open(double number) { path_.back().quadrature.points = {number}; }
  void close(const GaussRule& rule);

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
  bool standard_drawn() const { return standard_draws() > 0; }
  std::size_t standard_draws() const;
  /// All draws were.
  bool only_standard() const { return standard_draws() == path_.size(); }

 private:
  struct Node {
    std::vector<double> probabilities;
    int chosen;
    Quadrature quadrature = {};  ///< of a continuous draw, its finest weights being `probabilities`
    bool standard = false;
    Standard noise = Standard::normal;
  };
  struct Trajectory {
    std::vector<int> choices;   ///< in the order drawn
    bool like_previous = true;  ///< so far the same as the trajectory of the replica before
  };
  /// First possible option from `from` on; -1 if none.
  static int possible(const std::vector<double>& probabilities, int from);
  /// A node of the quadrature that is made when its draw comes first.
  template <class Rule>
  double visit(Rule rule);
  double visit_part(Standard noise);
  /// The last node of the path has the points of this rule.
  void take_rule(const GaussRule& rule);
  std::span<const double> kinks(const Draw& where) const;
  bool exchangeable_;
  int nodes_, level_, pieces_ = 0;
  std::size_t draws_ = 0;
  bool open_ = false;
  const Kinks* kinks_;
  std::vector<Node> path_;
  std::size_t position_ = 0;
  std::vector<Trajectory> trajectories_;
};

}  // namespace hardgrad::measurement
