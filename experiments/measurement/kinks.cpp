#include "experiments/measurement/kinks.hpp"

#include <algorithm>
#include <array>
#include <boost/math/quadrature/gauss_kronrod.hpp>
#include <cmath>

#include "experiments/measurement/lengths.hpp"
#include "experiments/measurement/noise_enumerator.hpp"
#include "experiments/measurement/quadrature.hpp"

namespace hardgrad::measurement {
namespace {

constexpr std::size_t most_kinks = 8;
constexpr int most_halved = 2000;          // intervals: a function that is rough everywhere has no separate kinks
constexpr int least_rough = 4;             // halvings that gained little
constexpr double negligible = 1e-14;       // relative to the size of f
constexpr double gain_of_analytic = 1e-3;  // per halving; on average the error falls to 1/4 at a kink and 1/2 at a jump

class Bisection {
 public:
  explicit Bisection(const std::function<std::span<const double>(double)>& f) : f_(f) {}

  std::vector<double> kinks() {
    // Two partitions, because the rules cannot see a kink at the end of an interval. Their ends are not round numbers, since
    // kinks often are.
    std::vector<Interval> parts;
    for (double shift : {0.382, 0.743}) {
      double from = 0;
      for (int i = 0; i <= 8; ++i) {
        const double to = i < 8 ? (i + shift) / 8 : 1;
        parts.push_back({from, to, distance(from, to)});
        from = to;
      }
    }
    for (const auto& part : parts) search(part, 0);
    std::sort(found_.begin(), found_.end(), [](const Interval& a, const Interval& b) { return a.from < b.from; });

    std::vector<Interval> apart;  // the worst of neighbouring intervals
    for (const auto& found : found_) {
      if (apart.empty() || found.from - apart.back().to > 8 * std::max(found.width(), apart.back().width()))
        apart.push_back(found);
      else if (found.error > apart.back().error)
        apart.back() = found;
    }
    std::vector<double> places;
    for (const auto& kink : apart)
      if (kink.from > 0 && kink.to < 1) places.push_back(followed(kink));
    return places.size() > most_kinks || halved_ > most_halved ? std::vector<double>() : places;
  }

 private:
  struct Interval {
    double from, to, error;  ///< `error`: distance between the two rules
    double middle() const { return (from + to) / 2; }
    double width() const { return to - from; }
  };

  /// Distance between the integrals of the two rules.
  double distance(double from, double to) {
    using Kronrod = boost::math::quadrature::gauss_kronrod<double, 15>;
    using Gauss = boost::math::quadrature::gauss<double, 7>;
    difference_.clear();
    const double middle = (from + to) / 2, half = (to - from) / 2;
    const auto add = [&](double x, std::size_t i) {
      const auto values = f_(middle + half * x);
      difference_.resize(values.size());
      // Gauss' nodes are every second one of Kronrod's, including the middle.
      const double weight = Kronrod::weights()[i] - (i % 2 == 0 ? Gauss::weights()[i / 2] : 0);
      for (std::size_t p = 0; p < values.size(); ++p) difference_[p] += half * weight * values[p];
      size_ = std::max(size_, length_of(values));
    };
    for (std::size_t i = 0; i < Kronrod::abscissa().size(); ++i) {
      add(Kronrod::abscissa()[i], i);
      if (i > 0) add(-Kronrod::abscissa()[i], i);
    }
    return length_of(difference_);
  }

  /// `rough` grows with each halving that gains little and falls faster with each that gains much: at a narrow peak, halvings
  /// gain little until they reach the peak.
  void search(const Interval& whole, int rough) {
    if (!(whole.error > negligible * size_) || ++halved_ > most_halved) return;
    const double middle = whole.middle();
    const Interval left{whole.from, middle, distance(whole.from, middle)}, right{middle, whole.to, distance(middle, whole.to)};
    rough = left.error + right.error > gain_of_analytic * whole.error ? rough + 1 : std::max(0, rough - 2);
    if (whole.width() > 0x1p-40 && std::max(left.error, right.error) > negligible * size_) {
      search(left, rough);
      search(right, rough);
    } else if (rough >= least_rough) {
      found_.push_back(whole);
    }
  }

  /// The place of a kink, to rounding: repeatedly keeps the worst of three overlapping halves. With only two halves the kink
  /// might lie at the end of one, where the rules see little of it.
  double followed(const Interval& kink) {
    double from = std::max(0.0, kink.from - kink.width() / 2), width = std::min(1.0, kink.to + kink.width() / 2) - from;
    while (width > 0x1p-46) {
      width /= 2;
      double worst = negligible * size_ * width, at = -1;
      for (double start : {from, from + width / 2, from + width})
        if (const double error = distance(start, start + width); error > worst) {
          worst = error;
          at = start;
        }
      if (at < 0) return from + width;
      from = at;
    }
    return from + width / 2;
  }

  const std::function<std::span<const double>(double)>& f_;
  std::vector<Interval> found_;
  std::vector<double> difference_;
  int halved_ = 0;
  double size_ = 0;  // the largest |f| seen
};

}  // namespace

std::vector<double> kinks_of(const std::function<std::span<const double>(double)>& f) { return Bisection(f).kinks(); }

namespace {

std::array<std::uint32_t, 5> place(const Draw& d) { return {d.example, d.replica, d.step, d.index, d.column}; }

/// Fixed noise, except for one draw. Discrete draws, and the stretches of continuous draws, visit all their values.
class FixedNoise final : public NoiseEnumerator {
 public:
  struct Drawn {
    Draw where;
    Stretch stretch;
  };

  FixedNoise() : NoiseEnumerator(false) {}
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
  const auto entry = numbers_.find(place(where));
  return entry == numbers_.end() ? std::span<const double>() : entry->second;
}

Kinks find_kinks(const Estimating& estimate, double most) {
  Kinks kinks;
  FixedNoise noise;
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
