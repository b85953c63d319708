// Laws of whole samples where a behaviour policy q draws them and another policy p is trained: they reach the paths z with the
// largest ratios p(z) / q(z), which q may never draw.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "core/models/model.hpp"
#include "core/random/key.hpp"
#include "experiments/support/stop.hpp"

namespace hardgrad::measurement {

/// The tree of all paths of a batch.
class PathLaws {
 public:
  /// Most paths of an example that are enumerated for the laws.
  static constexpr double most_paths = 4096;

  /// Unnormalised probabilities [options] of the option at a place of the tree, from sums over the paths that go on there.
  struct Place {
    std::vector<double> trained;  ///< p(z)
    std::vector<double> squares;  ///< p(z)^2 / q(z) sum_t |one_hot(z_t) - p_t|^2: the second moment of the scores with their ratios
    std::vector<double> tokens;   ///< q(z) sum_t (p_t / q_t)^2 |one_hot(z_t) - p_t|^2: the same of ratios of single choices
    std::vector<double> alike;    ///< 1
  };
  /// Of the trained and the behaviour policy of the model. Null if none draws, choices are not single options that feed later
  /// ones, or an example has too many paths.
  template <class T>
  static std::shared_ptr<const PathLaws> of(const Model<T>& model, const Batch& batch, const Stop& stop = {});

  /// The key of an example's root, and of the place after an option. Choices of one option are left out.
  static Key root(std::uint32_t example) { return Key(example); }
  static Key after(Key place, std::uint32_t step, int option) { return place / step / static_cast<std::uint64_t>(option); }
  /// Null if there is no such place.
  const Place* at(Key place) const;

 private:
  std::map<std::uint64_t, Place> places_;
};

}  // namespace hardgrad::measurement
