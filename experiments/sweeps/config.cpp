// One validator for the file and for --set: both become one TOML tree; a node without a place in the file
// came from the command line.
#include "experiments/sweeps/config.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>

#include "core/registry/plugins.hpp"
#include "core/support/error.hpp"

namespace hardgrad {
namespace {

using Type = ParameterInfo::Type;

std::string described(const toml::node& node) {
  if (const auto* v = node.as_string()) return fmt::format("\"{}\"", v->get());
  if (node.is_table()) return "a table";
  if (node.is_array()) return "a list";
  std::ostringstream text;
  node.visit([&](const auto& n) {
    if constexpr (toml::is_value<decltype(n)>) text << n;
  });
  return text.str();
}

class ConfigReader {
 public:
  ConfigReader(std::string file, toml::table root) : file_(std::move(file)), root_(std::move(root)) {}

  void set(const std::string& text);
  SweepConfig read();

 private:
  using Flat = std::vector<std::pair<std::string, const toml::node*>>;

  std::string where(const toml::source_region& source, const std::string& path) const {
    if (source.begin.line) return fmt::format("{}:{}:{}", file_, source.begin.line, source.begin.column);
    for (const auto& set : sets_)
      if (set == path || set.starts_with(path + ".") || path.starts_with(set + ".")) return "--set " + set;
    return file_;
  }
  [[noreturn]] void fail(const toml::source_region& source, const std::string& path,
                         const std::string& what) const {
    throw UsageError(fmt::format("{}: {}: {}", where(source, path), path, what));
  }
  [[noreturn]] void fail(const toml::node& node, const std::string& path, const std::string& what) const {
    fail(node.source(), path, what);
  }
  // Runs `check`, putting the place before what it complains about.
  template <class F>
  auto located(const toml::node& node, const std::string& prefix, const std::string& path, F check) const {
    try {
      return check();
    } catch (const UsageError& e) {
      throw UsageError(fmt::format("{}: {}{}", where(node.source(), path), prefix, e.what()));
    }
  }

  // Leaves of a table by dotted path: `train.steps = 1` and `"train.steps" = 1` are the same.
  void flatten(const toml::table& table, const std::string& prefix, Flat& out) const {
    for (const auto& [key, node] : table) {
      auto path = prefix.empty() ? std::string(key.str()) : prefix + "." + std::string(key.str());
      if (const auto* inner = node.as_table())
        flatten(*inner, path, out);
      else
        out.emplace_back(std::move(path), &node);
    }
  }
  const toml::table& table_of(const toml::node& node, const std::string& path) const {
    if (const auto* table = node.as_table()) return *table;
    fail(node, path, "must be a table, got " + described(node));
  }
  std::vector<const toml::table*> tables_of(const std::string& key) const {
    std::vector<const toml::table*> result;
    const auto* node = root_.get(key);
    if (!node) return result;
    const auto* array = node->as_array();
    if (!array) fail(*node, key, fmt::format("must be written [[{}]], one block each", key));
    for (const auto& item : *array) result.push_back(&table_of(item, key));
    return result;
  }

  std::string text_of(const toml::node& node, const std::string& path, const ParameterInfo& info) const;
  Value setting_value(const toml::node& node, const std::string& path, const SettingInfo& setting) const;
  std::string axis_value(const toml::node& node, const std::string& path, const std::string& axis) const;
  GridAxis axis(const std::string& name, const toml::node& node, const std::string& section) const;
  Condition condition(const toml::table& table, const std::string& section,
                      const std::set<std::string>& axes) const;
  SettingValues setting_values(const toml::table& table, const std::string& section) const;
  void top_level(SweepConfig& config) const;
  void load(SweepConfig& config, const std::string& path, const toml::node& node) const;
  void section(SweepConfig& config, const std::string& name) const;

  std::string file_;
  toml::table root_;
  std::vector<std::string> sets_;
};

void ConfigReader::set(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw UsageError(fmt::format("--set: expected a.b=VALUE, got \"{}\"", text));
  const auto path = text.substr(0, equals), value = text.substr(equals + 1);
  std::vector<std::string> parts;
  std::istringstream in(path);
  for (std::string part; std::getline(in, part, '.');) parts.push_back(part);
  if (parts[0] == "zip" || parts[0] == "exclude" || parts[0] == "override")
    throw UsageError(fmt::format("--set {}: [[{}]] blocks can only be changed in the file", path, parts[0]));

  toml::table
      parsed;  // a value is TOML if it reads as TOML, otherwise a text: rloo[samples=4] needs no quotes
  try {
    parsed = toml::parse("x = " + value);
    if (parsed.size() != 1) parsed.clear();
  } catch (const toml::parse_error&) {
  }
  if (parsed.empty()) parsed.insert("x", value);

  sets_.push_back(path);
  auto* table = &root_;
  for (std::size_t i = 0;; ++i) {
    std::string rest;
    for (std::size_t j = i; j < parts.size(); ++j) rest += (j > i ? "." : "") + parts[j];
    const bool last = i + 1 == parts.size();
    if (last || table->contains(rest)) {
      // A copied node has no place in the file.
      parsed.get("x")->visit([&](const auto& node) { table->insert_or_assign(rest, node); });
      return;
    }
    if (!table->contains(parts[i])) table->insert(parts[i], toml::table{});
    auto* next = table->get(parts[i])->as_table();
    if (!next) throw UsageError(fmt::format("--set {}: {} is not a section", path, parts[i]));
    table = next;
  }
}

// The node as the text of a value of the declared type; no silent conversions.
std::string ConfigReader::text_of(const toml::node& node, const std::string& path,
                                  const ParameterInfo& info) const {
  const auto wrong = [&](const char* wanted) {
    fail(node, path, fmt::format("must be {}, got {}", wanted, described(node)));
  };
  switch (info.type) {
    case Type::boolean:
      if (!node.is_boolean()) wrong("true or false");
      return node.as_boolean()->get() ? "true" : "false";
    case Type::integer:
      if (!node.is_integer()) wrong("an integer");
      return std::to_string(node.as_integer()->get());
    case Type::real:
      if (node.is_integer()) return std::to_string(node.as_integer()->get());
      if (!node.is_floating_point()) wrong("a number");
      return fmt::format("{}", node.as_floating_point()->get());
    default:
      if (!node.is_string()) wrong("text");
      return node.as_string()->get();
  }
}

Value ConfigReader::setting_value(const toml::node& node, const std::string& path,
                                  const SettingInfo& setting) const {
  std::string text;
  const auto point = [&](const toml::node& item) {
    if (item.is_string()) return item.as_string()->get();
    if (item.is_integer()) return std::to_string(item.as_integer()->get());
    fail(item, path, "must be steps, \"start\", \"end\" or shares such as \"50%\", got " + described(item));
  };
  if (setting.path != "measure.at") {
    text = text_of(node, path, setting.info);
  } else if (const auto* list = node.as_array()) {
    for (const auto& item : *list) {
      if (!text.empty()) text += ';';
      text += point(item);
    }
  } else {
    text = point(node);
  }
  const auto section = path.substr(0, path.size() - setting.path.size());  // "grid." of grid.train.steps
  return located(node, section, path, [&] { return checked_setting(setting, text); });
}

std::string ConfigReader::axis_value(const toml::node& node, const std::string& path,
                                     const std::string& axis) const {
  if (axis == "seed") {
    if (!node.is_integer() || node.as_integer()->get() < 0)
      fail(node, path, "must be an integer of at least 0, got " + described(node));
    return std::to_string(node.as_integer()->get());
  }
  if (const auto* setting = find_setting(axis)) return to_string(setting_value(node, path, *setting));
  if (!node.is_string()) fail(node, path, "must be text such as \"name[key=value]\", got " + described(node));
  return located(node, path + ": ", path, [&] { return canonical_spec(axis, node.as_string()->get()); });
}

std::vector<std::string> axis_names() {
  std::vector<std::string> names{"task", "model", "estimator", "seed"};
  for (const auto& setting : settings_table()) names.push_back(setting.path);
  return names;
}

GridAxis ConfigReader::axis(const std::string& name, const toml::node& node,
                            const std::string& section) const {
  const auto path = section + "." + name;
  const auto names = axis_names();
  if (std::find(names.begin(), names.end(), name) == names.end())
    fail(node, path, "unknown axis" + did_you_mean(name, names));
  GridAxis result{name, {}};
  const auto add = [&](const toml::node& item) {
    auto value = axis_value(item, path, name);
    if (section == "grid" &&
        std::find(result.values.begin(), result.values.end(), value) != result.values.end())
      fail(item, path, fmt::format("{} is given twice", value));
    result.values.push_back(std::move(value));
  };
  if (const auto* list = node.as_array()) {
    if (list->empty()) fail(node, path, "must not be empty");
    for (const auto& item : *list) add(item);
  } else {
    add(node);
  }
  return result;
}

Condition ConfigReader::condition(const toml::table& table, const std::string& section,
                                  const std::set<std::string>& axes) const {
  Condition result;
  result.where = where(table.source(), section);
  Flat leaves;
  flatten(table, "", leaves);
  if (leaves.empty()) fail(table, section, "must name at least one axis");
  for (const auto& [name, node] : leaves) {
    const auto path = section + "." + name;
    if (!axes.contains(name))
      fail(*node, path, "no such axis in this sweep" + did_you_mean(name, {axes.begin(), axes.end()}));
    const auto add = [&, &name = name](const toml::node& item) {
      if (const auto* text = item.as_string(); text && text->get().find_first_of("*?") != std::string::npos)
        result.patterns[name].push_back(text->get());
      else if (text && !find_setting(name) && name != "seed" && text->get().find('[') == std::string::npos)
        // A bare name stands for every spec of that name; it must exist.
        located(item, path + ": ", path, [&] {
          canonical_spec(name, text->get());
          result.patterns[name].push_back(text->get());
        });
      else
        result.patterns[name].push_back(axis_value(item, path, name));
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
  Flat leaves;
  flatten(table, "", leaves);
  for (const auto& [name, node] : leaves) {
    const auto* setting = find_setting(name);
    if (!setting) fail(*node, section + "." + name, "unknown setting" + did_you_mean(name, names));
    result.emplace_back(setting, setting_value(*node, section + "." + name, *setting));
  }
  return result;
}

void ConfigReader::top_level(SweepConfig& config) const {
  const std::vector<std::string> known{"name", "description", "seed",  "out",     "precision", "plugins",
                                       "grid", "zip",         "train", "measure", "exclude",   "override"};
  for (const auto& [key, node] : root_)
    if (std::find(known.begin(), known.end(), key.str()) == known.end())
      fail(key.source(), std::string(key.str()), "unknown key" + did_you_mean(std::string(key.str()), known));
  const auto text = [&](const std::string& key, std::string& into) {
    if (const auto* node = root_.get(key)) into = text_of(*node, key, ParameterInfo::text(key, "", ""));
  };
  config.name = std::filesystem::path(file_).stem().string();
  text("name", config.name);
  if (config.name.empty() || config.name.find('/') != std::string::npos)
    fail(*root_.get("name"), "name", "must be a plain name, it becomes a folder");
  config.out = "results/" + config.name + "-run";
  text("description", config.description);
  text("out", config.out);
  text("precision", config.precision);
  if (config.precision != "float" && config.precision != "double")
    fail(*root_.get("precision"), "precision",
         fmt::format("must be float or double, got \"{}\"{}", config.precision,
                     nearest(config.precision, {"float", "double"})
                         ? did_you_mean(config.precision, {"float", "double"})
                         : ""));
  if (const auto* node = root_.get("seed")) config.seed = std::stoull(axis_value(*node, "seed", "seed"));
  if (const auto* node = root_.get("plugins")) {
    if (!node->is_array()) fail(*node, "plugins", "must be a list of paths");
    for (const auto& item : *node->as_array())
      load(config, text_of(item, "plugins", ParameterInfo::text("plugins", "", "")), item);
  }
}

// A plugin's path counts from the file's folder, or else from here.
void ConfigReader::load(SweepConfig& config, const std::string& path, const toml::node& node) const {
  const auto beside = std::filesystem::path(file_).parent_path() / path;
  const auto found = std::filesystem::exists(beside) ? beside.string() : path;
  located(node, "plugins: ", "plugins", [&] { config.plugins.push_back(load_plugin(found).path); });
}

void ConfigReader::section(SweepConfig& config, const std::string& name) const {
  const auto* node = root_.get(name);
  if (!node) return;
  std::vector<std::string> known;
  for (const auto& setting : settings_table())
    if (setting.path.starts_with(name + ".")) known.push_back(setting.info.name);
  for (const auto& [key, value] : table_of(*node, name)) {
    const auto path = name + "." + std::string(key.str());
    const auto* setting = find_setting(path);
    if (!setting) fail(key.source(), path, "unknown key" + did_you_mean(std::string(key.str()), known));
    setting->set(config.base, setting_value(value, path, *setting));
  }
}

int rank(const std::string& axis) {
  return axis == "task" ? 0 : axis == "model" ? 1 : axis == "estimator" ? 3 : axis == "seed" ? 4 : 2;
}

SweepConfig ConfigReader::read() {
  SweepConfig config;
  config.file = file_;
  top_level(config);
  section(config, "train");
  section(config, "measure");

  std::set<std::string> axes;
  const auto take = [&](GridAxis axis, const toml::node& node, const std::string& section) {
    if (!axes.insert(axis.name).second) fail(node, section + "." + axis.name, "this axis is given twice");
    for (const auto& set : sets_)
      if (set == axis.name && find_setting(set))
        throw UsageError(
            fmt::format("--set {}: it is an axis of the sweep; use --set grid.{}=...", set, axis.name));
    return axis;
  };
  if (const auto* node = root_.get("grid")) {
    Flat leaves;
    flatten(table_of(*node, "grid"), "", leaves);
    for (const auto& [name, leaf] : leaves)
      config.axes.push_back({take(axis(name, *leaf, "grid"), *leaf, "grid")});
  }
  for (const auto* table : tables_of("zip")) {
    Flat leaves;
    flatten(*table, "", leaves);
    std::vector<GridAxis> group;
    for (const auto& [name, leaf] : leaves) {
      group.push_back(take(axis(name, *leaf, "zip"), *leaf, "zip"));
      if (group.back().values.size() != group.front().values.size())
        fail(*leaf, "zip." + name,
             fmt::format("lists walked together must be equally long: {} has {}, {} has {}",
                         group.front().name, group.front().values.size(), name, group.back().values.size()));
    }
    if (group.empty()) fail(*table, "zip", "must name at least one axis");
    config.axes.push_back(std::move(group));
  }
  for (const char* needed : {"task", "estimator"})
    if (!axes.contains(needed))
      throw UsageError(
          fmt::format("{}: grid.{}: missing; put {} = [...] into [grid]", file_, needed, needed));
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
  for (const auto* table : tables_of("exclude"))
    config.excludes.push_back(condition(*table, "exclude", matchable));
  for (const auto* table : tables_of("override")) {
    for (const auto& [key, node] : *table)
      if (key.str() != "when" && key.str() != "set")
        fail(key.source(), "override." + std::string(key.str()),
             "unknown key" + did_you_mean(std::string(key.str()), {"when", "set"}));
    const auto *when = table->get("when"), *set = table->get("set");
    if (!when || !set) fail(*table, "override", "needs both when = {...} and set = {...}");
    Override result{condition(table_of(*when, "override.when"), "override.when", matchable), {}};
    for (auto& item : setting_values(table_of(*set, "override.set"), "override.set")) {
      if (axes.contains(item.first->path))
        fail(*set, "override.set." + item.first->path, "it is an axis of the sweep");
      if (std::find(sets_.begin(), sets_.end(), item.first->path) == sets_.end())  // --set is stronger
        result.set.push_back(std::move(item));
    }
    config.overrides.push_back(std::move(result));
  }
  config.echo = echo(config);
  return config;
}

}  // namespace

SweepConfig read_config(const std::string& path, const std::vector<std::string>& sets) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (std::filesystem::is_directory(path) || !in || !(text << in.rdbuf()))
    throw InputError(fmt::format("{}: cannot be read; give the path of a sweep's TOML file", path));
  toml::table root;
  try {
    root = toml::parse(text.str(), path);
  } catch (const toml::parse_error& e) {
    throw UsageError(
        fmt::format("{}:{}:{}: {}", path, e.source().begin.line, e.source().begin.column, e.description()));
  }
  ConfigReader reader(path, std::move(root));
  for (const auto& set : sets) reader.set(set);
  return reader.read();
}

}  // namespace hardgrad
