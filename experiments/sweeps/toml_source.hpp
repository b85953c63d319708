// A sweep's file as TOML with the changes of --set, and the position of each node for messages.
#pragma once

#include <fmt/format.h>
#include <toml++/toml.h>

#include <string>
#include <utility>
#include <vector>

#include "core/support/error.hpp"

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

}  // namespace hardgrad::sweeps
