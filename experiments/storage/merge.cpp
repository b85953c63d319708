// Merging: columns over all runs, and their provenance.
#include "experiments/storage/merge.hpp"

#include <algorithm>

#include "core/support/error.hpp"
#include "experiments/storage/provenance.hpp"
#include "experiments/storage/results.hpp"

namespace hardgrad::storage {
namespace {

// A column with a member of each run's role; flags are stored as bytes.
template <class M>
void add(Dataset& data, const std::vector<CellRecord>& records, const std::string& name, Attributes attributes,
         M TuningRole::*member) {
  std::vector<std::conditional_t<std::is_same_v<M, bool>, std::uint8_t, M>> values;
  values.reserve(records.size());
  for (const auto& record : records) values.push_back(record.tuning.value_or(TuningRole{}).*member);
  data.variables.push_back({name, {"run"}, std::move(values), std::move(attributes)});
}

// For reported runs: the search that found their settings. Tuned axes are no longer axes of the grid.
void add_reported_roles(Dataset& data, const std::vector<CellRecord>& records, const std::set<std::string>& tuned) {
  for (auto& variable : data.variables)
    for (auto& [name, value] : variable.attributes)
      if (name == "grid_axis" && tuned.contains(std::get<std::string>(value))) name = "tuned_axis";
  if (!records.front().tuning) return;
  add(data, records, "tuning_edge", {{"long_name", "settings at the end of the tried range"}}, &TuningRole::edge);
  add(data, records, "tuning_setting", described("1", "number of its setting among those tried"), &TuningRole::setting);
  add(data, records, "tuning_settings", described("1", "settings tried"), &TuningRole::tried);
  add(data, records, "tuning_failed", described("1", "trials that failed"), &TuningRole::failed);
  add(data, records, "tuning_estimator", {{"long_name", "the estimator as the sweep names it"}}, &TuningRole::estimator);
}

void add_trial_roles(Dataset& data, const std::vector<CellRecord>& records) {
  add(data, records, "tuning_round", described("1", "round of the search, from 1"), &TuningRole::round);
  add(data, records, "tuning_setting", described("1", "number of the setting, from 0"), &TuningRole::setting);
  add(data, records, "tuning_estimator", {{"long_name", "the estimator as the sweep names it"}}, &TuningRole::estimator);
  add(data, records, "tuning_score", described("1", "value of the tuning criterion"), &TuningRole::score);
  add(data, records, "tuning_quantity", {{"long_name", "tuning criterion of the score"}}, &TuningRole::quantity);
  add(data, records, "tuning_kept", flags("whether its setting continued to the next round, or was chosen", {"no", "yes"}),
      &TuningRole::kept);
}

}  // namespace

// Provenance that all runs share becomes attributes. If it differs, there is a label per run and the attribute "various".
Merger::Provenance Merger::merge_provenance(Dataset& data) const {
  std::set<std::string> keys;
  for (const auto& made : provenances_)
    for (const auto& [key, value] : made) keys.insert(key);
  if (keys.empty()) return provenance();
  Provenance result;
  for (const auto& key : keys) {
    std::vector<std::string> values;
    for (const auto& made : provenances_) {
      auto it = made.find(key);
      values.push_back(it == made.end() ? "unknown" : it->second);
    }
    const bool same = std::set<std::string>(values.begin(), values.end()).size() == 1;
    result[key] = same ? values[0] : "various";
    if (same) continue;
    std::vector<std::string> of_runs;
    for (auto i : made_by_) of_runs.push_back(values[i]);
    data.variables.push_back({"provenance_" + key, {"run"}, std::move(of_runs), {{"long_name", key + " of the run"}}});
  }
  return result;
}

void Merger::add(CellRecord record) {
  const auto* first = !records_.empty() ? &records_[0] : !trials_.empty() ? &trials_[0] : nullptr;
  if (first && record.plan_hash != first->plan_hash)
    throw InputError("cells " + first->cell_hash + " and " + record.cell_hash + " belong to different plans (" +
                     first->plan_hash + ", " + record.plan_hash + ")");
  if (!record.cell_hash.empty() && !hashes_.insert(record.cell_hash).second)
    throw InputError("cell " + record.cell_hash + " was added twice");
  if (settings_.configuration.empty()) settings_.configuration = record.configuration;
  const bool trial = record.tuning && record.tuning->round > 0;
  if (!trial) {
    const auto found = std::find(provenances_.begin(), provenances_.end(), record.provenance);
    made_by_.push_back(static_cast<std::size_t>(found - provenances_.begin()));
    if (found == provenances_.end()) provenances_.push_back(std::move(record.provenance));
  }
  // A merged file does not contain these. Clearing the texts would keep their memory.
  record.provenance.clear();
  for (auto* words : {&record.configuration, &record.identity}) std::string().swap(*words);
  for (auto& point : record.result.measurements)
    for (auto* numbers : {&point.measurement.mean, &point.measurement.variances}) std::vector<double>().swap(*numbers);
  (trial ? trials_ : records_).push_back(std::move(record));
}

Archive Merger::result() && {
  const auto records = std::move(records_), trials = std::move(trials_);  // freed before the result is written
  if (records.empty())
    throw InputError(trials.empty() ? "there are no cells to merge"
                                    : "no reported run is finished: the search for settings continues");
  auto data = columns(records, true);
  std::set<std::string> axes;
  std::size_t not_ok = 0;
  for (const auto& record : records) {
    not_ok += record.status == CellStatus::failed;
    for (const auto& [name, value] : record.axes)
      if (!settings_.tuned.contains(name)) axes.insert(name);
  }
  add_reported_roles(data, records, settings_.tuned);
  const auto made_of = merge_provenance(data);
  data.variables.push_back(
      {"configuration", {}, std::vector<std::string>{settings_.configuration}, {{"long_name", "configuration, TOML"}}});

  // xarray makes these coordinates, so that every array has the labels of its runs.
  std::string coordinates;
  for (const auto& v : data.variables)
    if (v.axes.size() == 1 && v.axes[0] == "run" &&
        (find(v.attributes, "grid_axis") || find(v.attributes, "tuned_axis") || v.name == "seed_hex" || v.name == "status"))
      coordinates += (coordinates.empty() ? "" : " ") + v.name;
  const auto merged = records.size() + trials.size(), planned = settings_.planned ? settings_.planned : merged;
  data.attributes = {{"title", "Gradient estimators for hard attention, compared"},
                     {"source", "hardgrad"},
                     {"coordinates", coordinates},
                     {"grid_axes", std::vector<std::string>(axes.begin(), axes.end())},
                     {"plan_hash", settings_.plan_hash.empty() ? records[0].plan_hash : settings_.plan_hash},
                     {"cells_planned", static_cast<std::int64_t>(planned)},
                     {"cells_merged", static_cast<std::int64_t>(merged)},
                     {"cells_failed", static_cast<std::int64_t>(not_ok)}};
  if (!settings_.tuned.empty())
    data.attributes.emplace_back("tuned_axes", std::vector<std::string>(settings_.tuned.begin(), settings_.tuned.end()));
  add_provenance(data.attributes, made_of);
  Archive archive{
      .kind = "result", .note = "result plan=" + records[0].plan_hash, .status = merged < planned ? "incomplete" : "complete"};
  archive.groups.push_back({"", std::move(data)});
  if (!trials.empty()) {
    auto tuning = columns(trials, true);
    add_trial_roles(tuning, trials);
    archive.groups.push_back({"tuning", std::move(tuning)});
  }
  return archive;
}

Archive merge(const std::vector<CellRecord>& records, const MergeSettings& settings) {
  Merger merger(settings);
  for (const auto& record : records) merger.add(record);
  return std::move(merger).result();
}

void write_merged(const std::string& path, Merger merger) { write_archive(path, std::move(merger).result(), true); }
void write_merged(const std::string& path, const std::vector<CellRecord>& records, const MergeSettings& settings) {
  write_archive(path, merge(records, settings), true);
}

}  // namespace hardgrad::storage
