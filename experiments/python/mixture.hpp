// The noise of one step of a user's code. Estimators may draw in several calls: one mixture (defensive_mixture.hpp) spans all.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/models/batch.hpp"
#include "core/random/randomness.hpp"
#include "experiments/measurement/defensive_mixture.hpp"

namespace hardgrad::python {

/// A call with a seed that the step has used before is the same call again: a backward pass may run a block once more, and JAX
/// asks for the options first. It draws the same numbers, and counts once. New calls are made by one thread at a time.
class Mixture {
 public:
  /// Draws from the law, to count those with a rare option.
  Mixture() : noise_(measurement::DefensiveMixture::trial(Key(), false)) {}
  /// Replicate `index` of those keyed by `seed`, of steps with so many examples that have so many.
  Mixture(std::uint64_t seed, std::uint64_t index, int examples, int draws)
      : noise_(Key(seed) / "mixture", index, {.examples = examples, .draws = draws}) {}

  /// The noise of a call until it ends. The mixture must live as long.
  std::unique_ptr<Randomness> of_call(std::uint64_t seed, const Batch& batch);
  /// Whether the step has made a call with this seed.
  bool knows(std::uint64_t seed) const;
  std::vector<std::uint64_t> seeds() const;
  /// Whether draws share their noise, so that the weight is wrong: different calls with one seed, or two examples with one id.
  bool coupled() const;
  measurement::MixturePlan seen() const { return noise_.seen(); }
  double weight() const { return noise_.weight(); }

 private:
  class New;
  class Again;
  struct Call {
    measurement::DefensiveMixture before;
    bool ended = false;
    measurement::MixturePlan seen = {};  ///< after it
    double weight = 0;                   ///< after it
  };
  measurement::DefensiveMixture noise_;
  const New* drawing_ = nullptr;  // the call whose keys the noise has
  bool coupled_ = false;
  std::map<std::uint64_t, Call> calls_;
  mutable std::mutex calling_;  // guards calls_ and coupled_: other threads may make calls again
};

/// The key of the noise of a draw with this seed.
Key noise_key(std::uint64_t seed);
/// The noise of a call within a mixture, or plain noise if there is none: that of `hardgrad gradient --seed`.
std::unique_ptr<Randomness> noise_of(std::uint64_t seed, const Batch& batch, Mixture* mixture);

}  // namespace hardgrad::python
