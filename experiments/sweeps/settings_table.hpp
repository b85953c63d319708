// Every setting of a cell in one declarative table, for validation, --set, `describe sweep` and the echo.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/registry/settings.hpp"
#include "experiments/training/trainer.hpp"

namespace hardgrad::sweeps {

/// The settings for training and measuring one cell.
struct CellSettings {
  training::TrainSettings train;
  std::string measure_at = "start;end";  ///< steps, "start", "end" or "50%", separated by ';'
  std::string start;                     ///< empty, file of a checkpoint, or spec of an estimator
  int start_steps = 0;                   ///< of that estimator
  double start_overlap = 0;              ///< share of held-out or test examples that the files' networks may have seen
  std::string reference;                 ///< file of a checkpoint: the reference policy; empty: the network's own, or none
  bool checkpoint = false;               ///< save parameters and learned state at the end
  double save_seconds = 60;              ///< between two checkpoints of a running cell; 0: never
  int save_every = 0;                    ///< steps between them

  /// `train` with the values that depend on other settings: measure_at as steps, the horizon of schedules, no limit of steps if
  /// only costs are limited. UsageError if settings contradict each other, such as a measurement after the last step or a
  /// target that may never be reached.
  training::TrainSettings resolved() const;
};

/// One setting: its path in the file (`train.steps`), its allowed values, and the member it sets.
struct SettingInfo {
  std::string path;
  ParameterInfo info;  ///< named as the path's last part; the fallback is the member's default
  std::function<void(CellSettings&, const Value&)> set;
  std::function<Value(const CellSettings&)> get;
  bool in_identity = true;  ///< false: cells that differ only in it are the same
};

/// Whether train.start names a file rather than an estimator.
inline bool is_checkpoint(const std::string& start) { return start.ends_with(".h5"); }

/// All settings of [train] and [measure], in order of documentation.
const std::vector<SettingInfo>& settings_table();
/// The setting at a path, or null.
const SettingInfo* find_setting(const std::string& path);
/// All of them as a JSON object, by their paths.
std::string settings_json(const CellSettings& settings);
/// Checks a text against a setting: UsageError `train.steps: value must be at least 0, got -1`.
Value checked_setting(const SettingInfo& setting, const std::string& text);

}  // namespace hardgrad::sweeps
