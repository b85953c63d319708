// Merging: columns over all runs, and what they were made of.
#include "experiments/storage/merge.hpp"

#include <set>

#include "core/support/error.hpp"
#include "experiments/storage/provenance.hpp"
#include "experiments/storage/results.hpp"

namespace hardgrad {
namespace {

// Provenance all runs share becomes attributes; where they differ, a label per run and the attribute
// "various".
std::map<std::string, std::string> merge_provenance(const std::vector<CellRecord>& records, Dataset& data) {
  std::set<std::string> keys;
  for (const auto& record : records)
    for (const auto& [key, value] : record.provenance) keys.insert(key);
  if (keys.empty()) return provenance();
  std::map<std::string, std::string> result;
  for (const auto& key : keys) {
    std::vector<std::string> values;
    for (const auto& record : records) {
      auto it = record.provenance.find(key);
      values.push_back(it == record.provenance.end() ? "unknown" : it->second);
    }
    const bool same = std::set<std::string>(values.begin(), values.end()).size() == 1;
    result[key] = same ? values[0] : "various";
    if (!same)
      data.variables.push_back({"provenance_" + key, {"run"}, std::move(values), {{"long_name", key + " of the run"}}});
  }
  return result;
}

}  // namespace

Archive merge(const std::vector<CellRecord>& records, const MergeSettings& settings) {
  if (records.empty()) throw InputError("there are no cells to merge");
  std::set<std::string> hashes;
  for (const auto& record : records) {
    if (record.plan_hash != records[0].plan_hash)
      throw InputError("cells " + records[0].cell_hash + " and " + record.cell_hash + " belong to different plans (" +
                       records[0].plan_hash + ", " + record.plan_hash + ")");
    if (!record.cell_hash.empty() && !hashes.insert(record.cell_hash).second)
      throw InputError("cell " + record.cell_hash + " is there twice");
  }
  auto data = columns(records, true);
  std::set<std::string> axes;
  std::size_t not_ok = 0;
  for (const auto& record : records) {
    not_ok += record.status == CellStatus::failed;
    for (const auto& [name, value] : record.axes) axes.insert(name);
  }
  const auto made_of = merge_provenance(records, data);
  const auto& configuration = settings.configuration.empty() ? records[0].configuration : settings.configuration;
  data.variables.push_back(
      {"configuration", {}, std::vector<std::string>{configuration}, {{"long_name", "configuration, TOML"}}});

  // xarray makes these coordinates: every array then carries the labels of its runs.
  std::string coordinates;
  for (const auto& v : data.variables)
    if (v.axes.size() == 1 && v.axes[0] == "run" &&
        (find(v.attributes, "grid_axis") || v.name == "seed_hex" || v.name == "status"))
      coordinates += (coordinates.empty() ? "" : " ") + v.name;
  const auto planned = settings.planned ? settings.planned : records.size();
  data.attributes = {{"title", "Gradient estimators for hard attention, compared"},
                     {"source", "hardgrad"},
                     {"coordinates", coordinates},
                     {"grid_axes", std::vector<std::string>(axes.begin(), axes.end())},
                     {"plan_hash", settings.plan_hash.empty() ? records[0].plan_hash : settings.plan_hash},
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

void write_merged(const std::string& path, const std::vector<CellRecord>& records, const MergeSettings& settings) {
  write_archive(path, merge(records, settings), true);
}

}  // namespace hardgrad
