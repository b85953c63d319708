#include "experiments/measurement/defensive_mixture.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace hardgrad::measurement {
namespace {

/// The place in [0, count) of replicate `index`: multiples of the golden ratio, so that few replicates reach all places evenly.
int spread(Key noise, std::uint64_t index, int count) {
  const double start = KeyedRandomness(noise / "flat draw").uniform({});
  const double place = start + static_cast<double>(index) * (std::numbers::phi - 1);
  return std::min(count - 1, static_cast<int>((place - std::floor(place)) * count));
}

bool is_peaked(std::span<const double> p) {
  return std::any_of(p.begin(), p.end(), [](double x) { return x > 0 && x < DefensiveMixture::rare; });
}

/// u: a third each of p without its most probable option, of the square roots of p, and of the possible options alike. Of many
/// options with a rare event in common the first finds one, of few each is found by the last.
void flatten(std::span<const double> p, std::vector<double>& u) {
  const auto top = static_cast<std::size_t>(std::max_element(p.begin(), p.end()) - p.begin());
  double others = 0, roots = 0, possible = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (!(p[i] > 0)) continue;
    if (i != top) others += p[i];
    roots += std::sqrt(p[i]);
    ++possible;
  }
  u.assign(p.size(), 0);
  if (!(others > 0)) {
    u[top] = 1;
    return;
  }
  for (std::size_t i = 0; i < p.size(); ++i)
    if (p[i] > 0) u[i] = ((i == top ? 0 : p[i] / others) + std::sqrt(p[i]) / roots + 1 / possible) / 3;
}

/// The probabilities of both sides of a logistic number's edge.
std::array<double, 2> sides(double edge) { return {1 / (1 + std::exp(-edge)), 1 / (1 + std::exp(edge))}; }

// The kinds of flat replicates, which are every second one, in turn.
enum class Kind { draw, pair, sample };
Kind kind_of(std::uint64_t index, const MixturePlan& plan) {
  const auto turn = index / 2 % 4;
  if (plan.samples > 0 && (plan.draws == 0 || turn % 2 == 1)) return Kind::sample;
  return plan.draws > 1 && turn % 2 == 1 ? Kind::pair : Kind::draw;
}

}  // namespace

DefensiveMixture::DefensiveMixture(Key noise, std::uint64_t index, const MixturePlan& plan)
    : noise_(noise / index), flat_noise_(noise / index / "flat"), plan_(plan), options_first_(!plan.empty()) {
  if (index % 2 == 0 || !options_first_) return;
  const auto kind = kind_of(index, plan);
  if (kind == Kind::sample) {
    flat_sample_ = spread(noise, index / 4, plan.samples);
    return;
  }
  const int place = spread(noise, index / 2, plan.examples * plan.draws);
  flat_example_ = place / plan.draws;
  flat_ = place % plan.draws;
  if (kind == Kind::draw) return;
  other_flat_ = spread(noise / index, 0, plan.draws - 1);  // among the others
  other_flat_ += other_flat_ >= flat_;
}

DefensiveMixture DefensiveMixture::trial(Key noise, bool samples) {
  DefensiveMixture random(noise, 0, {.samples = samples});
  random.options_first_ = true;
  return random;
}

void DefensiveMixture::rekey(Key noise) {
  noise_ = KeyedRandomness(noise);
  flat_noise_ = KeyedRandomness(noise / "flat");
}

bool DefensiveMixture::next_is_flat(const Draw& where) {
  if (now_ >= peaked_.size() || peaked_[now_].example != where.example) {
    const auto position =
        std::find_if(peaked_.begin(), peaked_.end(), [&](const auto& p) { return p.example == where.example; });
    now_ = static_cast<std::size_t>(position - peaked_.begin());
    if (position == peaked_.end()) peaked_.push_back({where.example});
  }
  const int next = peaked_[now_].seen++;
  return static_cast<int>(now_) == flat_example_ && (next == flat_ || next == other_flat_);
}

void DefensiveMixture::count(double ratio) {
  auto& peaked = peaked_[now_];
  if (peaked.seen > plan_.draws) return;
  peaked.ratios += ratio;
  peaked.squares += ratio * ratio;
}

MixturePlan DefensiveMixture::seen() const {
  MixturePlan plan{.examples = static_cast<int>(peaked_.size()), .samples = static_cast<int>(samples_.size())};
  for (const auto& peaked : peaked_) plan.draws = std::max(plan.draws, peaked.seen);
  return plan;
}

// A run with fewer examples, draws or samples than planned may make none of them flat: their share has the ratio 1.
double DefensiveMixture::weight() const {
  const double n = plan_.draws, samples = plan_.samples;
  if (plan_.empty()) return 1;
  double ratio[3] = {};
  if (n > 0) {
    double draws = plan_.examples, pairs = plan_.examples;
    for (std::size_t i = 0; i < peaked_.size() && i < static_cast<std::size_t>(plan_.examples); ++i) {
      const double missing = std::max(0, plan_.draws - peaked_[i].seen);
      const double sum = peaked_[i].ratios + missing, squares = peaked_[i].squares + missing;
      draws += sum / n - 1;
      if (n > 1) pairs += std::max(0.0, sum * sum - squares) / (n * (n - 1)) - 1;
    }
    ratio[int(Kind::draw)] = draws / plan_.examples;
    ratio[int(Kind::pair)] = pairs / plan_.examples;
  }
  if (samples > 0) {
    double of_samples = samples;
    for (const auto& [place, sample] : samples_)
      if (sample.number < plan_.samples) of_samples += sample.ratio - 1;
    ratio[int(Kind::sample)] = of_samples / samples;
  }
  double mean = 0;
  for (std::uint64_t turn = 0; turn < 4; ++turn) mean += ratio[int(kind_of(2 * turn + 1, plan_))] / 4;
  return 2 / (1 + mean);
}

void DefensiveMixture::set_sample_law(std::span<const double> p, const Draw& where) {
  const auto aimed = aims_.find(place(where));
  if (aimed == aims_.end() || aimed->second.size() != p.size()) return flatten(p, sample_law_);
  sample_law_ = aimed->second;
  double possible = 0;
  for (std::size_t i = 0; i < p.size(); ++i) possible += sample_law_[i] *= p[i] > 0;
  if (!(possible > 0)) return flatten(p, sample_law_);
  for (double& x : sample_law_) x /= possible;
}

int DefensiveMixture::categorical(std::span<const double> p, Draw where) {
  if (!options_first_) return noise_.categorical(p, where);
  const bool peaked = is_peaked(p), whole = plan_.samples > 0 && p.size() > 1;
  if (!peaked && !whole) return noise_.categorical(p, where);
  const bool flat = peaked && next_is_flat(where);
  if (peaked) flatten(p, flat_law_);
  int option;
  if (whole) {
    set_sample_law(p, where);
    auto& sample =
        samples_.try_emplace({where.example, where.replica}, Sample{static_cast<int>(samples_.size())}).first->second;
    option = flat                            ? flat_noise_.categorical(flat_law_, where)
             : sample.number == flat_sample_ ? flat_noise_.categorical(sample_law_, where)
                                             : noise_.categorical(p, where);
    sample.ratio *= sample_law_[option] / p[option];
  } else {
    option = flat ? flat_noise_.categorical(flat_law_, where) : noise_.categorical(p, where);
  }
  if (peaked) count(flat_law_[option] / p[option]);
  return option;
}

void DefensiveMixture::categorical(std::span<const double> probabilities, std::size_t width, std::span<const int> options,
                                   Draw where, std::span<int> option) {
  const auto of_column = [&](std::size_t d) { return probabilities.subspan(d * width, static_cast<std::size_t>(options[d])); };
  const auto counted = [&](std::size_t d) { return options[d] > 1 && (plan_.samples > 0 || is_peaked(of_column(d))); };
  noise_.categorical(probabilities, width, options, where, option);  // many at a time; those that count are drawn again
  if (!options_first_) return;
  for (std::size_t d = 0; d < options.size(); ++d, ++where.column)
    if (counted(d)) option[d] = categorical(of_column(d), where);
}

double DefensiveMixture::uniform(Draw where, const Pieces& pieces) {
  if (!options_first_ || pieces.breaks.empty()) return noise_.uniform(where, pieces);
  std::vector<double> ends{0, 1};
  for (double b : pieces.breaks)
    if (b > 0 && b < 1) ends.push_back(b);
  std::sort(ends.begin(), ends.end());
  std::vector<double> length(ends.size() - 1);
  for (std::size_t i = 0; i < length.size(); ++i) length[i] = ends[i + 1] - ends[i];
  if (!is_peaked(length)) return noise_.uniform(where, pieces);
  flatten(length, flat_law_);
  const double u = noise_.uniform(where, pieces);
  std::size_t piece = static_cast<std::size_t>(std::upper_bound(ends.begin() + 1, ends.end() - 1, u) - ends.begin()) - 1;
  const bool flat = next_is_flat(where);
  if (flat) piece = static_cast<std::size_t>(flat_noise_.categorical(flat_law_, where));
  count(flat_law_[piece] / length[piece]);
  return flat ? ends[piece] + length[piece] * u : u;
}

// Relaxed choices of a low temperature vary only near the edge, at a distance that is not known: it is drawn from 1/d.
double DefensiveMixture::logistic(Draw where, double edge) {
  constexpr double nearest = 1e-5, furthest = 10;
  static const double logs = std::log(furthest / nearest);
  double x = noise_.logistic(where, edge);
  if (!options_first_ || !std::isfinite(edge)) return x;
  const auto p = sides(edge);
  const bool peaked = is_peaked(p);
  if (next_is_flat(where)) {
    const double u = flat_noise_.uniform(where);
    const auto other = [&](std::uint32_t index) {
      auto at = where;
      at.index ^= 0x10000000u * index;
      return flat_noise_.uniform(at);
    };
    if (peaked && other(1) < 0.5) {
      flatten(p, flat_law_);
      const bool above = other(2) < flat_law_[1];
      const double share = p[above] * u;  // log u - log(1 - u) has full precision in the lower tail
      x = std::log(share) - std::log1p(-share);
      if (above) x = -x;
    } else {
      x = edge + (other(2) < 0.5 ? -1 : 1) * nearest * std::exp(logs * u);
    }
  }
  const double distance = std::abs(x - edge), e = std::exp(-std::abs(x));
  const double near = distance >= nearest && distance <= furthest ? (1 + e) * (1 + e) / e / (2 * distance * logs) : 0;
  double ratio = near;
  if (peaked) {
    flatten(p, flat_law_);
    const int side = x > edge;
    ratio = 0.5 * near + 0.5 * flat_law_[side] / p[side];
  }
  count(ratio);
  return x;
}

double DefensiveMixture::standard(Standard noise, Draw where) {
  const double x = noise_.standard(noise, where);
  if (!options_first_ || noise != Standard::normal) return x;
  constexpr double wide = 3;  // half of the draws keep the deviation 1
  const bool flat = next_is_flat(where);
  const double y = flat && flat_noise_.uniform(where) < 0.5 ? wide * x : x;
  count(0.5 + 0.5 / wide * std::exp(0.5 * y * y * (1 - 1 / (wide * wide))));
  return y;
}

}  // namespace hardgrad::measurement
