// Estimates from a subset of the outcomes, each taken once.
//
// The outcomes are the complete sets of choices of an example. With per_step, they are the options of one of several
// independent choices, and the estimates of the choices are summed.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/choice/beam.hpp"
#include "core/estimator/estimator.hpp"
#include "core/estimator/paths.hpp"

namespace hardgrad {

/// A run with a beam of paths for every example.
template <class T>
class Subset {
 public:
  /// The k most probable outcomes.
  static Subset most_probable(const Problem<T>& problem, std::size_t k, bool per_step);
  /// The k most probable outcomes, and one drawn from all others.
  static Subset most_probable_and_one(const Problem<T>& problem, std::size_t k, bool per_step);
  /// k outcomes without replacement, in the order drawn. `with_threshold`: also kappa, the largest perturbed log probability
  /// among all other outcomes. A replaying source of noise has the same distribution from categorical draws: one outcome after
  /// the other, and kappa at the nodes of its quadrature. Prefixes that drop out are never run.
  static Subset without_replacement(const Problem<T>& problem, std::size_t k, bool per_step, bool with_threshold = false);

  /// Factors of grad log p and of grad f for an example's outcomes, given their losses f.
  struct Weights {
    std::vector<double> score, path;
  };
  using Rule = std::function<Weights(const Beam& beam, std::span<const double> f)>;
  /// 1/B sum over examples (and steps) of sum_s score_s grad log p(s) + path_s grad f(s).
  Estimate<T> estimate(const Rule& rule) &&;

  /// The outcomes of one random variable: of all choices together, or of one step, or of one of its columns.
  struct Group {
    const std::vector<Beam>* beams;  ///< [B]
    Paths paths;                     ///< [N] paths of all examples, in the order of the beams
  };
  Episode<T>& episode() { return *episode_; }
  std::unique_ptr<Episode<T>> release() { return std::move(episode_); }
  const std::vector<Group>& groups() const { return groups_; }
  /// True if root costs are part of the outcomes' losses; per step they are separate.
  bool whole() const { return whole_; }
  /// [1, 1] mean over the examples of the root costs, if they are separate.
  Var<T> root_cost() const;

 private:
  Subset(const Problem<T>& problem, std::unique_ptr<BeamHandler<T>> handler, bool per_step);
  using Scope = typename BeamHandler<T>::Scope;
  /// The place of the draws for a whole beam.
  Draw place(const Scope& scope, std::uint32_t id) const;
  void draw_thresholds(const std::vector<std::uint32_t>& id, Randomness& random);
  /// Tells the source of noise how the races ended. Thresholds have their own law where it left an outcome out.
  void end_races(const std::vector<std::uint32_t>& id, Randomness& random);
  bool whole_;
  std::vector<Scope> scopes_;
  std::unique_ptr<BeamHandler<T>> handler_;
  std::unique_ptr<Episode<T>> episode_;
  std::vector<Group> groups_;
};

/// exp(log p) of the beam's paths.
std::vector<double> probabilities(const Beam& beam);

void per_step_field(Fields& field, bool& per_step);
/// Why this number of outcomes, or choices taken separately, is impossible; empty if it is possible.
std::string refuse_subset(int samples, bool per_step, const Structure& structure);

}  // namespace hardgrad
