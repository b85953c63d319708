#include "experiments/measurement/dominant_outcomes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hardgrad::measurement {
namespace {

/// Most probability of a sample that lacks an outcome, and of a run where any sample lacks one. Others are seen often enough.
constexpr double rare = 0.002, most_missing = 0.01;
/// Least probability of all outcomes but the dominant ones: below, the rounding of log p is felt.
constexpr double least_rest = 1e-4;
/// Least probability of samples that lack an outcome, over the largest squared probability of the outcomes that are not dominant:
/// both are about the variance that they add, at the size of the gradient.
constexpr double least_part = 0.01;

bool has(const std::vector<Racer>& outcomes, const Racer& wanted) {
  return std::any_of(outcomes.begin(), outcomes.end(), [&](const Racer& z) { return z.answer == wanted.answer; });
}

/// u / p of a sample without the last dominant outcome.
double ratio(const DominantOutcomes::One& of, const Race& race) {
  if (race.outcomes.size() < of.sample) return std::numeric_limits<double>::infinity();  // the law draws no such sample
  const double c = of.law.factor, last = *std::max_element(race.time.begin(), race.time.end());
  double log_ratio = 0;
  for (std::size_t i = 0; i < race.time.size(); ++i)
    if (!has(of.law.dominant, race.outcomes[i]))
      log_ratio += std::log(c) + (c - 1) * std::exp(race.outcomes[i].log_p) * (last - race.time[i]);
  return std::isnan(log_ratio) ? std::numeric_limits<double>::infinity() : std::exp(log_ratio);
}

}  // namespace

void DominantOutcomes::add(const std::map<DrawPlace, Race>& races) {
  for (const auto& [place, race] : races) {
    if (!(race.rest > 0)) continue;
    auto& [sample, outcomes] = ranked_[place];
    sample = std::max(sample, race.outcomes.size());
    for (const auto& z : race.outcomes)
      if (!has(outcomes, z)) outcomes.push_back(z);
    std::stable_sort(outcomes.begin(), outcomes.end(), [](const auto& a, const auto& b) { return a.log_p > b.log_p; });
    outcomes.resize(std::min(outcomes.size(), sample - 1));
  }
}

void DominantOutcomes::select() {
  each_.clear();
  double most = 0;
  for (const auto& [place, ranked] : ranked_) {
    WithoutOne law;
    double rest = 1;  // of the outcomes after these
    for (const auto& z : ranked.outcomes) {
      const double p = std::exp(z.log_p), before = rest;
      rest = law.dominant.empty() ? -std::expm1(z.log_p) : rest - p;
      const auto left = static_cast<double>(ranked.sample - law.dominant.size());
      const double missing = std::pow(std::max(0.0, 1 - p / before), left);
      law.dominant.push_back(z);
      if (!(rest > least_rest)) break;
      law.factor = 1 + p / rest;
      if (missing < rare) each_.push_back({place, ranked.sample, law, missing});
    }
    most = std::max(most, rest * rest);
  }
  std::stable_sort(each_.begin(), each_.end(), [](const One& a, const One& b) { return a.missing > b.missing; });
  double missing = 0, roots = 0;
  std::erase_if(each_, [&](const One& one) {
    if (one.missing < least_part * most) return true;
    if (missing + one.missing > most_missing) return true;
    missing += one.missing;
    return false;
  });
  for (const auto& one : each_) roots += std::sqrt(one.missing);
  for (auto& one : each_) one.share = 0.5 / static_cast<double>(each_.size()) + 0.5 * std::sqrt(one.missing) / roots;
}

auto DominantOutcomes::at(double u) const -> const One& {
  for (const auto& one : each_)
    if ((u -= one.share) < 0) return one;
  return each_.back();
}

auto DominantOutcomes::lacking(const std::map<DrawPlace, Race>& races) const -> Lacking {
  Lacking lacking;
  for (const auto& one : each_) {
    const auto race = races.find(one.place);
    if (race == races.end() || has(race->second.outcomes, one.law.dominant.back())) continue;
    lacking.any = true;
    lacking.ratio += one.share * ratio(one, race->second);
  }
  return lacking;
}

}  // namespace hardgrad::measurement
