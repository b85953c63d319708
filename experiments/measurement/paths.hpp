// The paths that runs take through their choices: which ones were evaluated, and their importance ratios.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/choice/episode.hpp"
#include "core/models/model.hpp"

namespace hardgrad::measurement {

// The choices that replicates have evaluated, and the probability of all others.

/// Paths by their hash, with their probability. An open hash table: nearly all paths that are added are there already.
class PathProbabilities {
 public:
  struct Path {
    std::uint64_t hash = 0;
    double probability = -1;  ///< less than 0: none
  };
  /// Keeps the largest of probabilities that differ by rounding, independent of their order.
  void keep(Path path);
  /// In the order of their hashes.
  std::vector<Path> sorted() const;

 private:
  std::vector<Path> places_ = std::vector<Path>(8);  // a power of two, at least half of them empty
  std::size_t paths_ = 0;
};

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
  void keep(std::size_t example, std::size_t choice, PathProbabilities::Path path);

  static constexpr double most = 1e5;  // most outcomes of an example that are kept
  bool kept_ = true, seen_ = false;
  double rounding_;
  std::vector<std::vector<PathProbabilities>> of_example_;  // by choice
};

// Importance ratios of samples that a behaviour policy draws: how unequal they are.

/// Ratios R = p(z) / q(z) of whole samples z, for the trained policy p and the behaviour policy q that drew them.
class Ratios {
 public:
  /// All samples of a run, if it draws from a behaviour policy. `weight`: of the replicate or outcome.
  template <class T>
  void add(const Episode<T>& episode, double weight);
  void join(const Ratios& other, double weight = 1);
  /// (E R)^2 / E R^2 under q: the effective sample size over the number of samples. NaN without samples.
  double effective_share() const;
  /// The largest R; NaN without samples.
  double largest() const;

 private:
  double weights_ = 0, sum_ = 0, squares_ = 0, largest_ = 0;
};

}  // namespace hardgrad::measurement
