// Nodes of a sweep's file as checked values: settings, and axes of the grid.
#pragma once

#include "experiments/sweeps/config.hpp"
#include "experiments/sweeps/toml_source.hpp"

namespace hardgrad::sweeps {

/// The node as the text of a value of the declared type, without silent conversions. All functions here throw UsageError with
/// the position.
std::string text_of(const TomlSource& source, const toml::node& node, const std::string& path, const ParameterInfo& info);
Value setting_value(const TomlSource& source, const toml::node& node, const std::string& path, const SettingInfo& setting);
/// The same as plain text for `checked_setting`: texts are unquoted.
std::string setting_text(const TomlSource& source, const toml::node& node, const std::string& path, const SettingInfo& setting);
/// The value of an axis (task, model, estimator, seed or a setting) in canonical spelling.
std::string axis_value(const TomlSource& source, const toml::node& node, const std::string& path, const std::string& axis);
/// A value or a list of them; `section`: grid or zip.
GridAxis axis_of(const TomlSource& source, const std::string& name, const toml::node& node, const std::string& section);

}  // namespace hardgrad::sweeps
