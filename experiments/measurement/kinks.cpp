#include "experiments/measurement/kinks.hpp"

#include <algorithm>
#include <cmath>

#include "experiments/measurement/bisection.hpp"
#include "experiments/measurement/replay.hpp"
#include "experiments/measurement/stretch.hpp"

namespace hardgrad::measurement {
namespace {

std::array<std::uint32_t, 5> place(const Draw& d) { return {d.example, d.replica, d.step, d.index, d.column}; }

/// Fixed noise, except for one draw. Discrete draws, and the stretches of continuous draws, visit all their values.
class Held final : public Replay {
 public:
  struct Drawn {
    Draw where;
    Stretch stretch;
  };

  Held() : Replay(false) {}
  /// Before a run: `varied` is the index of the continuous draw that varies; -1 for none.
  void hold(std::ptrdiff_t varied, double share) {
    begin();
    drawn_.clear();
    varied_ = varied;
    share_ = share;
  }
  /// The continuous draws of the last run.
  const std::vector<Drawn>& drawn() const { return drawn_; }

  double uniform(Draw where, const Pieces& pieces) override { return held(where, uniform_stretches(pieces.breaks)); }
  using Randomness::logistic;
  double logistic(Draw where, double edge) override { return held(where, logistic_stretches(edge, {})); }

 private:
  double held(Draw where, const std::vector<Stretch>& stretches) {
    const std::vector<double> equal(stretches.size(), 1.0 / static_cast<double>(stretches.size()));
    const auto& stretch = stretches[static_cast<std::size_t>(categorical(equal, where))];
    constexpr double somewhere = 0.43;  // not in the middle, where symmetric problems have their kinks
    const double share = static_cast<std::ptrdiff_t>(drawn_.size()) == varied_ ? share_ : somewhere;
    drawn_.push_back({where, stretch});
    return stretch.at(share, 1 - share);
  }

  std::vector<Drawn> drawn_;
  std::ptrdiff_t varied_ = -1;
  double share_ = 0;
};

}  // namespace

void Kinks::add(const Draw& where, double number) {
  auto& numbers = numbers_[place(where)];
  const auto same = [&](double known) { return std::abs(known - number) <= 1e-6 * std::max(1.0, std::abs(number)); };
  if (std::none_of(numbers.begin(), numbers.end(), same)) numbers.push_back(number);
}

std::span<const double> Kinks::of(const Draw& where) const {
  const auto found = numbers_.find(place(where));
  return found == numbers_.end() ? std::span<const double>() : found->second;
}

Kinks find_kinks(const Estimating& estimate, double most) {
  Kinks kinks;
  Held noise;
  double runs = 0;
  const auto run = [&](std::ptrdiff_t varied, double share) {
    ++runs;
    noise.hold(varied, share);
    return estimate(noise);
  };
  do {
    run(-1, 0);
    const auto drawn = noise.drawn();
    for (std::size_t i = 0; i < drawn.size() && runs < most; ++i)
      for (double share : kinks_of([&](double at) { return run(static_cast<std::ptrdiff_t>(i), at); }))
        kinks.add(drawn[i].where, drawn[i].stretch.at(share, 1 - share));
  } while (runs < most && noise.next());
  return kinks;
}

}  // namespace hardgrad::measurement
