// A sweep's file as TOML with the changes of --set, the position of each node for messages, and nodes as checked values.
#pragma once

#include <fmt/format.h>
#include <toml++/toml.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/support/error.hpp"
#include "experiments/sweeps/config.hpp"

namespace hardgrad::sweeps {

/// Description of a node in a message: its value, "a table", "a list".
std::string described(const toml::node& node);

class TomlSource {
 public:
  /// Leaves by dotted path: `train.steps = 1` and `"train.steps" = 1` are the same.
  using Flat = std::vector<std::pair<std::string, const toml::node*>>;

  TomlSource(std::string file, toml::table root) : file_(std::move(file)), root_(std::move(root)) {}

  /// Replaces the file's value by `a.b=VALUE`. UsageError if it cannot be parsed, or is inside an array of tables.
  void set(const std::string& text);

  const std::string& file() const { return file_; }
  const toml::table& root() const { return root_; }
  const std::vector<std::string>& sets() const { return sets_; }  ///< paths given to `set`

  /// "sweep.toml:12:5"; "--set a.b" for values that are not in the file.
  std::string where(const toml::source_region& source, const std::string& path) const;
  /// UsageError `where: path: what`.
  [[noreturn]] void fail(const toml::source_region& source, const std::string& path, const std::string& what) const;
  [[noreturn]] void fail(const toml::node& node, const std::string& path, const std::string& what) const {
    fail(node.source(), path, what);
  }
  /// Runs `check` and prefixes its errors with the position.
  template <class F>
  auto located(const toml::node& node, const std::string& prefix, const std::string& path, F check) const {
    try {
      return check();
    } catch (const UsageError& e) {
      throw UsageError(fmt::format("{}: {}{}", where(node.source(), path), prefix, e.what()));
    }
  }

  static Flat leaves(const toml::table& table);
  const toml::table& table_of(const toml::node& node, const std::string& path) const;
  /// The blocks [[key]].
  std::vector<const toml::table*> tables_of(const std::string& key) const;

 private:
  std::string file_;
  toml::table root_;
  std::vector<std::string> sets_;
};

// Nodes of a sweep's file as checked values: settings, and axes of the grid.

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

// The table [tune] of a sweep's file, checked.

/// Empty if there is no [tune]. The axes and base settings of `config` must be read already. UsageError with the position.
std::optional<TuneConfig> read_tune(const TomlSource& source, const SweepConfig& config);

}  // namespace hardgrad::sweeps
