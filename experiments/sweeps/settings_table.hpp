// Every setting of a cell in one declarative table: it drives validation, --set, `describe sweep` and the
// echo.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/registry/settings.hpp"
#include "experiments/training/trainer.hpp"

namespace hardgrad {

/// How one cell is trained and measured.
struct CellSettings {
  TrainSettings train;
  std::string measure_at = "start;end";  ///< steps, "start", "end" or "50%", separated by ';'
  bool checkpoint = false;               ///< save parameters and learned state at the end

  /// `train` with what depends on other settings filled in: measure_at as steps, the horizon of schedules.
  /// Throws UsageError where a point of measurement lies beyond the last step.
  TrainSettings resolved() const;
};

/// One setting: its place in the file (`train.steps`), what it may be, and the member it sets.
struct SettingInfo {
  std::string path;
  ParameterInfo info;  ///< named as the path's last part; the fallback is the member's default
  std::function<void(CellSettings&, const Value&)> set;
  std::function<Value(const CellSettings&)> get;
};

/// All settings of [train] and [measure], in order of documentation.
const std::vector<SettingInfo>& settings_table();
/// The setting at a path, or null.
const SettingInfo* find_setting(const std::string& path);
/// All of them as a JSON object, by their paths.
std::string settings_json(const CellSettings& settings);
/// Checks a text against a setting: UsageError `train.steps: value must be at least 0, got -1`.
Value checked_setting(const SettingInfo& setting, const std::string& text);

}  // namespace hardgrad
