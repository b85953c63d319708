// Where an estimator's noise comes from. Every draw names its place (example, replica, step, index), so that
// the same place draws the same number whatever the order, thread count or batch around it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/random/gauss_rules.hpp"
#include "core/random/key.hpp"

namespace hardgrad {

/// The place of one draw.
struct Draw {
  std::uint32_t example = 0;  ///< the example's identity in its data set, not its position in the batch
  std::uint32_t replica = 0;  ///< which of the example's samples
  std::uint32_t step = 0;     ///< which choice
  std::uint32_t index = 0;    ///< which draw of that choice
  std::uint32_t column = 0;   ///< which of the choices made at once
  /// As `step`: a draw for the example as a whole, not for one of its samples.
  static constexpr std::uint32_t whole = ~0u;
};

/// What is known of whatever depends on a uniform number u, for those who integrate over it: between the breaks it is a
/// polynomial in u (of degree at most 5), or at least analytic.
struct Pieces {
  std::span<const double> breaks = {};  ///< in (0, 1), in any order
  bool polynomial = false;
  bool jumps = false;  ///< there are breaks that cannot be told (those of other draws depend on u): nothing to integrate over
};

/// A source of noise. Implementations: keyed pseudo-random numbers, and the replay that visits every outcome.
class Randomness {
 public:
  virtual ~Randomness() = default;
  /// An index drawn with the given probabilities (which sum to 1 up to rounding).
  virtual int categorical(std::span<const double> probabilities, Draw where) = 0;
  /// The same for columns side by side, from where.column on: `option` [D] with the first options[d] of probabilities [D,
  /// width]. A column with one option draws nothing and gets 0.
  virtual void categorical(std::span<const double> probabilities, std::size_t width, std::span<const int> options, Draw where,
                           std::span<int> option);
  /// A number in the open interval (0, 1).
  virtual double uniform(Draw where, const Pieces& pieces = {}) = 0;
  /// A logistic number: the logit of `uniform`. What depends on it is analytic but at `edge`, near which it may vary, however
  /// far out that is.
  virtual double logistic(Draw where, double edge);
  /// Many of them [N].
  virtual void logistic(std::span<const Draw> where, std::span<const double> edges, std::span<double> x);
  /// A number of a standard distribution, of which an estimate is a smooth function. Made of uniform numbers at `where` and at
  /// indices no draw counts up to.
  virtual double standard(Standard noise, Draw where);
  double normal(Draw where) { return standard(Standard::normal, where); }
  /// True if draws visit every outcome: who has a law both as continuous noise and as categorical draws must then take the
  /// latter.
  virtual bool replays() const { return false; }
};

/// Counter-based pseudo-random numbers: Philox 4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as
/// 1, 2, 3") from Random123, keyed by a Key with the place as the counter. Who draws column after column is served from
/// numbers made several at a time. Not to be shared between threads.
class KeyedRandomness final : public Randomness {
 public:
  explicit KeyedRandomness(Key key) : key_(key) {}
  int categorical(std::span<const double> probabilities, Draw where) override;
  void categorical(std::span<const double> probabilities, std::size_t width, std::span<const int> options, Draw where,
                   std::span<int> option) override;
  double uniform(Draw where, const Pieces& pieces = {}) override;
  using Randomness::logistic;
  void logistic(std::span<const Draw> where, std::span<const double> edges, std::span<double> x) override;
  /// An integer in [0, bound).
  std::uint64_t below(std::uint64_t bound, Draw where);

 private:
  static constexpr std::size_t ahead = 16, places = 8;  ///< columns made together; places that differ in their index alone
  /// The numbers of columns from, from + 1, ... of one place.
  struct Columns {
    Draw place;
    std::uint32_t count = 0;
    std::array<std::uint64_t, ahead> bits;  // NOLINT: the first `count` are set
  };
  std::uint64_t bits(Draw where);
  Key key_;
  std::array<Columns, places> columns_;
};

/// A random order of 0..n-1.
std::vector<int> permutation(std::size_t n, Key key);

}  // namespace hardgrad
