// Laws of whole samples where a behaviour policy q draws them and another policy p is trained: they reach the paths z with the
// largest ratios p(z) / q(z), which q may never draw.
#pragma once

#include <array>
#include <cstddef>
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

  /// The laws, up to factors, with the scores s_t = one_hot(z_t) - p_t at the logits and n choices: of the trained policy; the
  /// summands of the second moments of scores with their ratios, of whole samples, of single choices
  /// and their geometric means; all paths alike.
  ///
  ///   p    p^2 / q sum_t |s_t|^2    q sum_t (p_t / q_t)^2 |s_t|^2    q (p / q)^(2/n) sum_t |s_t|^2    1
  enum Law : char { trained, samples, choices, means, alike };
  static constexpr std::size_t laws = 5;
  /// [options] of each law: the sums over the paths that go on with an option, at a place of the tree.
  using Place = std::array<std::vector<double>, laws>;
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
