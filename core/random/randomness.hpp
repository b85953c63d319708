// Noise sources of estimators. Every draw is keyed by its place (example, replica, step, index, column). The same place gives
// the same number, independent of the order of draws, the number of threads and the rest of the batch.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "core/random/gauss_rules.hpp"
#include "core/random/key.hpp"
#include "core/support/error.hpp"

namespace hardgrad {

struct Race;
struct WithoutOne;

/// The place (key) of one draw.
struct Draw {
  std::uint32_t example = 0;  ///< id of the example in its data set, not its position in the batch
  std::uint32_t replica = 0;  ///< index of the sample of the example
  std::uint32_t step = 0;     ///< index of the choice
  std::uint32_t index = 0;    ///< index of the draw within the choice
  std::uint32_t column = 0;   ///< index among the choices made at once
  /// A value of `step`: the draw belongs to the whole example, not to one of its samples.
  static constexpr std::uint32_t whole = ~0u;
};

/// A bit of `Draw::index` that is reserved for options drawn before continuous noise (Randomness::options_first).
inline constexpr std::uint32_t option_index = 0x20000000u;

/// How an estimate depends on a uniform number u, for quadrature over u. Between the breaks it is analytic, or a polynomial in
/// u of degree at most 5.
struct Pieces {
  std::span<const double> breaks = {};  ///< in (0, 1), in any order
  bool polynomial = false;
  bool jumps = false;  ///< other breaks are unknown, because those of other draws depend on u: no quadrature is possible
};

/// A noise source. Implementations: keyed pseudo-random numbers, and the replay, which visits every outcome.
class Randomness {
 public:
  virtual ~Randomness() = default;
  /// An index drawn with the given probabilities (which sum to 1 up to rounding).
  virtual int categorical(std::span<const double> probabilities, Draw where) = 0;
  /// The same for D columns, from where.column on. option[d] is drawn with the first options[d] entries of row d of
  /// probabilities [D, width]. A column with one option draws nothing and gets 0.
  virtual void categorical(std::span<const double> probabilities, std::size_t width, std::span<const int> options, Draw where,
                           std::span<int> option);
  /// The random words of D adjacent columns, from where.column on: the numbers off whose upper 53 bits `uniform` and
  /// `categorical` are read, for code that reads many options at once. False, and no words, where draws are not read off words.
  virtual bool words(Draw /*where*/, std::span<std::uint64_t> /*word*/) { return false; }
  /// A number in the open interval (0, 1).
  virtual double uniform(Draw where, const Pieces& pieces = {}) = 0;
  /// A logistic number: the logit of `uniform`. The estimate is an analytic function of it except at `edge`, and may vary near
  /// `edge` even if that is far in a tail.
  virtual double logistic(Draw where, double edge);
  /// Logistic numbers x [N, D]: at each place and, from there on, the next D - 1 columns.
  virtual void logistic(std::span<const Draw> where, std::span<const double> edges, std::span<double> x);
  /// A number of a standard distribution. The estimate is a smooth function of it. Computed from uniform numbers at `where` and
  /// at indices that are reserved for this.
  virtual double standard(Standard noise, Draw where);
  double normal(Draw where) { return standard(Standard::normal, where); }
  /// True if draws visit every outcome. Code that can draw the same distribution by continuous noise or by categorical draws
  /// must then use the categorical draws.
  virtual bool enumerates() const { return false; }
  /// True if options are drawn from another law than asked for. Code that reads an option off continuous noise must then draw the
  /// option first, and the noise given it.
  virtual bool options_first() const { return false; }
  /// Says that the categorical draw to come at `where` matters under another law, too: that of the policy that is trained where the
  /// behaviour policy draws.
  virtual void aim(std::span<const double> /*law*/, Draw /*where*/) {}
  /// The law of the race of `where`; null: its own. Only where options come first.
  virtual const WithoutOne* without_one(Draw /*where*/) { return nullptr; }
  /// Tells how a race ended. Only where options come first.
  virtual void ended(const Race& /*race*/, Draw /*where*/) {}
};

/// Counter-based pseudo-random numbers: Philox 4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as
/// 1, 2, 3") from Random123, keyed by a Key, with the place as the counter. Numbers of consecutive columns are computed several
/// at a time and cached. Not thread-safe.
class KeyedRandomness final : public Randomness {
 public:
  explicit KeyedRandomness(Key key) : key_(key) {}
  int categorical(std::span<const double> probabilities, Draw where) override;
  void categorical(std::span<const double> probabilities, std::size_t width, std::span<const int> options, Draw where,
                   std::span<int> option) override;
  bool words(Draw where, std::span<std::uint64_t> word) override;
  double uniform(Draw where, const Pieces& pieces = {}) override;
  using Randomness::logistic;
  void logistic(std::span<const Draw> where, std::span<const double> edges, std::span<double> x) override;
  /// An integer in [0, bound).
  std::uint64_t below(std::uint64_t bound, Draw where);

 private:
  static constexpr std::size_t ahead = 16, places = 8;  ///< columns computed together; cached places
  /// The cached numbers of one place, for columns place.column, place.column + 1, ...
  struct Columns {
    Draw place;
    std::uint32_t count = 0;
    std::array<std::uint64_t, ahead> bits;  // NOLINT: the first `count` are set
  };
  std::uint64_t bits(Draw where);
  Key key_;
  std::array<Columns, places> columns_;
};

/// A random permutation of 0..n-1.
std::vector<int> permutation(std::size_t n, Key key);

// Antithetic noise: samples 2j and 2j + 1 draw normal numbers e and -e (Hammersley & Morton 1956, A new Monte Carlo technique:
// antithetic variates).

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
  bool enumerates() const override { return noise_.enumerates(); }

 private:
  Randomness& noise_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>, double> drawn_;
};

// Every categorical draw checks that its probabilities sum to 1. The draw uses only their ratios, so a wrong common factor
// would go unnoticed.

/// Bug if `total`, the sum of a draw's probabilities, differs from 1 by more than float rounding. NaN passes: the network, not
/// the draw, is at fault then, and its non-finite gradient is reported.
void check_total(double total);

}  // namespace hardgrad
