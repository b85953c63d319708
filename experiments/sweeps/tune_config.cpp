#include "experiments/sweeps/config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/estimator/estimator.hpp"
#include "core/random/key.hpp"

namespace hardgrad::sweeps {
namespace {

// Three significant digits are enough for a learning rate and short in a table.
std::string drawn(const TunedAxis& axis, Key key) {
  const double u = static_cast<double>(key.value() >> 11) * 0x1p-53;
  if (!axis.choices.empty()) return axis.choices[static_cast<std::size_t>(u * static_cast<double>(axis.choices.size()))];
  const double x = axis.log ? std::exp(std::log(axis.low) + u * (std::log(axis.high) - std::log(axis.low)))
                            : axis.low + u * (axis.high - axis.low);
  if (axis.whole) return fmt::format("{}", std::llround(std::clamp(x, axis.low, axis.high)));
  return fmt::format("{}", std::clamp(std::stod(fmt::format("{:.3g}", x)), axis.low, axis.high));
}

std::vector<TunedValues> every_combination(const std::vector<const TunedAxis*>& axes) {
  std::vector<TunedValues> all{{}};
  for (const auto* axis : axes) {
    std::vector<TunedValues> longer;
    for (const auto& values : all)
      for (const auto& choice : axis->choices) {
        longer.push_back(values);
        longer.back()[axis->name] = choice;
      }
    all = std::move(longer);
  }
  return all;
}

}  // namespace

std::string TuneConfig::text() const {
  std::string lines;
  for (const auto& axis : axes)
    lines += axis.choices.empty() ? fmt::format("tune.{}={}{} to {}\n", axis.name, axis.log ? "log " : "", axis.low, axis.high)
                                  : fmt::format("tune.{}={}\n", axis.name, fmt::join(axis.choices, ", "));
  return lines + fmt::format("tune.trials={}\ntune.seeds={}\ntune.rounds={}\ntune.keep={}\ntune.metric={}\ntune.split={}\n",
                             trials, fmt::join(seeds, ", "), fmt::join(rounds, ", "), keep, metric, to_string(split));
}

std::vector<std::size_t> TuneConfig::sizes(std::size_t settings) const {
  std::vector<std::size_t> result;
  for (auto size = settings; size > 1 && result.size() < rounds.size();) {
    result.push_back(size);
    const auto share = std::ceil(static_cast<double>(size) * keep - 1e-9);  // a third of 9 is 3
    size = std::clamp<std::size_t>(static_cast<std::size_t>(share), 1, size);
  }
  return result;
}

bool applies(const TunedAxis& axis, const std::string& estimator) {
  if (!axis.of_estimator()) return true;
  const auto& declared = Estimators::instance().at(Spec::parse(estimator).name).parameters;
  return std::any_of(declared.begin(), declared.end(), [&](const auto& info) { return info.name == axis.parameter(); });
}

std::vector<TunedValues> settings_to_try(const TuneConfig& tune, std::uint64_t root_seed, const std::string& estimator) {
  std::vector<const TunedAxis*> axes;
  for (const auto& axis : tune.axes)
    if (applies(axis, estimator)) axes.push_back(&axis);
  if (tune.trials == 0) return every_combination(axes);
  const auto key = Key(root_seed) / "tune";
  std::vector<TunedValues> found;
  std::set<TunedValues> seen;
  // Enough samples to find all of a few: each of n equally likely settings is missed with probability about exp(-100).
  for (std::size_t draw = 0; found.size() < tune.trials && draw < 100 * tune.trials; ++draw) {
    TunedValues values;
    for (const auto* axis : axes) values[axis->name] = drawn(*axis, key / axis->name / draw);
    if (seen.insert(values).second) found.push_back(std::move(values));
  }
  return found;
}

}  // namespace hardgrad::sweeps
