#include "experiments/measurement/outcome_visits.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "experiments/measurement/lengths.hpp"

namespace hardgrad::measurement {
namespace {

/// Keyed noise with permuted samples. All possible options are drawn with equal probability, so that samples differ.
class Permuted final : public Randomness {
 public:
  /// Sample k gets the noise of place[k]; samples beyond `place` keep theirs.
  Permuted(Key key, std::vector<std::uint32_t> place) : noise_(key), place_(std::move(place)) {}
  std::size_t samples() const { return samples_; }

  using Randomness::categorical;
  int categorical(std::span<const double> probabilities, Draw where) override {
    std::vector<double> alike;
    for (const double p : probabilities) alike.push_back(p > 0 ? 1 : 0);
    const double possible = std::accumulate(alike.begin(), alike.end(), 0.0);
    for (double& p : alike) p /= possible;
    return noise_.categorical(alike, moved(where));
  }
  double uniform(Draw where, const Pieces& pieces) override { return noise_.uniform(moved(where), pieces); }
  using Randomness::logistic;
  double logistic(Draw where, double edge) override { return noise_.logistic(moved(where), edge); }
  double standard(Standard noise, Draw where) override { return noise_.standard(noise, moved(where)); }
  bool enumerates() const override { return true; }

 private:
  Draw moved(Draw where) {
    if (where.step == Draw::whole) return where;
    samples_ = std::max<std::size_t>(samples_, where.replica + 1);
    if (where.replica < place_.size()) where.replica = place_[where.replica];
    return where;
  }
  KeyedRandomness noise_;
  std::vector<std::uint32_t> place_;
  std::size_t samples_ = 0;
};

}  // namespace

template <class T>
bool samples_may_be_permuted(const Estimator<T>& estimator, const Model<T>& model, const Batch& example, SubEstimate part) {
  constexpr std::uint64_t draws = 4;
  Tape<T> tape;
  std::vector<double> own(model.parameters().size()), other = own;
  double longest = 0, furthest = 0;
  for (std::uint64_t i = 0; i < draws; ++i) {
    const Key key = Key(12) / i;
    Permuted as_drawn(key, {});
    drawn(estimator, model, example, part, as_drawn, tape, own);
    const auto samples = static_cast<std::uint32_t>(as_drawn.samples());
    if (samples < 2) return true;
    std::vector<std::uint32_t> by_one;
    for (std::uint32_t k = 0; k < samples; ++k) by_one.push_back((k + 1) % samples);
    for (const auto& places : {std::vector<std::uint32_t>{1, 0}, by_one}) {
      Permuted random(key, places);
      drawn(estimator, model, example, part, random, tape, other);
      longest = std::max({longest, length_of(own), length_of(other)});
      furthest = std::max(furthest, distance_between(own, other));
    }
  }
  return furthest <= (sizeof(T) == 4 ? 1e-4 : 1e-9) * longest;
}

template bool samples_may_be_permuted(const Estimator<float>&, const Model<float>&, const Batch&, SubEstimate);
template bool samples_may_be_permuted(const Estimator<double>&, const Model<double>&, const Batch&, SubEstimate);

}  // namespace hardgrad::measurement
