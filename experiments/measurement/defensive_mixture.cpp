#include "experiments/measurement/defensive_mixture.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>
#include <tuple>

namespace hardgrad::measurement {
namespace {

/// A number in [0, 1) for replicate `index`: multiples of the golden ratio, so that few replicates reach all places evenly.
double spread(Key noise, std::uint64_t index) {
  const double start = KeyedRandomness(noise / "flat draw").uniform({});
  const double place = start + static_cast<double>(index) * (std::numbers::phi - 1);
  return place - std::floor(place);
}
int spread(Key noise, std::uint64_t index, int count) {
  return std::min(count - 1, static_cast<int>(spread(noise, index) * count));
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
enum class Kind { draw, pair, sample, samples, without };
constexpr int kinds = 5;
Kind kind_of(std::uint64_t index, const MixturePlan& plan) {
  const auto turn = index / 2 % 4;
  if (plan.samples > 0 && (plan.draws == 0 || turn != 0)) return turn == 2 && plan.samples > 1 ? Kind::samples : Kind::sample;
  if (plan.dominant && turn % 2 == 1) return Kind::without;
  return plan.draws > 1 && turn % 2 == (plan.dominant ? 0 : 1) && turn > 0 ? Kind::pair : Kind::draw;
}

}  // namespace

DefensiveMixture::DefensiveMixture(Key noise, std::uint64_t index, const MixturePlan& plan)
    : noise_(noise / index), flat_noise_(noise / index / "flat"), plan_(plan), options_first_(!plan.empty()) {
  if (index % 2 == 0 || !options_first_) return;
  const auto kind = kind_of(index, plan);
  if (kind == Kind::without) {
    without_ = &plan_.dominant->at(spread(noise, index / 4));
    return;
  }
  const bool whole = kind == Kind::sample || kind == Kind::samples;
  const int each = whole ? plan.samples : plan.draws, place = spread(noise, index / 2, plan.examples * each);
  flat_example_ = place / each;
  const int first = place % each;
  const auto another = [&] {
    const int other = spread(noise / index, 0, each - 1);  // among the others
    return other + (other >= first);
  };
  if (whole) {
    KeyedRandomness random(noise / index / "law");
    // The laws in turn, from a random one on, so that each has its share on average for any number of replicates.
    const auto start = static_cast<std::uint64_t>(KeyedRandomness(noise / "law").below(PathLaws::laws, {}));
    flat_samples_[0] = {first, static_cast<std::size_t>((index / 4 + start) % PathLaws::laws)};
    if (kind == Kind::samples) flat_samples_[1] = {another(), static_cast<std::size_t>(random.below(PathLaws::laws, {}))};
  } else {
    flat_ = first;
    if (kind == Kind::pair) other_flat_ = another();
  }
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
  MixturePlan plan{.examples = static_cast<int>(std::max(peaked_.size(), sampled_.size()))};
  for (const auto& peaked : peaked_) plan.draws = std::max(plan.draws, peaked.seen);
  for (const auto& of : sampled_) plan.samples = std::max(plan.samples, static_cast<int>(of.samples.size()));
  return plan;
}

double DefensiveMixture::Sample::mean_ratio() const {
  return std::accumulate(ratio.begin(), ratio.end(), 0.0) / static_cast<double>(PathLaws::laws);
}

std::array<double, 2> DefensiveMixture::sample_ratios() const {
  const auto n = static_cast<std::size_t>(plan_.samples), examples = static_cast<std::size_t>(plan_.examples);
  double one = 0, two = 0;
  for (std::size_t b = 0; b < examples; ++b) {
    std::vector<double> ratio(n, 1.0);
    if (b < sampled_.size())
      for (std::size_t k = 0; k < std::min(n, sampled_[b].samples.size()); ++k) ratio[k] = sampled_[b].samples[k].mean_ratio();
    double sum = 0, products = 0;
    for (const double r : ratio) {
      products += 2 * sum * r;
      sum += r;
    }
    one += sum / static_cast<double>(n * examples);
    if (n > 1) two += products / static_cast<double>(n * (n - 1) * examples);
  }
  return {one, two};
}

const WithoutOne* DefensiveMixture::without_one(Draw where) {
  return without_ && without_->place == place_of(where) ? &without_->law : nullptr;
}

void DefensiveMixture::ended(const Race& race, Draw where) { races_[place_of(where)] = race; }

// A run with fewer examples, draws or samples than planned may make none of them flat: their share has the ratio 1.
double DefensiveMixture::weight() const {
  const double n = plan_.draws;
  if (plan_.empty()) return 1;
  double ratio[kinds] = {};
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
  if (plan_.samples > 0) {
    const auto [one, two] = sample_ratios();
    ratio[int(Kind::sample)] = one;
    ratio[int(Kind::samples)] = two;
  }
  if (plan_.dominant) {
    const auto lacking = plan_.dominant->lacking(races_);
    if (lacking.any && flat_example_ >= 0) return 0;
    if (lacking.any) ratio[int(Kind::draw)] = ratio[int(Kind::pair)] = 0;
    ratio[int(Kind::without)] = lacking.ratio;
  }
  double mean = 0;
  for (std::uint64_t turn = 0; turn < 4; ++turn) mean += ratio[int(kind_of(2 * turn + 1, plan_))] / 4;
  return 2 / (1 + mean);
}

auto DefensiveMixture::sample_of(const Draw& where) -> std::pair<Sample*, const FlatSample*> {
  auto of = std::find_if(sampled_.begin(), sampled_.end(), [&](const auto& s) { return s.example == where.example; });
  if (of == sampled_.end()) of = sampled_.insert(of, {where.example});
  auto sample = std::find_if(of->samples.begin(), of->samples.end(), [&](const auto& s) { return s.replica == where.replica; });
  if (sample == of->samples.end()) sample = of->samples.insert(sample, {where.replica, PathLaws::root(where.example)});
  const auto place = static_cast<int>(sample - of->samples.begin());
  const bool here = of - sampled_.begin() == flat_example_;
  const auto flat =
      std::find_if(flat_samples_.begin(), flat_samples_.end(), [&](const auto& f) { return here && f.place == place; });
  return {&*sample, flat == flat_samples_.end() ? nullptr : &*flat};
}

// Without the tree of paths each draw is aimed by itself, whatever may follow.
void DefensiveMixture::set_aimed_laws(std::span<const double> p, const Draw& where, Key place_in_tree, bool peaked) {
  const auto set = [&](std::vector<double>& law, const auto& of) {
    double sum = 0;
    for (std::size_t i = 0; i < p.size(); ++i)
      if (p[i] > 0) sum += of(i);
    if (!(sum > 0) || !std::isfinite(sum)) return flatten(p, law);
    law.assign(p.size(), 0);
    for (std::size_t i = 0; i < p.size(); ++i)
      if (p[i] > 0) law[i] = of(i) / sum;
  };
  const auto* known = plan_.paths ? plan_.paths->at(place_in_tree) : nullptr;
  const auto aimed = aims_.find(place_of(where));
  const auto* target = aimed != aims_.end() && aimed->second.size() == p.size() ? &aimed->second : nullptr;
  for (std::size_t law = 0; law < PathLaws::laws; ++law) {
    if (known && known->front().size() == p.size())
      set(sample_laws_[law], [&](std::size_t i) { return (*known)[law][i]; });
    else if (target && law != PathLaws::alike)
      set(sample_laws_[law],
          [&](std::size_t i) { return (*target)[i] * (law == PathLaws::samples ? (*target)[i] / p[i] : 1); });
    else
      flatten(p, sample_laws_[law]);
  }
  if (!peaked) return;
  flatten(p, flat_law_);
  for (std::size_t i = 0; i < p.size(); ++i)
    flat_law_[i] = 0.5 * flat_law_[i] + 0.25 * sample_laws_[PathLaws::trained][i] + 0.25 * sample_laws_[PathLaws::samples][i];
}

int DefensiveMixture::categorical(std::span<const double> p, Draw where) {
  if (!options_first_) return noise_.categorical(p, where);
  const bool peaked = is_peaked(p), whole = plan_.samples > 0 && p.size() > 1;
  if (!peaked && !whole) return noise_.categorical(p, where);
  const bool flat = peaked && next_is_flat(where);
  Sample* sample = nullptr;
  const FlatSample* flat_sample = nullptr;
  if (whole) {
    std::tie(sample, flat_sample) = sample_of(where);
    set_aimed_laws(p, where, sample->place, peaked);
  } else {
    flatten(p, flat_law_);
  }
  const int option = flat          ? flat_noise_.categorical(flat_law_, where)
                     : flat_sample ? flat_noise_.categorical(sample_laws_[flat_sample->law], where)
                                   : noise_.categorical(p, where);
  if (sample) {
    for (std::size_t law = 0; law < PathLaws::laws; ++law) sample->ratio[law] *= sample_laws_[law][option] / p[option];
    sample->place = PathLaws::after(sample->place, where.step, option);
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
