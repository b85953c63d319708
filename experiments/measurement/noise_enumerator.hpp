// Noise that replays: repeated runs of an estimator on it visit every outcome once.
#pragma once

#include <span>
#include <vector>

#include "core/random/gauss_rules.hpp"
#include "core/random/randomness.hpp"
#include "experiments/measurement/quadrature.hpp"

namespace hardgrad::measurement {

class Kinks;

/// A source of noise that visits every outcome; for continuous noise, every node of a quadrature.
class NoiseEnumerator : public Randomness {
 public:
  /// With `exchangeable`, draws of the same step and different replicas are visited as multisets. `nodes`: size of the Gauss
  /// rule for a standard draw. `level`: number of times the step of the quadrature for other continuous noise is halved. This
  /// quadrature is split at `kinks`, if given.
  explicit NoiseEnumerator(bool exchangeable, int nodes = 32, int level = 0, const Kinks* kinks = nullptr)
      : exchangeable_(exchangeable), nodes_(nodes), level_(level), kinks_(kinks) {}

  int categorical(std::span<const double> probabilities, Draw where) override;
  /// Both visit the nodes of a quadrature: exact for polynomials, else tanh-sinh.
  double uniform(Draw where, const Pieces& pieces = {}) override;
  using Randomness::logistic;
  double logistic(Draw where, double edge) override;
  /// Visits the points of a Gauss rule, or of the rules set by `part`.
  double standard(Standard noise, Draw where) override;
  bool enumerates() const override { return true; }

  /// For runs that draw only standard noise, `draws` times each: uses rules of `pieces` pieces, and leaves the last draw open.
  /// A run that reaches an open draw is not a visit. It is repeated with other numbers there, by `set_open` and `begin`, until
  /// `close` sets the rule to visit.
  void part(int pieces, std::size_t draws);
  bool open() const { return open_; }
  Standard open_noise() const { return path_.back().noise; }
  void set_open(double number) { path_.back().quadrature.points = {number}; }
  void close(const GaussRule& rule);

  /// Starts one visit.
  void begin();
  /// After a visit: its probability, with the multinomial weight if samples are exchangeable. `rule`: the finest rule of the
  /// quadratures (0) or a coarser one.
  double weight(int rule = 0) const;
  /// Moves to the next set of outcomes of this part; false if all have been visited.
  bool next();
  /// After the first visit of the whole: how many of the first draws divide `visits` visits into parts of about 32 or more. Few
  /// visits are not divided: 0.
  std::size_t depth_of_parts(double visits) const;
  /// After the first visit of a part: keeps the outcomes of its first `depth` draws, and returns the parts with the later ones, in
  /// the order of their visits. Each has a visit of its own still before it.
  std::vector<NoiseEnumerator> divide(std::size_t depth);
  /// After the first visit: the approximate number of all visits, for a model with `outcomes` complete sets of choices.
  double expected_visits(double outcomes) const;
  /// True if continuous noise was drawn in the last visit.
  bool continuous() const;
  /// True if standard noise was drawn in the last visit.
  bool standard_drawn() const { return standard_draws() > 0; }
  std::size_t standard_draws() const;
  /// True if all draws of the last visit were standard.
  bool only_standard() const { return standard_draws() == path_.size(); }

 private:
  struct Node {
    std::vector<double> probabilities;
    int chosen;
    Quadrature quadrature = {};  ///< of a continuous draw; its finest weights are `probabilities`
    bool standard = false;
    Standard noise = Standard::normal;
  };
  struct Trajectory {
    std::vector<int> choices;   ///< in the order drawn
    bool like_previous = true;  ///< equal to the trajectory of the previous replica so far
  };
  /// The first possible option, starting at `from`; -1 if there is none.
  static int possible(const std::vector<double>& probabilities, int from);
  /// The same; NotFinite if there is none.
  static int first_possible(const std::vector<double>& probabilities, int from);
  /// The current node of a quadrature; `rule` makes the quadrature at the first visit.
  template <class Rule>
  double visit(Rule rule);
  double visit_part(Standard noise);
  /// Sets the points of the last node of the path.
  void take_rule(const GaussRule& rule);
  std::span<const double> kinks(const Draw& where) const;
  bool exchangeable_;
  int nodes_, level_, pieces_ = 0;
  std::size_t draws_ = 0;
  bool open_ = false;
  const Kinks* kinks_;
  std::vector<Node> path_;
  std::size_t fixed_ = 0;  ///< first draws whose outcomes are those of the part
  std::size_t position_ = 0;
  std::vector<Trajectory> trajectories_;
};

}  // namespace hardgrad::measurement
