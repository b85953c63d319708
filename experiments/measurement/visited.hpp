// Which choices of a network replicates have seen, and how probable those are that they have not.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/choice/episode.hpp"
#include "core/models/model.hpp"

namespace hardgrad::measurement {

/// Of each example the paths through the run that were evaluated, with their probability.
class Visited {
 public:
  /// Nothing is kept of a model whose choices cannot be told apart (numbers), or that has too many to remember.
  template <class T>
  Visited(const Model<T>& model, const Batch& batch);
  /// All hard paths of a run.
  template <class T>
  void add(const Episode<T>& episode);
  void add(const Visited& other);
  /// The probability of the paths nobody took, mean over the examples; of each the largest after any choice. NaN if it is not
  /// known: nothing was kept, or all paths are mixtures.
  double missing() const;

 private:
  static constexpr double most = 1e5;  // outcomes of an example that are remembered
  bool kept_ = true, seen_ = false;
  double rounding_;
  std::vector<std::map<std::pair<int, std::uint64_t>, double>> of_example_;  // (choice, hash of the path) -> probability
};

}  // namespace hardgrad::measurement
