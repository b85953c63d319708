// The choices that replicates have evaluated, and the probability of all others.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/choice/episode.hpp"
#include "core/models/model.hpp"

namespace hardgrad::measurement {

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

}  // namespace hardgrad::measurement
