// Noise that seeks rare outcomes: importance sampling of an estimator's own draws.
//
// A trained network's choices are peaked: an option of probability 1e-3 may carry half of an estimator's variance, and 256
// replicates rarely draw it. Half of the replicates are therefore drawn from another law, in which one draw of the run, chosen
// at random, is flat. Every replicate gets the weight
//
//   p(z) / q(z) = 1 / (1/2 + 1/2 mean_n u_n(z_n) / p_n(z_n))
//
// of the mixture q of both halves (Hesterberg 1995, Weighted average importance sampling and defensive mixture distributions;
// Veach & Guibas 1995, the balance heuristic), which is at most 2. p_n is the law of draw n given the earlier draws, and u_n its
// flat law. The mean over n is over the draws with a rare option. Where there is none, every weight is 1.
//
// Half of the flat replicates have two flat draws of one example: estimators without replacement may depend on two rare options
// at once. Off policy, ratios of whole samples grow where the behaviour policy rarely goes: there half of the flat replicates
// draw all choices of one sample from the policy that is trained, or from flat laws where that is not known. The mean above is
// then over these kinds, too.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "core/random/randomness.hpp"

namespace hardgrad::measurement {

/// The draws that may be made flat: one or two of one example, or all of a sample.
struct MixturePlan {
  int examples = 0;  ///< with peaked draws
  int draws = 0;     ///< peaked draws of an example, at most
  int samples = 0;   ///< of all examples

  /// True if nothing is to be made flat.
  bool empty() const { return draws == 0 && samples == 0; }
};

/// The noise of one replicate, and its weight.
class DefensiveMixture final : public Randomness {
 public:
  /// An option is rare below this probability: 256 replicates of a single draw show others a dozen times.
  static constexpr double rare = 0.05;

  /// Replicate `index` of those keyed by `noise`. With an empty plan all numbers are those of the law, and all weights 1.
  DefensiveMixture(Key noise, std::uint64_t index, const MixturePlan& plan);
  /// Draws from the law, to find the numbers of a plan. `samples`: whether samples are counted.
  static DefensiveMixture trial(Key noise, bool samples);
  /// The draws that follow are of another call in the same run, whose noise is independent. Not for plans with samples.
  void rekey(Key noise);

  int categorical(std::span<const double> probabilities, Draw where) override;
  void categorical(std::span<const double> probabilities, std::size_t width, std::span<const int> options, Draw where,
                   std::span<int> option) override;
  bool words(Draw where, std::span<std::uint64_t> word) override { return !options_first_ && noise_.words(where, word); }
  /// Flat over the pieces between the breaks.
  double uniform(Draw where, const Pieces& pieces = {}) override;
  using Randomness::logistic;
  /// Flat over both sides of the edge.
  double logistic(Draw where, double edge) override;
  /// A wider normal distribution.
  double standard(Standard noise, Draw where) override;
  bool options_first() const override { return options_first_; }
  void aim(std::span<const double> law, Draw where) override { aims_[place(where)].assign(law.begin(), law.end()); }

  /// A plan for the draws and samples of the run so far.
  MixturePlan seen() const;
  /// p(z) / q(z) of the run so far.
  double weight() const;

 private:
  using Place = std::array<std::uint32_t, 4>;
  static Place place(const Draw& where) { return {where.example, where.replica, where.step, where.column}; }
  struct Sample {
    int number;        ///< in the order of their first draws
    double ratio = 1;  ///< of the law of a whole flat sample to p
  };
  /// The peaked draws of one example so far, and the sums of their u_n / p_n and of its square.
  struct Peaked {
    std::uint32_t example;
    int seen = 0;
    double ratios = 0, squares = 0;
  };
  /// Counts a draw with a rare option. True if it is to be made flat.
  bool next_is_flat(const Draw& where);
  /// Adds u_n / p_n of that draw.
  void count(double ratio);
  /// The law of a draw in a whole flat sample.
  void set_sample_law(std::span<const double> p, const Draw& where);

  KeyedRandomness noise_, flat_noise_;
  MixturePlan plan_;
  bool options_first_;
  int flat_example_ = -1, flat_ = -1, other_flat_ = -1, flat_sample_ = -1;
  std::vector<Peaked> peaked_;  // in the order of their first draws
  std::size_t now_ = 0;         // the example of the last counted draw
  std::vector<double> flat_law_, sample_law_;
  std::map<std::array<std::uint32_t, 2>, Sample> samples_;  // by example and replica, if the plan has samples
  std::map<Place, std::vector<double>> aims_;
};

}  // namespace hardgrad::measurement
