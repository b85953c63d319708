// The paths that runs take through their choices: which ones were evaluated, and their importance ratios.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/choice/episode.hpp"
#include "core/models/model.hpp"

namespace hardgrad::measurement {

// The choices that replicates have evaluated, and the probability of all others.

/// For each example, the evaluated paths through the run, with their probability.
class Visited {
 public:
  /// Nothing is kept if the model's choices are numbers, or too many.
  template <class T>
  Visited(const Model<T>& model, const Batch& batch);
  /// All hard paths of a run.
  template <class T>
  void add(const Episode<T>& episode);
  void add(const Visited& other);
  /// The probability of the paths that were not evaluated, mean over the examples; for each example the largest over the
  /// choices. NaN if unknown: nothing was kept, or all paths are mixtures.
  double missing() const;

 private:
  static constexpr double most = 1e5;  // most outcomes of an example that are kept
  bool kept_ = true, seen_ = false;
  double rounding_;
  std::vector<std::map<std::pair<int, std::uint64_t>, double>> of_example_;  // (choice, hash of the path) -> probability
};

// Importance ratios of samples that a behaviour policy draws: how unequal they are.

/// Ratios R = p(z) / q(z) of whole samples z, for the trained policy p and the behaviour policy q that drew them.
class Ratios {
 public:
  /// All samples of a run, if it draws from a behaviour policy. `weight`: of the replicate or outcome.
  template <class T>
  void add(const Episode<T>& episode, double weight);
  void join(const Ratios& other);
  /// (E R)^2 / E R^2 under q: the effective sample size over the number of samples. NaN without samples.
  double effective_share() const;
  /// The largest R; NaN without samples.
  double largest() const;

 private:
  double weights_ = 0, sum_ = 0, squares_ = 0, largest_ = 0;
};

}  // namespace hardgrad::measurement
