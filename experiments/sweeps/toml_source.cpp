// The only file that compiles toml++.
#define TOML_IMPLEMENTATION
#include "experiments/sweeps/toml_source.hpp"

#include <algorithm>
#include <sstream>

#include "experiments/support/text.hpp"

namespace hardgrad::sweeps {
namespace {

void flatten(const toml::table& table, const std::string& prefix, TomlSource::Flat& out) {
  for (const auto& [key, node] : table) {
    auto path = prefix.empty() ? std::string(key.str()) : prefix + "." + std::string(key.str());
    if (const auto* inner = node.as_table())
      flatten(*inner, path, out);
    else
      out.emplace_back(std::move(path), &node);
  }
}

}  // namespace

std::string described(const toml::node& node) {
  if (const auto* v = node.as_string()) return fmt::format("\"{}\"", v->get());
  if (node.is_table()) return "a table";
  if (node.is_array()) return "a list";
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  std::ostringstream text;
  node.visit([&](const auto& n) {
    if constexpr (toml::is_value<decltype(n)>) text << n;
  });
  return text.str();
}

void TomlSource::set(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0) throw UsageError(fmt::format("--set: expected a.b=VALUE, got \"{}\"", text));
  const auto path = text.substr(0, equals), value = text.substr(equals + 1);
  if (!is_utf8(text)) throw UsageError(fmt::format("--set {}: must be UTF-8, got {}", path, text));
  std::vector<std::string> parts;
  std::istringstream in(path);
  for (std::string part; std::getline(in, part, '.');) parts.push_back(part);
  if (parts[0] == "zip" || parts[0] == "exclude" || parts[0] == "override")
    throw UsageError(fmt::format("--set {}: [[{}]] blocks can only be changed in the file", path, parts[0]));

  toml::table parsed;  // a value that does not parse as TOML is a text: rloo[samples=4] needs no quotes
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
      // A copied node has no position in the file.
      parsed.get("x")->visit([&](const auto& node) { table->insert_or_assign(rest, node); });
      return;
    }
    if (!table->contains(parts[i])) table->insert(parts[i], toml::table{});
    auto* next = table->get(parts[i])->as_table();
    if (!next) throw UsageError(fmt::format("--set {}: {} is not a section", path, parts[i]));
    table = next;
  }
}

std::string TomlSource::where(const toml::source_region& source, const std::string& path) const {
  if (source.begin.line) return fmt::format("{}:{}:{}", file_, source.begin.line, source.begin.column);
  for (const auto& set : sets_)
    if (set == path || set.starts_with(path + ".") || path.starts_with(set + ".")) return "--set " + set;
  return file_;
}

void TomlSource::fail(const toml::source_region& source, const std::string& path, const std::string& what) const {
  throw UsageError(fmt::format("{}: {}: {}", where(source, path), path, what));
}

TomlSource::Flat TomlSource::leaves(const toml::table& table) {
  Flat found;
  flatten(table, "", found);
  return found;
}

const toml::table& TomlSource::table_of(const toml::node& node, const std::string& path) const {
  if (const auto* table = node.as_table()) return *table;
  fail(node, path, "must be a table, got " + described(node));
}

std::vector<const toml::table*> TomlSource::tables_of(const std::string& key) const {
  std::vector<const toml::table*> result;
  const auto* node = root_.get(key);
  if (!node) return result;
  const auto* array = node->as_array();
  if (!array) fail(*node, key, fmt::format("must be written [[{}]], one block each", key));
  for (const auto& item : *array) result.push_back(&table_of(item, key));
  return result;
}

namespace {

using Type = ParameterInfo::Type;

std::vector<std::string> axis_names() {
  std::vector<std::string> names{"task", "model", "estimator", "seed"};
  for (const auto& setting : settings_table()) names.push_back(setting.path);
  return names;
}

}  // namespace

std::string text_of(const TomlSource& source, const toml::node& node, const std::string& path, const ParameterInfo& info) {
  const auto wrong = [&](const char* wanted) {
    source.fail(node, path, fmt::format("must be {}, got {}", wanted, described(node)));
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

Value setting_value(const TomlSource& source, const toml::node& node, const std::string& path, const SettingInfo& setting) {
  std::string text;
  const auto point = [&](const toml::node& item) {
    if (item.is_string()) return item.as_string()->get();
    if (item.is_integer()) return std::to_string(item.as_integer()->get());
    source.fail(item, path, "must be steps, \"start\", \"end\" or shares such as \"50%\", got " + described(item));
  };
  if (setting.path != "measure.at") {
    text = text_of(source, node, path, setting.info);
  } else if (const auto* list = node.as_array()) {
    for (const auto& item : *list) {
      if (!text.empty()) text += ';';
      text += point(item);
    }
  } else {
    text = point(node);
  }
  const auto section = path.substr(0, path.size() - setting.path.size());  // "grid." of grid.train.steps
  return source.located(node, section, path, [&] { return checked_setting(setting, text); });
}

std::string setting_text(const TomlSource& source, const toml::node& node, const std::string& path,
                         const SettingInfo& setting) {
  const auto value = setting_value(source, node, path, setting);
  const auto* text = std::get_if<std::string>(&value);
  return text ? *text : to_string(value);
}

std::string axis_value(const TomlSource& source, const toml::node& node, const std::string& path, const std::string& axis) {
  if (axis == "seed") {
    if (!node.is_integer() || node.as_integer()->get() < 0)
      source.fail(node, path, "must be an integer of at least 0, got " + described(node));
    return std::to_string(node.as_integer()->get());
  }
  if (const auto* setting = find_setting(axis)) return setting_text(source, node, path, *setting);
  if (!node.is_string()) source.fail(node, path, "must be text such as \"name[key=value]\", got " + described(node));
  return source.located(node, path + ": ", path, [&] { return canonical_spec(axis, node.as_string()->get()); });
}

GridAxis axis_of(const TomlSource& source, const std::string& name, const toml::node& node, const std::string& section) {
  const auto path = section + "." + name;
  const auto names = axis_names();
  if (std::find(names.begin(), names.end(), name) == names.end())
    source.fail(node, path, "unknown axis" + did_you_mean(name, names));
  GridAxis result{name, {}};
  const auto add = [&](const toml::node& item) {
    auto value = axis_value(source, item, path, name);
    if (section == "grid" && std::find(result.values.begin(), result.values.end(), value) != result.values.end())
      source.fail(item, path, fmt::format("{} is given twice", value));
    result.values.push_back(std::move(value));
  };
  if (const auto* list = node.as_array()) {
    if (list->empty()) source.fail(node, path, "must not be empty");
    for (const auto& item : *list) add(item);
  } else {
    add(node);
  }
  return result;
}

}  // namespace hardgrad::sweeps
