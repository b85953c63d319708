#include "experiments/sweeps/plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "core/support/error.hpp"
#include "experiments/support/text.hpp"

namespace hardgrad::sweeps {
namespace {

// The cell with tuned values filled in.
Cell with_values(const SweepConfig& config, Cell cell, const TunedValues& values) {
  for (const auto& [name, value] : values)
    if (find_setting(name)) cell.axes[name] = value;
  cell.settings = settings_of(config, cell.axes);  // overrides match the estimator's name in the sweep
  for (const auto& [name, value] : values)
    if (!find_setting(name))
      cell.axes["estimator"] =
          canonical_spec("estimator", cell.spec("estimator").with(name.substr(name.find('.') + 1), value).text);
  return cell;
}

// A trial trains like a reported run for a share of the time (with the schedule scaled to it), and is evaluated on another
// split. It has no measurements.
void shorten(CellSettings& settings, const TuneConfig& tune, double share) {
  const auto scaled = [&](int steps, int least) { return std::max(least, static_cast<int>(std::lround(share * steps))); };
  auto& optimizer = settings.train.optimizer;
  auto& train = settings.train;
  train.steps = scaled(train.steps, train.steps > 0);  // 0: only another limit applies
  for (double* limit : {&train.rows, &train.attention_values, &train.cpu_seconds}) *limit *= share;
  settings.start_steps = scaled(settings.start_steps, settings.start_steps > 0);
  optimizer.warmup = scaled(optimizer.warmup, 0);
  for (int trained : {train.steps, settings.start_steps})  // after rounding, warmup may not be less than these
    if (optimizer.has_horizon() && trained > 0) optimizer.warmup = std::min(optimizer.warmup, trained - 1);
  optimizer.drop_every = scaled(optimizer.drop_every, optimizer.drop_every > 0);
  train.evaluate_split = tune.split;
  train.final_split = training::FinalSplit::same;
  settings.measure_at = "";
  settings.checkpoint = false;
}

// NaN unless the whole text is a number.
double number_in(const std::string& text) { return number_of<double>(text).value_or(measurement::not_a_number); }

}  // namespace

std::size_t Search::cells(const TuneConfig& tune) const {
  const auto sizes = tune.sizes(settings.size());
  return std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}) * tune.seeds.size() + wanted.size();
}

void Search::grow(const SweepConfig& config, const Outcomes& outcomes, std::vector<Cell>& known, std::vector<Cell>& to_come) {
  const auto& tune = *config.tune;
  const auto sizes = tune.sizes(settings.size());
  rounds.clear();
  failures.clear();
  stuck.clear();
  chosen.reset();
  const auto finish = [&](Cell cell, std::size_t number, std::vector<Cell>& into) -> const Cell& {
    cell.hash = text_hash(identity(config.precision, config.seed, cell));
    cell.number = number;
    return into.emplace_back(std::move(cell));
  };
  bool open = false;  // from here on the settings are unknown
  std::string first_failure;
  std::vector<std::size_t> in(settings.size());
  std::iota(in.begin(), in.end(), std::size_t{0});
  auto number = first;
  if (sizes.empty()) chosen = 0;
  for (std::size_t r = 0; r < sizes.size(); ++r) {
    SearchRound round{.number = r + 1, .size = sizes[r], .settings = {}, .scores = {}};
    if (open) {
      in.resize(sizes[r]);
      std::iota(in.begin(), in.end(), std::size_t{0});
    } else {
      round.settings = in;
    }
    bool over = !open;
    for (std::size_t i = 0; i < in.size(); ++i) {
      double sum = 0;
      for (std::size_t s = 0; s < tune.seeds.size(); ++s) {
        auto cell = wanted.front();
        cell.axes["seed"] = tune.seeds[s];
        cell = with_values(config, std::move(cell), settings[in[i]]);
        shorten(cell.settings, tune, tune.rounds[r]);
        cell.round = r + 1;
        cell.share = tune.rounds[r];
        cell.setting = in[i];
        round.steps = cell.settings.train.steps;
        const auto& there = finish(std::move(cell), number + i * tune.seeds.size() + s, open ? to_come : known);
        if (open) continue;
        const auto outcome = outcomes(there);
        over = over && outcome.has_value();
        if (!outcome) continue;
        sum += outcome->score;
        if (std::isfinite(outcome->score)) continue;
        failures.push_back(there.label() + ": " + outcome->reason);
        if (first_failure.empty()) first_failure = outcome->reason;
      }
      if (!open)
        round.scores.push_back(std::isfinite(sum) ? sum / static_cast<double>(tune.seeds.size()) : measurement::not_a_number);
    }
    number += sizes[r] * tune.seeds.size();
    if (!over) round.scores.clear();
    rounds.push_back(round);
    if (!over) {
      open = true;
      continue;
    }
    std::vector<std::size_t> order;  // best first; ties by index
    for (std::size_t i = 0; i < in.size(); ++i)
      if (!std::isnan(round.scores[i])) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) {
      return higher_is_better ? round.scores[a] > round.scores[b] : round.scores[a] < round.scores[b];
    });
    if (order.empty()) {
      stuck = fmt::format("no setting can be chosen: none of {} has a finite result in round {} of the search ({})", in.size(),
                          r + 1, first_failure);
      break;
    }
    if (r + 1 == sizes.size()) {
      chosen = in[order.front()];
      break;
    }
    std::vector<std::size_t> best;
    for (std::size_t i = 0; i < std::min(order.size(), sizes[r + 1]); ++i) best.push_back(in[order[i]]);
    std::sort(best.begin(), best.end());
    in = std::move(best);
  }
  number = first + cells(tune) - wanted.size();
  for (auto cell : wanted) {
    if (stuck.empty()) {
      cell = with_values(config, std::move(cell), settings[chosen.value_or(0)]);
      cell.setting = chosen.value_or(0);
    } else {
      cell.skip = stuck;
    }
    finish(std::move(cell), number++, chosen || !stuck.empty() ? known : to_come);
  }
}

std::string Search::edge(const TuneConfig& tune) const {
  std::string found;
  for (const auto& axis : tune.axes) {
    if (!chosen || !settings[*chosen].contains(axis.name)) continue;
    std::set<double> tried;
    for (const auto& values : settings) tried.insert(number_in(values.at(axis.name)));
    const auto& text = settings[*chosen].at(axis.name);
    const double value = number_in(text);
    if (tried.size() < 2 || std::any_of(tried.begin(), tried.end(), [](double x) { return std::isnan(x); })) continue;
    const bool least = value == *tried.begin() && value > axis.least, largest = value == *tried.rbegin() && value < axis.most;
    if (least || largest)
      found += fmt::format("{}{} {} is the {} tried ({} to {})", found.empty() ? "" : "; ", axis.name, text,
                           least ? "least" : "largest", *tried.begin(), *tried.rbegin());
  }
  return found;
}

std::string Search::setting_text(std::size_t setting) const {
  std::vector<std::string> parts;
  for (const auto& [name, value] : settings[setting]) parts.push_back(fmt::format("{}={}", name, value));
  return fmt::format("{}", fmt::join(parts, " "));
}

std::string Search::label() const {
  auto axes = wanted.front().axes;
  std::vector<std::string> parts;
  for (const char* name : {"task", "model", "estimator"}) {
    parts.push_back(fmt::format("{}={}", name, axes.at(name)));
    axes.erase(name);
  }
  axes.erase("seed");
  for (const auto& [name, value] : axes) parts.push_back(fmt::format("{}={}", name, value));
  return fmt::format("{}", fmt::join(parts, " "));
}

}  // namespace hardgrad::sweeps
