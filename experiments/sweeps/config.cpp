// The sections of a sweep's file. One validator for the file and for --set: both are one TOML tree.
#include "experiments/sweeps/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/registry/plugins.hpp"
#include "core/support/error.hpp"
#include "experiments/storage/atomic_file.hpp"
#include "experiments/support/path_kind.hpp"
#include "experiments/support/text.hpp"
#include "experiments/sweeps/toml_source.hpp"

namespace hardgrad::sweeps {
namespace {

class ConfigReader {
 public:
  explicit ConfigReader(const TomlSource& source) : source_(source) {}
  SweepConfig read();

 private:
  Condition condition(const toml::table& table, const std::string& section, const std::set<std::string>& axes) const;
  SettingValues setting_values(const toml::table& table, const std::string& section) const;
  void top_level(SweepConfig& config) const;
  void load(SweepConfig& config, const std::string& path, const toml::node& node) const;
  void section(SweepConfig& config, const std::string& name) const;

  const TomlSource& source_;
};

Condition ConfigReader::condition(const toml::table& table, const std::string& section,
                                  const std::set<std::string>& axes) const {
  Condition result;
  result.where = source_.where(table.source(), section);
  const auto leaves = TomlSource::leaves(table);
  if (leaves.empty()) source_.fail(table, section, "must name at least one axis");
  for (const auto& [name, node] : leaves) {
    const auto path = fmt::format("{}.{}", section, name);
    if (!axes.contains(name))
      source_.fail(*node, path, "no such axis in this sweep" + did_you_mean(name, {axes.begin(), axes.end()}));
    const auto add = [&, &name = name](const toml::node& item) {
      if (const auto* text = item.as_string(); text && text->get().find_first_of("*?") != std::string::npos)
        result.patterns[name].push_back(text->get());
      else if (text && !find_setting(name) && name != "seed" && text->get().find('[') == std::string::npos)
        // A bare name matches every spec of that name; it must exist.
        source_.located(item, path + ": ", path, [&] {
          canonical_spec(name, text->get());
          result.patterns[name].push_back(text->get());
        });
      else
        result.patterns[name].push_back(axis_value(source_, item, path, name));
    };
    if (const auto* list = node->as_array())
      for (const auto& item : *list) add(item);
    else
      add(*node);
  }
  return result;
}

SettingValues ConfigReader::setting_values(const toml::table& table, const std::string& section) const {
  std::vector<std::string> names;
  for (const auto& setting : settings_table()) names.push_back(setting.path);
  SettingValues result;
  const auto leaves = TomlSource::leaves(table);
  for (const auto& [name, node] : leaves) {
    const auto* setting = find_setting(name);
    const auto path = fmt::format("{}.{}", section, name);
    if (!setting) source_.fail(*node, path, "unknown setting" + did_you_mean(name, names));
    result.emplace_back(setting, setting_value(source_, *node, path, *setting));
  }
  return result;
}

void ConfigReader::top_level(SweepConfig& config) const {
  const std::vector<std::string> known{"name", "description", "seed",    "out",     "precision", "plugins", "grid",
                                       "zip",  "train",       "measure", "exclude", "override",  "tune"};
  auto known_too = known;  // a setting without its section is a likelier intention than another key
  for (const auto& setting : settings_table()) known_too.push_back(setting.path);
  const auto full_name = [](std::string_view key) {
    for (const auto& setting : settings_table())
      if (setting.info.name == key) return setting.path;
    return std::string(key);
  };
  for (const auto& [key, node] : source_.root())
    if (std::find(known.begin(), known.end(), key.str()) == known.end())
      source_.fail(key.source(), std::string(key.str()), "unknown key" + did_you_mean(full_name(key.str()), known_too));
  const auto text = [&](const std::string& key, std::string& into) {
    if (const auto* node = source_.root().get(key)) into = text_of(source_, *node, key, ParameterInfo::text(key, "", ""));
  };
  config.name = std::filesystem::path(source_.file()).stem().string();
  text("name", config.name);
  if (!is_utf8(config.name))
    throw UsageError(fmt::format("{}: name: must be UTF-8: give the sweep a name in its file", source_.file()));
  if (config.name.empty() || config.name.find('/') != std::string::npos)
    source_.fail(*source_.root().get("name"), "name", "must be a plain name, it becomes a folder");
  config.out = "results/" + config.name + "-run";
  text("description", config.description);
  text("out", config.out);
  std::string precision = name_of(config.precision, precisions);
  text("precision", precision);
  const auto known_precision = value_named(precision, precisions);
  if (!known_precision)
    source_.fail(*source_.root().get("precision"), "precision",
                 fmt::format("must be float or double, got \"{}\"{}", precision,
                             nearest(precision, names_of(precisions)) ? did_you_mean(precision, names_of(precisions)) : ""));
  config.precision = *known_precision;
  if (const auto* node = source_.root().get("seed")) config.seed = std::stoull(axis_value(source_, *node, "seed", "seed"));
  if (const auto* node = source_.root().get("plugins")) {
    if (!node->is_array()) source_.fail(*node, "plugins", "must be a list of paths");
    for (const auto& item : *node->as_array())
      load(config, text_of(source_, item, "plugins", ParameterInfo::text("plugins", "", "")), item);
  }
}

// A plugin's path is relative to the file's folder, or else to the working directory.
void ConfigReader::load(SweepConfig& config, const std::string& path, const toml::node& node) const {
  const auto beside = std::filesystem::path(source_.file()).parent_path() / path;
  const auto found = path_kind<UsageError>(beside) == PathKind::missing ? path : beside.string();
  source_.located(node, "plugins: ", "plugins", [&] {
    reject_control_characters<UsageError>(found);
    config.plugins.push_back(load_plugin(found).path);
  });
}

void ConfigReader::section(SweepConfig& config, const std::string& name) const {
  const auto* node = source_.root().get(name);
  if (!node) return;
  std::vector<std::string> known;
  for (const auto& setting : settings_table())
    if (setting.path.starts_with(name + ".")) known.push_back(setting.info.name);
  for (const auto& [key, value] : source_.table_of(*node, name)) {
    const auto path = name + "." + std::string(key.str());
    const auto* setting = find_setting(path);
    if (!setting) {
      const auto meant = nearest(std::string(key.str()), known);
      source_.fail(key.source(), path,
                   "unknown key" + (meant ? fmt::format(" (did you mean \"{}.{}\"?)", name, *meant)
                                          : did_you_mean(std::string(key.str()), known)));
    }
    setting->set(config.base, setting_value(source_, value, path, *setting));
  }
}

int rank(const std::string& axis) {
  return axis == "task" ? 0 : axis == "model" ? 1 : axis == "estimator" ? 3 : axis == "seed" ? 4 : 2;
}

SweepConfig ConfigReader::read() {
  SweepConfig config;
  config.file = source_.file();
  top_level(config);
  section(config, "train");
  section(config, "measure");

  std::set<std::string> axes;
  const auto take = [&](GridAxis axis, const toml::node& node, const std::string& section) {
    if (!axes.insert(axis.name).second) source_.fail(node, section + "." + axis.name, "this axis is given twice");
    for (const auto& set : source_.sets())
      if (set == axis.name && find_setting(set))
        throw UsageError(fmt::format("--set {}: it is an axis of the sweep; use --set grid.{}=...", set, axis.name));
    return axis;
  };
  if (const auto* node = source_.root().get("grid")) {
    const auto leaves = TomlSource::leaves(source_.table_of(*node, "grid"));
    for (const auto& [name, leaf] : leaves) config.axes.push_back({take(axis_of(source_, name, *leaf, "grid"), *leaf, "grid")});
  }
  for (const auto* table : source_.tables_of("zip")) {
    const auto leaves = TomlSource::leaves(*table);
    std::vector<GridAxis> group;
    for (const auto& [name, leaf] : leaves) {
      group.push_back(take(axis_of(source_, name, *leaf, "zip"), *leaf, "zip"));
      if (group.back().values.size() != group.front().values.size())
        source_.fail(*leaf, "zip." + name,
                     fmt::format("lists walked together must be equally long: {} has {}, {} has {}", group.front().name,
                                 group.front().values.size(), name, group.back().values.size()));
    }
    if (group.empty()) source_.fail(*table, "zip", "must name at least one axis");
    config.axes.push_back(std::move(group));
  }
  for (const char* needed : {"task", "estimator"})
    if (!axes.contains(needed))
      throw UsageError(fmt::format("{}: grid.{}: missing; put {} = [...] into [grid]", source_.file(), needed, needed));
  if (!axes.contains("seed")) config.axes.push_back({GridAxis{"seed", {"0"}}});
  std::stable_sort(config.axes.begin(), config.axes.end(), [](const auto& a, const auto& b) {
    const auto least = [](const auto& group) {
      int r = 9;
      for (const auto& axis : group) r = std::min(r, rank(axis.name));
      return r;
    };
    return least(a) < least(b);
  });

  auto matchable = axes;
  matchable.insert({"model", "seed"});
  for (const auto* table : source_.tables_of("exclude")) config.excludes.push_back(condition(*table, "exclude", matchable));
  for (const auto* table : source_.tables_of("override")) {
    for (const auto& [key, node] : *table)
      if (key.str() != "when" && key.str() != "set")
        source_.fail(key.source(), "override." + std::string(key.str()),
                     "unknown key" + did_you_mean(std::string(key.str()), {"when", "set"}));
    const auto *when = table->get("when"), *set = table->get("set");
    if (!when || !set) source_.fail(*table, "override", "needs both when = {...} and set = {...}");
    Override result{condition(source_.table_of(*when, "override.when"), "override.when", matchable), {}};
    for (auto& item : setting_values(source_.table_of(*set, "override.set"), "override.set")) {
      if (axes.contains(item.first->path)) source_.fail(*set, "override.set." + item.first->path, "it is an axis of the sweep");
      if (std::find(source_.sets().begin(), source_.sets().end(), item.first->path) ==
          source_.sets().end())  // --set takes precedence
        result.set.push_back(std::move(item));
    }
    config.overrides.push_back(std::move(result));
  }
  config.tune = read_tune(source_, config);
  config.echo = echo(config);
  return config;
}

}  // namespace

SweepConfig read_config(const std::string& path, const std::vector<std::string>& sets) {
  std::string text;
  try {
    text = storage::read_file(path);
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}; give the path of a sweep's TOML file", error.what()));
  }
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    throw UsageError(fmt::format("{}: is empty: a sweep names at least a task and an estimator, in a table [grid]", path));
  if (text.starts_with("\x89HDF"))
    throw InputError(fmt::format("{}: is an HDF5 file; give the path of a sweep's TOML file", path));
  toml::table root;
  try {
    root = toml::parse(text, path);
  } catch (const toml::parse_error& e) {
    throw UsageError(fmt::format("{}:{}:{}: {}", path, e.source().begin.line, e.source().begin.column, e.description()));
  }
  TomlSource source(path, std::move(root));
  for (const auto& set : sets) source.set(set);
  return ConfigReader(source).read();
}

}  // namespace hardgrad::sweeps
