// Outcomes that nearly every sample without replacement has.
//
// Of k outcomes without replacement, an estimate may depend most on samples that lack one of the k - 1 most probable outcomes. With
// one outcome of probability 1 - e and k = 2, they have the probability e^2, and estimates that are 1 / e times as large as the
// others. They are drawn by leaving that outcome T out of the race (core/random/race.hpp). With the more probable ones and T in D,
// all others arrive at c p(z), c = 1 + p(T) / (1 - p(D)), so that the sum of all rates stays 1. The ratio of the law u of these
// races to the law p of all, at a sample S without T whose last outcome arrives at time t, is then
//
//   u(S) / p(S) = prod_{z in S \ D} c exp((c - 1) p(z) (t - t_z)).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "core/random/race.hpp"
#include "core/random/randomness.hpp"

namespace hardgrad::measurement {

/// Example, replica, step and column of a draw.
using DrawPlace = std::array<std::uint32_t, 4>;
inline DrawPlace place_of(const Draw& where) { return {where.example, where.replica, where.step, where.column}; }

/// The dominant outcomes of all races of a run.
class DominantOutcomes {
 public:
  struct One {
    DrawPlace place;         ///< of its race
    std::size_t sample = 0;  ///< k
    WithoutOne law;
    double missing = 0;  ///< the probability that a sample lacks it, about
    double share = 0;    ///< of the replicates that leave one out
  };
  /// Adds the outcomes of a run's races.
  void add(const std::map<DrawPlace, Race>& races);
  /// Those that few samples lack, after all runs.
  void select();
  bool empty() const { return each_.empty(); }
  /// That of a number in [0, 1).
  const One& at(double u) const;

  /// What of these outcomes the races of one run lack.
  struct Lacking {
    bool any = false;
    double ratio = 0;  ///< u / p of the mixture that leaves one out
  };
  Lacking lacking(const std::map<DrawPlace, Race>& races) const;

 private:
  struct Ranked {
    std::size_t sample = 0;
    std::vector<Racer> outcomes;  ///< the most probable k - 1 that were seen
  };
  std::map<DrawPlace, Ranked> ranked_;
  std::vector<One> each_;
};

}  // namespace hardgrad::measurement
