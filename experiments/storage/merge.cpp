// Merging: columns over all runs, and their provenance.
#include "experiments/storage/result_files.hpp"

#include <algorithm>
#include <map>
#include <unordered_set>
#include <utility>

#include "core/support/error.hpp"
#include "experiments/storage/process.hpp"
#include "experiments/storage/results.hpp"

namespace hardgrad::storage {
namespace {

// A column with a member of each run's role; flags are stored as bytes.
template <class M>
void add(Dataset& data, const std::vector<CellRecord>& records, const std::string& name, M TuningRole::*member) {
  std::vector<std::conditional_t<std::is_same_v<M, bool>, std::uint8_t, M>> values;
  values.reserve(records.size());
  for (const auto& record : records) values.push_back(record.tuning.value_or(TuningRole{}).*member);
  const auto words = facts(name);
  data.variables.push_back(
      {name, {"run"}, std::move(values), std::is_same_v<M, bool> ? flags(text(words, "long_name"), {"no", "yes"}) : words});
}

// For reported runs: the search that found their settings.
void add_reported_roles(Dataset& data, const std::vector<CellRecord>& records) {
  add(data, records, "tuning_edge", &TuningRole::edge);
  add(data, records, "tuning_setting", &TuningRole::setting);
  add(data, records, "tuning_settings", &TuningRole::tried);
  add(data, records, "tuning_failed", &TuningRole::failed);
  add(data, records, "tuning_estimator", &TuningRole::estimator);
}

void add_trial_roles(Dataset& data, const std::vector<CellRecord>& records) {
  add(data, records, "tuning_round", &TuningRole::round);
  add(data, records, "tuning_setting", &TuningRole::setting);
  add(data, records, "tuning_estimator", &TuningRole::estimator);
  add(data, records, "tuning_score", &TuningRole::score);
  add(data, records, "tuning_quantity", &TuningRole::quantity);
  add(data, records, "tuning_kept", &TuningRole::kept);
}

using Provenance = std::map<std::string, std::string>;

bool is_trial(const CellRecord& record) { return record.tuning && record.tuning->round > 0; }

// A result's parts that need all cells, and then its columns for some of them.
class Merger {
 public:
  explicit Merger(const MergeSettings& settings) : settings_(settings) {}

  // InputError if the cell belongs to another plan than the others, or was already looked at.
  void look(const CellRecord& record) {
    if (hashes_.empty()) {
      plan_hash_ = record.plan_hash;
      first_ = record.cell_hash;
      precision_ = record.precision;
      if (settings_.configuration.empty()) settings_.configuration = record.configuration;
    }
    if (record.plan_hash != plan_hash_)
      throw InputError("cells " + first_ + " and " + record.cell_hash + " belong to different plans (" + plan_hash_ + ", " +
                       record.plan_hash + ")");
    // Cells that are not of a sweep have no hash.
    const auto name = record.cell_hash.empty() ? "." + std::to_string(hashes_.size()) : record.cell_hash;
    if (!hashes_.insert(name).second) throw InputError("cell " + record.cell_hash + " was added twice");
    if (is_trial(record)) {
      tuning_.add(record);
      ++trials_;
      return;
    }
    labels_.add(record);
    searched_ = searched_ || record.tuning;
    failed_ += record.status == CellStatus::failed;
    const auto entry = std::find(provenances_.begin(), provenances_.end(), record.provenance);
    made_by_.push_back(static_cast<std::uint32_t>(entry - provenances_.begin()));
    if (entry == provenances_.end()) provenances_.push_back(record.provenance);
  }

  std::size_t cells() const { return hashes_.size(); }
  std::size_t reported() const { return made_by_.size(); }
  std::size_t trials() const { return trials_; }

  // Kind, note and status. InputError if there is no reported run.
  Archive head() const {
    if (reported() == 0)
      throw InputError(trials_ == 0 ? "there are no cells to merge"
                                    : "no reported run is finished: the search for settings continues");
    return {.kind = "result", .note = "result plan=" + plan_hash_, .status = cells() < planned() ? "incomplete" : "complete"};
  }

  // The root for the runs from `first` on.
  Dataset runs(const std::vector<CellRecord>& records, std::size_t first) const {
    auto data = columns(records, labels_, first);
    for (auto& variable : data.variables)  // tuned axes are no longer axes of the grid
      for (auto& [name, value] : variable.attributes)
        if (name == "grid_axis" && settings_.tuned.contains(std::get<std::string>(value))) name = "tuned_axis";
    if (searched_) add_reported_roles(data, records);
    const auto made_of = merge_provenance(data, first, records.size());
    data.variables.push_back({"configuration", {}, std::vector<std::string>{settings_.configuration}, facts("configuration")});

    // xarray makes these coordinates, so that every array has the labels of its runs.
    std::string coordinates;
    for (const auto& v : data.variables)
      if (v.axes.size() == 1 && v.axes[0] == "run" &&
          (find(v.attributes, "grid_axis") || find(v.attributes, "tuned_axis") || v.name == "seed_hex" || v.name == "status"))
        coordinates += (coordinates.empty() ? "" : " ") + v.name;
    std::vector<std::string> axes;
    for (const auto& name : labels_.axes)
      if (!settings_.tuned.contains(name)) axes.push_back(name);
    data.attributes = {{"title", "Gradient estimators for hard attention, compared"},
                       {"source", "hardgrad"},
                       {"coordinates", coordinates},
                       {"grid_axes", axes},
                       {"plan_hash", settings_.plan_hash.empty() ? plan_hash_ : settings_.plan_hash},
                       {"cells_planned", static_cast<std::int64_t>(planned())},
                       {"cells_merged", static_cast<std::int64_t>(cells())},
                       {"cells_failed", static_cast<std::int64_t>(failed_)}};
    if (precision_)
      measurement::each_fact_of(*precision_,
                                [&](const char* fact, const auto& value) { data.attributes.emplace_back(fact, value); });
    if (!settings_.tuned.empty())
      data.attributes.emplace_back("tuned_axes", std::vector<std::string>(settings_.tuned.begin(), settings_.tuned.end()));
    add_provenance(data.attributes, made_of);
    return data;
  }

  // The group `tuning` for the trials from `first` on.
  Dataset tuning(const std::vector<CellRecord>& records, std::size_t first) const {
    auto data = columns(records, tuning_, first);
    add_trial_roles(data, records);
    return data;
  }

  std::size_t block() const {
    if (settings_.block) return settings_.block;
    const auto points = 200 + 6 * labels_.steps.size() + 40 * labels_.measurements.size() +
                        labels_.evaluations.size() * (1 + labels_.losses.size() + labels_.metrics.size());
    return std::max<std::size_t>(1, (std::size_t{1} << 19) / points);
  }

 private:
  std::size_t planned() const { return settings_.planned ? settings_.planned : cells(); }

  // Provenance that all runs share becomes attributes. If it differs, there is a label per run and the attribute "various".
  Provenance merge_provenance(Dataset& data, std::size_t first, std::size_t count) const {
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
      for (auto i = first; i < first + count; ++i) of_runs.push_back(values[made_by_[i]]);
      const auto name = "provenance_" + key;
      data.variables.push_back({name, {"run"}, std::move(of_runs), facts(name, key)});
    }
    return result;
  }

  MergeSettings settings_;
  Labels labels_, tuning_;
  std::size_t trials_ = 0, failed_ = 0;
  bool searched_ = false;
  std::string plan_hash_, first_;
  std::optional<Precision> precision_;
  std::unordered_set<std::string> hashes_;
  std::vector<Provenance> provenances_;  // distinct ones: one per machine and build
  std::vector<std::uint32_t> made_by_;   // reported run -> index in provenances_
};

// Collects records of one group, and passes blocks of them to `take`.
class Hyperslab {
 public:
  using Take = std::function<void(const std::vector<CellRecord>&, std::size_t)>;
  Hyperslab(std::size_t most, Take take) : most_(most), take_(std::move(take)) {}
  void add(CellRecord&& record) {
    // A merged file does not contain these. Clearing the texts would keep their memory.
    record.provenance.clear();
    for (auto* words : {&record.configuration, &record.identity}) std::string().swap(*words);
    for (auto& point : record.result.measurements)
      for (auto* numbers : {&point.measurement.mean, &point.measurement.variances}) std::vector<double>().swap(*numbers);
    records_.push_back(std::move(record));
    if (records_.size() == most_) flush();
  }
  void flush() {
    if (records_.empty()) return;
    take_(records_, done_);
    done_ += records_.size();
    records_.clear();
  }

 private:
  const std::size_t most_;
  const Take take_;
  std::vector<CellRecord> records_;
  std::size_t done_ = 0;
};

EachCell each_of(const std::vector<CellRecord>& records) {
  return [&](const auto& f) {
    for (auto record : records) f(std::move(record));
  };
}

}  // namespace

Archive merge(const std::vector<CellRecord>& records, const MergeSettings& settings) {
  Merger merger(settings);
  std::vector<CellRecord> runs, trials;
  for (const auto& record : records) {
    merger.look(record);
    (is_trial(record) ? trials : runs).push_back(record);
  }
  auto archive = merger.head();
  archive.groups.push_back({"", merger.runs(runs, 0)});
  if (!trials.empty()) archive.groups.push_back({"tuning", merger.tuning(trials, 0)});
  return archive;
}

std::size_t write_merged(const std::string& path, const EachCell& cells, const MergeSettings& settings) {
  Merger merger(settings);
  cells([&](CellRecord&& record) { merger.look(record); });
  const auto head = merger.head();
  Lengths groups{{"", merger.reported()}};
  if (merger.trials()) groups.emplace_back("tuning", merger.trials());
  write_in_blocks(path, head, "run", groups, [&](const AddBlock& add) {
    Hyperslab runs(merger.block(), [&](const auto& records, std::size_t first) { add("", merger.runs(records, first)); });
    Hyperslab trials(merger.block(),
                     [&](const auto& records, std::size_t first) { add("tuning", merger.tuning(records, first)); });
    cells([&](CellRecord&& record) { (is_trial(record) ? trials : runs).add(std::move(record)); });
    runs.flush();
    trials.flush();
  });
  return merger.cells();
}

std::size_t write_merged(const std::string& path, const std::vector<CellRecord>& records, const MergeSettings& settings) {
  return write_merged(path, each_of(records), settings);
}

}  // namespace hardgrad::storage
