// Merging: columns over all runs, and what they were made of.
#include "experiments/storage/merge.hpp"

#include <algorithm>

#include "core/support/error.hpp"
#include "experiments/storage/provenance.hpp"
#include "experiments/storage/results.hpp"

namespace hardgrad {

// Provenance all runs share becomes attributes; where they differ, a label per run and the attribute
// "various".
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
  if (!records_.empty() && record.plan_hash != records_[0].plan_hash)
    throw InputError("cells " + records_[0].cell_hash + " and " + record.cell_hash + " belong to different plans (" +
                     records_[0].plan_hash + ", " + record.plan_hash + ")");
  if (!record.cell_hash.empty() && !hashes_.insert(record.cell_hash).second)
    throw InputError("cell " + record.cell_hash + " is there twice");
  if (settings_.configuration.empty()) settings_.configuration = record.configuration;
  const auto found = std::find(provenances_.begin(), provenances_.end(), record.provenance);
  made_by_.push_back(static_cast<std::size_t>(found - provenances_.begin()));
  if (found == provenances_.end()) provenances_.push_back(std::move(record.provenance));
  // What a merged file does not have; an emptied text would keep its memory.
  record.provenance.clear();
  for (auto* words : {&record.configuration, &record.identity}) std::string().swap(*words);
  for (auto& point : record.result.measurements)
    for (auto* numbers : {&point.measurement.mean, &point.measurement.variances}) std::vector<double>().swap(*numbers);
  records_.push_back(std::move(record));
}

Archive Merger::result() && {
  const auto records = std::move(records_);  // gone when the result is to be written
  if (records.empty()) throw InputError("there are no cells to merge");
  auto data = columns(records, true);
  std::set<std::string> axes;
  std::size_t not_ok = 0;
  for (const auto& record : records) {
    not_ok += record.status == CellStatus::failed;
    for (const auto& [name, value] : record.axes) axes.insert(name);
  }
  const auto made_of = merge_provenance(data);
  data.variables.push_back(
      {"configuration", {}, std::vector<std::string>{settings_.configuration}, {{"long_name", "configuration, TOML"}}});

  // xarray makes these coordinates: every array then carries the labels of its runs.
  std::string coordinates;
  for (const auto& v : data.variables)
    if (v.axes.size() == 1 && v.axes[0] == "run" &&
        (find(v.attributes, "grid_axis") || v.name == "seed_hex" || v.name == "status"))
      coordinates += (coordinates.empty() ? "" : " ") + v.name;
  const auto planned = settings_.planned ? settings_.planned : records.size();
  data.attributes = {{"title", "Gradient estimators for hard attention, compared"},
                     {"source", "hardgrad"},
                     {"coordinates", coordinates},
                     {"grid_axes", std::vector<std::string>(axes.begin(), axes.end())},
                     {"plan_hash", settings_.plan_hash.empty() ? records[0].plan_hash : settings_.plan_hash},
                     {"cells_planned", static_cast<std::int64_t>(planned)},
                     {"cells_merged", static_cast<std::int64_t>(records.size())},
                     {"cells_failed", static_cast<std::int64_t>(not_ok)}};
  add_provenance(data.attributes, made_of);
  Archive archive{.kind = "result",
                  .note = "result plan=" + records[0].plan_hash,
                  .status = records.size() < planned ? "incomplete" : "complete"};
  archive.groups.push_back({"", std::move(data)});
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

}  // namespace hardgrad
