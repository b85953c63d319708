#include "experiments/sweeps/tuning.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

#include "core/support/error.hpp"
#include "experiments/training/monitor.hpp"

namespace hardgrad::sweeps {
namespace {

void check(const SweepConfig& config, const Cell& cell) {
  const auto& train = cell.settings.train;
  if (train.steps < 1 && train.rows <= 0 && train.attention_values <= 0 && train.cpu_seconds <= 0)
    throw UsageError(fmt::format("{}: tune: nothing is trained: set train.steps (in {})", config.file, cell.label()));
  const auto judge = train.judging_split();
  const auto other = judge == tasks::Split::heldout ? tasks::Split::test : tasks::Split::heldout;
  if (judge == config.tune->split)
    throw UsageError(
        fmt::format("{}: tune.split: settings would be chosen on the split that judges the reported runs, {}; "
                    "set train.{} to {}",
                    config.file, to_string(judge),
                    train.final_split == training::FinalSplit::same ? "evaluate_split" : "final_split", to_string(other)));
  if (train.evaluate_split == judge)
    for (const auto& [name, what] : train.choosing())
      throw UsageError(
          fmt::format("{}: train.{}: would {} on {}, the split that judges the reported runs; remove it, or set "
                      "train.evaluate_split and train.final_split to different splits",
                      config.file, name, what, to_string(judge)));
}

std::string group_of(const Cell& cell) {
  auto group = cell;
  group.axes["seed"] = "0";
  return group.label();
}

}  // namespace

void begin_searches(Plan& plan, const SweepConfig& config, TaskPool& tasks) {
  Tuning tuning{.config = std::make_shared<SweepConfig>(config), .searches = {}, .skipped = {}, .to_come = {}};
  std::map<std::string, std::size_t> place;
  for (auto& cell : plan.cells) {
    if (!cell.skip.empty()) {
      tuning.skipped.push_back(cell);
      continue;
    }
    check(config, cell);
    const auto [it, added] = place.emplace(group_of(cell), tuning.searches.size());
    if (added) {
      const auto& estimator = cell.axes.at("estimator");
      tuning.searches.push_back({.wanted = {},
                                 .settings = settings_to_try(*config.tune, config.seed, estimator),
                                 .higher_is_better = more_is_better(config, "tune.metric", config.tune->metric, cell, tasks),
                                 .rounds = {},
                                 .chosen = {},
                                 .stuck = {},
                                 .failures = {}});
      if (const auto found = tuning.searches.back().settings.size(); found < config.tune->trials)
        plan.warnings.push_back(
            fmt::format("{}: tune.trials: {} has only {} different settings", config.file, estimator, found));
    }
    cell.search = it->second;
    tuning.searches[it->second].wanted.push_back(cell);
  }
  std::size_t number = 0;
  for (auto& search : tuning.searches) {
    search.first = number;
    number += search.cells(*config.tune);
  }
  for (auto& cell : tuning.skipped) cell.number = number++;
  plan.tuning = std::move(tuning);
  grow(plan, [](const Cell&) { return std::nullopt; });
}

bool grow(Plan& plan, const Outcomes& outcomes) {
  if (!plan.tuning) return false;
  auto& tuning = *plan.tuning;
  const auto before = plan.cells.size();
  plan.cells.clear();
  tuning.to_come.clear();
  for (auto& search : tuning.searches) search.grow(*tuning.config, outcomes, plan.cells, tuning.to_come);
  plan.cells.insert(plan.cells.end(), tuning.skipped.begin(), tuning.skipped.end());
  return plan.cells.size() > before;
}

Outcome outcome_of(const storage::CellRecord& record, const std::string& metric) {
  if (record.status != storage::CellStatus::ok)
    return {.score = measurement::not_a_number, .quantity = {}, .reason = record.reason};
  if (record.result.evaluations.empty())
    return {.score = measurement::not_a_number, .quantity = {}, .reason = "nothing was evaluated"};
  const auto& last = record.result.evaluations.back();
  const auto found = training::monitored(last, metric);
  if (!found) return {.score = measurement::not_a_number, .quantity = {}, .reason = training::nothing_to_monitor(last, metric)};
  return {.score = found->value,
          .quantity = found->quantity,
          .reason = std::isfinite(found->value) ? "" : fmt::format("{} is not finite", found->quantity)};
}

Outcomes outcomes_in(const storage::CellStore& cells, const std::string& metric) {
  auto seen = std::make_shared<std::map<std::string, Outcome>>();
  return [&cells, metric, seen](const Cell& cell) -> std::optional<Outcome> {
    if (const auto it = seen->find(cell.hash); it != seen->end()) return it->second;
    const auto state = cell_state(cells, cell.hash, false);
    if (state == CellState::pending || state == CellState::damaged || state == CellState::unreadable) return {};
    return seen->emplace(cell.hash, outcome_of(cells.read(cell.hash), metric)).first->second;
  };
}

nlohmann::json tuning_json(const Plan& plan) {
  const auto& tuning = *plan.tuning;
  auto list = nlohmann::json::array();
  for (const auto& search : tuning.searches) {
    auto axes = search.wanted.front().axes;
    axes.erase("seed");
    auto rounds = nlohmann::json::array();
    for (const auto& round : search.rounds)
      rounds.push_back(
          {{"round", round.number},
           {"steps", round.steps},
           {"settings", round.settings.empty() ? round.size : round.settings.size()},
           {"cells", (round.settings.empty() ? round.size : round.settings.size()) * tuning.config->tune->seeds.size()},
           {"state", !round.scores.empty()    ? "over"
                     : round.settings.empty() ? "to come"
                                              : "now"}});
    list.push_back({{"axes", axes},
                    {"settings", search.settings},
                    {"rounds", rounds},
                    {"reported", search.wanted.size()},
                    {"chosen", search.chosen ? nlohmann::json(search.settings[*search.chosen]) : nlohmann::json()},
                    {"edge", search.edge(*tuning.config->tune)},
                    {"failed", search.failures.size()},
                    {"stuck", search.stuck}});
  }
  return list;
}

std::vector<std::string> tuning_lines(const Plan& plan, bool over) {
  std::vector<std::string> lines;
  if (!plan.tuning) return lines;
  const auto& tune = *plan.tuning->config->tune;
  for (const auto& search : plan.tuning->searches) {
    if (over && !search.chosen && search.stuck.empty()) continue;
    auto line = "tuned: " + search.label() + ": ";
    if (search.chosen) {
      line += search.settings.size() == 1
                  ? fmt::format("{}, the only setting to try", search.setting_text(*search.chosen))
                  : fmt::format("{}, the best of {} settings", search.setting_text(*search.chosen), search.settings.size());
      if (const auto edge = search.edge(tune); !edge.empty()) line += fmt::format("; {}: look further", edge);
    } else if (!search.stuck.empty()) {
      line += search.stuck;
    } else {
      const auto now =
          std::find_if(search.rounds.begin(), search.rounds.end(), [](const auto& round) { return round.scores.empty(); });
      line += fmt::format("round {} of {} is not finished", now->number, search.rounds.size());
    }
    if (search.chosen && !search.failures.empty())
      line += fmt::format("; {} of its trials failed and {} never chosen, the first: {}", search.failures.size(),
                          search.failures.size() == 1 ? "was" : "were", search.failures.front());
    lines.push_back(line);
  }
  return lines;
}

}  // namespace hardgrad::sweeps
