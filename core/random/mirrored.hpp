// Antithetic noise: samples 2j and 2j + 1 draw normal numbers e and -e (Hammersley & Morton 1956, A new Monte Carlo technique:
// antithetic variates).
#pragma once

#include <map>
#include <tuple>

#include "core/random/randomness.hpp"
#include "core/support/error.hpp"

namespace hardgrad {

/// For one run. Supports normal numbers only.
class MirroredRandomness final : public Randomness {
 public:
  explicit MirroredRandomness(Randomness& noise) : noise_(noise) {}
  int categorical(std::span<const double>, Draw) override { throw Bug("only normal draws are mirrored, not categorical ones"); }
  double uniform(Draw, const Pieces&) override { throw Bug("only normal draws are mirrored"); }
  double standard(Standard noise, Draw where) override {
    if (noise != Standard::normal) throw Bug("only normal draws are mirrored");
    const bool second = where.replica % 2 == 1;
    where.replica -= second;
    const auto place = std::tuple(where.example, where.replica, where.step, where.index, where.column);
    auto drawn = drawn_.find(place);
    if (drawn == drawn_.end()) drawn = drawn_.emplace(place, noise_.normal(where)).first;
    return second ? -drawn->second : drawn->second;
  }
  bool replays() const override { return noise_.replays(); }

 private:
  Randomness& noise_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>, double> drawn_;
};

}  // namespace hardgrad
