#include "experiments/sweeps/config_values.hpp"

#include <algorithm>

namespace hardgrad::sweeps {
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
