#include "experiments/sweeps/plan.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <set>

#include "core/registry/plugins.hpp"
#include "core/support/error.hpp"
#include "experiments/sweeps/cell_data.hpp"
#include "experiments/sweeps/grid.hpp"
#include "experiments/sweeps/tuning.hpp"
#include "experiments/tasks/task.hpp"
#include "experiments/training/monitor.hpp"

namespace hardgrad::sweeps {
CellSettings settings_of(const SweepConfig& config, const AxisValues& axes, std::vector<bool>* used) {
  auto settings = config.base;
  for (const auto& [name, value] : axes)
    if (const auto* setting = find_setting(name)) setting->set(settings, checked_setting(*setting, value));
  for (std::size_t i = 0; i < config.overrides.size(); ++i)
    if (config.overrides[i].when.matches(axes)) {
      if (used) (*used)[i] = true;
      for (const auto& [setting, value] : config.overrides[i].set) setting->set(settings, value);
    }
  return settings;
}

std::string identity(Precision precision, std::uint64_t root_seed, const Cell& cell) {
  auto text = fmt::format("cell 2\nprecision={}\nroot={}\n", name_of(precision, precisions), root_seed);
  for (const auto& [name, value] : cell.axes) text += fmt::format("{}={}\n", name, value);
  for (const char* noun : {"task", "model", "estimator"})
    if (const auto* plugin = plugin_of(noun, cell.spec(noun).name))
      text += fmt::format("plugin.{}={}\n", noun, plugin->fingerprint);
  if (!cell.data_hash.empty()) text += fmt::format("data={}\n", cell.data_hash);
  for (const auto& [setting, file] : networks_of(cell.settings))
    text += fmt::format("{}.file={}\n", setting, sealed_hash(file));
  for (const char* kind : {"task", "model", "estimator"}) text += identity_lines(kind, cell.axes.at(kind));
  for (const auto& setting : settings_table()) {  // as hardgrad::identity_lines, without a copy of the table for each cell
    const auto value = setting.get(cell.settings);
    if (setting.in_identity && (!setting.info.absent || value != *setting.info.absent))
      text += fmt::format("{}={}\n", setting.path, hardgrad::to_string(value));
  }
  return text;
}

std::string text_hash(const std::string& text) { return fmt::format("{:016x}", XXH64(text.data(), text.size(), 0)); }

std::string Cell::label() const {
  std::string text;
  for (const char* name : {"task", "model", "estimator", "seed"}) text += fmt::format("{}={} ", name, axes.at(name));
  for (const auto& [name, value] : axes)
    if (find_setting(name)) text += fmt::format("{}={} ", name, value);
  if (round) text += fmt::format("round={} ", round);
  text.pop_back();
  return text;
}

CellKeys::CellKeys(std::uint64_t root_seed, const AxisValues& axes)
    : init(Key(run_seed(root_seed, axes)) / "init" / axes.at("model")),
      order(Key(run_seed(root_seed, axes)) / "order"),
      noise(Key(root_seed) / "noise") {
  for (const auto& [name, value] : axes) noise = noise / name / value;  // a map, so sorted by name
}

Plan make_plan(const SweepConfig& config, TaskPool& tasks, std::size_t shard, std::size_t shards) {
  const auto grid = std::make_shared<Grid>(config, tasks);
  Plan plan{.name = config.name, .precision = config.precision, .config = config.echo, .seed = config.seed};
  if (shards > 1 && !config.tune) plan.grid = grid;
  std::vector<std::string> hashes;
  std::string in_order, content = config.echo;
  grid->each([&](Cell&& cell) {
    hashes.push_back(cell.hash);
    in_order += cell.hash;
    content += cell.hash + cell.skip;
    for (const auto& [name, value] : cell.axes) plan.values[name].insert(value);
    if (!plan.grid || cell.number % shards == shard - 1) plan.cells.push_back(std::move(cell));
  });
  plan.warnings = grid->warnings();
  if (hashes.empty()) throw UsageError(config.file + ": exclude: nothing is left to run");
  std::sort(hashes.begin(), hashes.end());  // the order of the file does not matter
  std::string all = "plan 1\n" + config.name + "\n";
  for (const auto& hash : hashes) all += hash + "\n";
  if (config.tune) all += config.tune->text();
  plan.hash = text_hash(all);
  plan.numbering = text_hash(in_order);
  plan.content = text_hash(content);
  if (config.tune) begin_searches(plan, config, tasks);
  return plan;
}

void Plan::each_cell(const std::function<void(const Cell&)>& f) const {
  if (grid) return grid->each([&](Cell&& cell) { f(cell); });
  for (const auto& cell : cells) f(cell);
}

namespace {

/// Whether a value of an axis matches. A spec with settings and without wildcards is compared in the form of the plan, which
/// omits default settings: rloo[samples=4] is rloo, and not rloo[samples=2].
bool keeps(const std::string& axis, const std::string& pattern, const std::string& value) {
  const bool spec = axis == "task" || axis == "model" || axis == "estimator";
  if (!spec || pattern.find('[') == std::string::npos || pattern.find_first_of("*?") != std::string::npos)
    return pattern_matches(pattern, value);
  try {
    return canonical_spec(axis, pattern) == value;
  } catch (const UsageError&) {  // it matches no cell, which is reported
    return false;
  }
}

/// `axis=pattern`, or a pattern for any axis. The axis ends at the first '=' before any '[': rloo[samples=4] is a bare pattern.
struct Filter {
  std::string axis, pattern;  // axis: empty for any
  explicit Filter(const std::string& text) : pattern(text) {
    const auto equals = text.find('='), bracket = text.find('[');
    if (equals == std::string::npos || bracket < equals) return;
    axis = text.substr(0, equals);
    pattern = text.substr(equals + 1);
  }
  /// Of a map from axes. UsageError if the axis is none of them.
  template <class Axes, class Keeps>
  bool keeps_any(const Axes& axes, Keeps keeps) const {
    if (axis.empty())
      return std::any_of(axes.begin(), axes.end(), [&](const auto& item) { return keeps(item.first, item.second); });
    if (const auto it = axes.find(axis); it != axes.end()) return keeps(axis, it->second);
    std::vector<std::string> names;
    for (const auto& item : axes) names.push_back(item.first);
    throw UsageError(fmt::format("--only {}={}: no axis \"{}\"{}", axis, pattern, axis, did_you_mean(axis, names)));
  }
};

/// UsageError with suggestions if the filter keeps no cell of the whole plan.
void check_filter(const AxisSets& values, const std::string& text) {
  const Filter filter(text);
  const auto any = [&](const std::string& axis, const std::set<std::string>& of) {
    return std::any_of(of.begin(), of.end(), [&](const auto& value) { return keeps(axis, filter.pattern, value); });
  };
  if (filter.keeps_any(values, any)) return;
  std::set<std::string> words;
  for (const auto& [name, of] : values)
    if (filter.axis.empty() ? name != "seed" : name == filter.axis)
      for (const auto& value : of) words.insert({value, value.substr(0, value.find('['))});
  throw UsageError(
      fmt::format("--only {}: matches no cell{}", text, did_you_mean(filter.pattern, {words.begin(), words.end()})));
}

}  // namespace

bool filter_keeps(const std::vector<std::string>& filters, const Cell& cell) {
  return std::all_of(filters.begin(), filters.end(), [&](const std::string& text) {
    const Filter filter(text);
    return filter.keeps_any(cell.axes, [&](const auto& axis, const auto& value) { return keeps(axis, filter.pattern, value); });
  });
}

std::vector<const Cell*> selected_cells(const Plan& plan, const std::vector<std::string>& filters, std::size_t shard,
                                        std::size_t shards, bool to_come) {
  std::vector<const Cell*> all;
  for (const auto& cell : plan.cells) all.push_back(&cell);
  const auto known = all.size();
  if (plan.tuning)
    for (const auto& cell : plan.tuning->to_come) all.push_back(&cell);
  AxisSets tuned;  // a search changes the values that the grid has
  if (plan.tuning && !filters.empty())
    for (const auto* cell : all)
      for (const auto& [name, value] : cell->axes) tuned[name].insert(value);
  for (const auto& filter : filters) check_filter(plan.tuning ? tuned : plan.values, filter);
  std::vector<const Cell*> result;
  for (std::size_t i = to_come ? known : 0; i < (to_come ? all.size() : known); ++i)
    if (all[i]->number % shards == shard - 1 && filter_keeps(filters, *all[i])) result.push_back(all[i]);
  return result;
}

bool more_is_better(const SweepConfig& config, const std::string& setting, const std::string& what, const Cell& cell,
                    TaskPool& tasks) {
  return training::higher_is_better(*tasks.get(data_of(config.seed, cell)), what,
                                    fmt::format("{}: {}: {}", config.file, setting, cell.spec("task").name));
}

Durations::WorkByKind work_of(const std::vector<const Cell*>& cells) {
  Durations::WorkByKind work;
  for (const auto* cell : cells) work[kind_of(cell->axes)] += cell->share;
  return work;
}

}  // namespace hardgrad::sweeps
