// Random numbers of a generator, drawn in a fixed order.
#pragma once

#include <cstdint>

#include "core/random/randomness.hpp"

namespace hardgrad::tasks {

class Draws {
 public:
  /// The numbers of an example, the first of them at step `first`.
  explicit Draws(Key key, std::uint32_t example = 0, std::uint32_t first = 0) : random_(key), example_(example), next_(first) {}

  /// An integer in [0, bound).
  template <class N>
  N below(N bound) {
    return static_cast<N>(random_.below(static_cast<std::uint64_t>(bound), place()));
  }
  double between(double low, double high) { return low + (high - low) * random_.uniform(place()); }
  bool chance(double share) { return random_.uniform(place()) < share; }
  /// A number in (0, 1) that depends only on `index`, not on earlier draws.
  double numbered(std::uint32_t index) { return random_.uniform({.example = example_, .step = 1u << 20, .index = index}); }

 private:
  Draw place() { return {.example = example_, .step = next_++}; }
  KeyedRandomness random_;
  std::uint32_t example_, next_;
};

}  // namespace hardgrad::tasks
