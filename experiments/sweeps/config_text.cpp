// The resolved configuration as TOML; reading it gives the same sweep.
#include <fmt/format.h>
#include <toml++/toml.h>

#include <cmath>
#include <regex>
#include <sstream>

#include "experiments/sweeps/config.hpp"

namespace hardgrad::sweeps {
namespace {

using Type = ParameterInfo::Type;

// A number in its given form: 3, not 3.0, if it is an integer.
void add_number(toml::table& table, const std::string& key, double x) {
  if (x == std::floor(x) && std::abs(x) < 1e15)
    table.insert(key, static_cast<std::int64_t>(x));
  else
    table.insert(key, x);
}

// A value of an axis as a node of the type that is read back.
void add_node(toml::array& list, const std::string& axis, const std::string& text) {
  const auto* setting = find_setting(axis);
  if (axis == "seed") return list.push_back(static_cast<std::int64_t>(std::stoull(text)));
  if (!setting || setting->info.type == Type::text) return list.push_back(text);
  std::visit(
      [&](const auto& value) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(value)>, std::vector<double>>) list.push_back(value);
      },
      checked_setting(*setting, text));
}

toml::table tune_table(const TuneConfig& tune) {
  toml::table table;
  toml::array seeds, rounds;
  for (const auto& seed : tune.seeds) seeds.push_back(static_cast<std::int64_t>(std::stoull(seed)));
  for (double share : tune.rounds) rounds.push_back(share);
  table.insert("seeds", seeds);
  table.insert("rounds", rounds);
  add_number(table, "keep", tune.keep);
  table.insert("metric", tune.metric);
  table.insert("split", to_string(tune.split));
  if (tune.trials) table.insert("trials", static_cast<std::int64_t>(tune.trials));
  for (const auto& axis : tune.axes) {
    if (axis.choices.empty()) {
      toml::table range;
      add_number(range, "low", axis.low);
      add_number(range, "high", axis.high);
      range.insert("scale", axis.log ? "log" : "linear");
      table.insert(axis.name, range);
      continue;
    }
    toml::array list;
    for (const auto& choice : axis.choices) add_node(list, axis.name, choice);
    table.insert(axis.name, list);
  }
  return table;
}

toml::table echo_table(const SweepConfig& config) {
  const auto add = [](toml::table& table, const std::string& key, const Value& value) {
    std::visit(
        [&](const auto& v) {
          if constexpr (!std::is_same_v<std::decay_t<decltype(v)>, std::vector<double>>) table.insert_or_assign(key, v);
        },
        value);
  };
  const auto values = [&](const GridAxis& axis) {
    toml::array list;
    for (const auto& value : axis.values) add_node(list, axis.name, value);
    return list;
  };
  const auto patterns = [&](const Condition& condition) {
    toml::table table;
    for (const auto& [name, texts] : condition.patterns) {
      toml::array list;
      for (const auto& text : texts)
        text.find_first_of("*?") != std::string::npos ? list.push_back(text) : add_node(list, name, text);
      table.insert(name, list);
    }
    return table;
  };
  toml::table root, grid;
  root.insert("name", config.name);
  if (!config.description.empty()) root.insert("description", config.description);
  root.insert("seed", static_cast<std::int64_t>(config.seed));
  root.insert("out", config.out);
  root.insert("precision", name_of(config.precision, precisions));
  if (!config.plugins.empty()) {
    toml::array plugins;
    for (const auto& path : config.plugins) plugins.push_back(path);
    root.insert("plugins", plugins);
  }
  toml::array zips, excludes, overrides;
  for (const auto& group : config.axes) {
    toml::table zip;
    for (const auto& axis : group) (group.size() == 1 ? grid : zip).insert(axis.name, values(axis));
    if (!zip.empty()) zips.push_back(zip);
  }
  root.insert("grid", grid);
  for (const auto& exclude : config.excludes) excludes.push_back(patterns(exclude));
  for (const auto& override : config.overrides) {
    toml::table set;
    for (const auto& [setting, value] : override.set) add(set, setting->path, value);
    overrides.push_back(toml::table{{"when", patterns(override.when)}, {"set", set}});
  }
  if (config.tune) root.insert("tune", tune_table(*config.tune));
  if (!zips.empty()) root.insert("zip", zips);
  if (!excludes.empty()) root.insert("exclude", excludes);
  if (!overrides.empty()) root.insert("override", overrides);
  toml::table train, measure;
  for (const auto& setting : settings_table())
    add(setting.path.starts_with("train.") ? train : measure, setting.info.name, setting.get(config.base));
  root.insert("train", train);
  root.insert("measure", measure);
  return root;
}

}  // namespace

std::string echo(const SweepConfig& config) {
  std::ostringstream text;
  text << toml::toml_formatter(echo_table(config)) << "\n";
  // toml++ writes 0.95 with all digits. The shortest number with the same value is the user's text.
  static const std::regex number(R"((^|\n)(\w+ = )(-?\d+\.\d{15,})(?=\n))");
  const auto all = text.str();
  std::string result;
  auto rest = all.begin();
  for (std::sregex_iterator match(all.begin(), all.end(), number), end; match != end; ++match) {
    result.append(rest, (*match)[3].first).append(fmt::format("{}", std::stod((*match)[3].str())));
    rest = (*match)[3].second;
  }
  return result.append(rest, all.end());
}

}  // namespace hardgrad::sweeps
