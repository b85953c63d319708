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
// Half of the flat replicates have two flat draws of one example. Where samples are without replacement, half of the flat
// replicates leave out a dominant outcome instead (dominant_outcomes.hpp), because samples without it may carry as much of the
// variance as all others; samples that lack one come from the law and from these alone, all others from the law and from flat draws.
// Off policy, ratios of whole samples grow where the behaviour policy rarely goes: there three quarters of the flat replicates draw
// all choices of one sample, or of two of an example, from laws of whole samples (path_laws.hpp), each in turn. The mean above is
// then over these kinds, too.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/random/race.hpp"
#include "core/random/randomness.hpp"
#include "experiments/measurement/dominant_outcomes.hpp"
#include "experiments/measurement/path_laws.hpp"

namespace hardgrad::measurement {

/// The draws that may be made flat: one or two of one example, or all of one or two of its samples.
struct MixturePlan {
  int examples = 0;                            ///< with peaked draws, or samples of a behaviour policy
  int draws = 0;                               ///< peaked draws of an example, at most
  int samples = 0;                             ///< such samples of an example, at most
  std::shared_ptr<const PathLaws> paths = {};  ///< of samples of a behaviour policy, if known
  /// Of samples without replacement; null: none.
  std::shared_ptr<const DominantOutcomes> dominant = {};

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
  void aim(std::span<const double> law, Draw where) override { aims_[place_of(where)].assign(law.begin(), law.end()); }
  const WithoutOne* without_one(Draw where) override;
  void ended(const Race& race, Draw where) override;

  /// A plan for the draws and samples of the run so far.
  MixturePlan seen() const;
  /// The races of the run so far.
  const std::map<DrawPlace, Race>& races() const { return races_; }
  /// p(z) / q(z) of the run so far.
  double weight() const;

 private:
  struct Sample {
    std::uint32_t replica;
    Key place;                                                ///< in the tree of paths
    std::array<double, PathLaws::laws> ratio{1, 1, 1, 1, 1};  ///< of each law of a whole flat sample to the draws' own
    double mean_ratio() const;
  };
  /// The samples of one example so far, in the order of their first draws.
  struct Sampled {
    std::uint32_t example;
    std::vector<Sample> samples = {};
  };
  /// The place of a flat sample, or of a second one, among those of its example, and its law.
  struct FlatSample {
    int place = -1;
    std::size_t law = 0;
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
  /// The sample of a draw, and whether it is made flat: with which law.
  std::pair<Sample*, const FlatSample*> sample_of(const Draw& where);
  /// The ratios of one and of two whole flat samples.
  std::array<double, 2> sample_ratios() const;
  /// The laws of a draw in a whole flat sample, and the part of the aim in the flat law of a draw.
  void set_aimed_laws(std::span<const double> p, const Draw& where, Key place, bool peaked);

  KeyedRandomness noise_, flat_noise_;
  MixturePlan plan_;
  bool options_first_;
  int flat_example_ = -1, flat_ = -1, other_flat_ = -1;
  std::array<FlatSample, 2> flat_samples_;
  std::vector<Peaked> peaked_;  // in the order of their first draws
  std::size_t now_ = 0;         // the example of the last counted draw
  std::vector<double> flat_law_;
  std::array<std::vector<double>, PathLaws::laws> sample_laws_;
  std::vector<Sampled> sampled_;  // in the order of the first draws, if the plan has samples
  std::map<DrawPlace, std::vector<double>> aims_;
  const DominantOutcomes::One* without_ = nullptr;
  std::map<DrawPlace, Race> races_;
};

}  // namespace hardgrad::measurement
