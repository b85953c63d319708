#include "experiments/sweeps/plan.hpp"

#include <fmt/format.h>
#include <xxhash.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

#include "core/estimator/estimator.hpp"
#include "core/estimator/evaluations.hpp"
#include "core/registry/plugins.hpp"
#include "core/support/error.hpp"
#include "experiments/storage/archive.hpp"
#include "experiments/sweeps/identity.hpp"
#include "experiments/sweeps/tuning.hpp"
#include "experiments/tasks/task.hpp"
#include "experiments/training/annealing.hpp"
#include "experiments/training/monitor.hpp"

namespace hardgrad::sweeps {
namespace {

constexpr std::size_t most_cells = 1'000'000;

// The properties of a (task, model) pair that estimators need, or why the pair does not work.
struct Fit {
  std::shared_ptr<const Model<float>> model;
  std::string refusal;
};

Fit fit(const Cell& cell, bool posterior, std::uint64_t root, TaskPool& tasks) {
  const CellKeys keys(root, cell.axes);
  const auto task = tasks.get(cell.axes.at("task"), keys.data);
  try {
    return {tasks::make_model_for<float>(*task, cell.spec("model"), keys.init, posterior), ""};
  } catch (const UsageError& e) {
    return {{}, e.what()};
  }
}

}  // namespace

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

std::string identity(const std::string& precision, std::uint64_t root_seed, const Cell& cell) {
  auto text = fmt::format("cell 1\nprecision={}\nroot={}\n", precision, root_seed);
  for (const auto& [name, value] : cell.axes) text += fmt::format("{}={}\n", name, value);
  for (const char* noun : {"task", "model", "estimator"})
    if (const auto* plugin = plugin_of(noun, cell.spec(noun).name))
      text += fmt::format("plugin.{}={}\n", noun, plugin->fingerprint);
  if (is_checkpoint(cell.settings.start)) text += fmt::format("start.file={}\n", storage::read_seal(cell.settings.start).hash);
  if (const auto& file = cell.settings.reference; !file.empty())
    text += fmt::format("reference.file={}\n", storage::read_seal(file).hash);
  for (const auto& setting : settings_table())
    if (setting.in_identity) text += fmt::format("{}={}\n", setting.path, hardgrad::to_string(setting.get(cell.settings)));
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

std::uint64_t run_seed(std::uint64_t root_seed, const AxisValues& axes) {
  return (Key(root_seed) / "run" / axes.at("task") / std::stoull(axes.at("seed"))).value();
}

CellKeys::CellKeys(std::uint64_t root_seed, const AxisValues& axes)
    : data(Key(run_seed(root_seed, axes)) / "data"),
      init(Key(run_seed(root_seed, axes)) / "init" / axes.at("model")),
      order(Key(run_seed(root_seed, axes)) / "order"),
      noise(Key(root_seed) / "noise") {
  for (const auto& [name, value] : axes) noise = noise / name / value;  // a map, so sorted by name
}

std::shared_ptr<const tasks::Task> TaskPool::get(const std::string& spec, Key data) {
  std::shared_ptr<Slot> slot;
  {
    std::lock_guard guard(mutex_);
    auto& place = slots_[{spec, data.value()}];
    if (!place) place = std::make_shared<Slot>();
    slot = place;
  }
  std::lock_guard guard(slot->loading);  // others wait for the loading thread
  if (!slot->task) slot->task = tasks::make_task(Spec::parse(spec), data);
  auto task = slot->task;
  if (slot->users > 0 && --slot->users == 0) slot->task.reset();
  return task;
}

void TaskPool::expect(const Users& users) {
  std::lock_guard guard(mutex_);
  std::erase_if(slots_, [&](const auto& item) { return !users.contains(item.first); });
  for (const auto& [key, count] : users) {
    auto& place = slots_[key];
    if (!place) place = std::make_shared<Slot>();
    place->users = count;
  }
}

Plan make_plan(const SweepConfig& config, TaskPool& tasks) {
  Plan plan{.name = config.name,
            .precision = config.precision,
            .config = config.echo,
            .seed = config.seed,
            .cells = {},
            .warnings = {},
            .hash = {}};
  std::size_t total = 1;
  for (const auto& group : config.axes) {
    total *= group.front().values.size();
    if (total > most_cells)
      throw UsageError(fmt::format("{}: grid: more than {} cells; split the sweep", config.file, most_cells));
  }
  std::vector<bool> excluded(config.excludes.size()), overridden(config.overrides.size());
  std::map<std::tuple<std::string, std::string, bool>, Fit> fits;
  std::set<std::string> hashes, flattering;
  std::set<std::pair<std::string, std::string>> monitored;
  for (std::size_t number = 0; number < total; ++number) {
    Cell cell;
    std::size_t rest = number;
    for (auto group = config.axes.rbegin(); group != config.axes.rend(); ++group) {  // the last varies fastest
      const auto length = group->front().values.size();
      for (const auto& axis : *group) cell.axes[axis.name] = axis.values[rest % length];
      rest /= length;
    }
    if (!cell.axes.contains("model")) {
      const auto& entry = tasks::Tasks::instance().at(cell.spec("task").name);
      cell.axes["model"] = canonical_spec("model", entry.default_model);
    }
    bool out = false;
    for (std::size_t i = 0; i < config.excludes.size(); ++i)
      if (config.excludes[i].matches(cell.axes)) out = excluded[i] = true;
    if (out) continue;
    cell.settings = settings_of(config, cell.axes, &overridden);
    try {
      cell.settings.resolved();
      training::annealed(cell.spec("estimator"), cell.settings.train.anneal, 1);
    } catch (const UsageError& e) {
      throw UsageError(fmt::format("{}: {} (in {})", config.file, e.what(), cell.label()));
    }
    if (const auto& train = cell.settings.train; train.evaluate_split == train.judging_split())
      for (const auto& [name, what] : train.choosing()) flattering.insert(name);
    // Metrics depend on the task, not on the seed of its data.
    if (const auto& what = cell.settings.train.monitor; what != "loss" && monitored.insert({cell.axes.at("task"), what}).second)
      more_is_better(config, "train.monitor", what, cell, tasks);
    if (cell.settings.train.measure.exact && config.precision != "double")
      throw UsageError(fmt::format("{}: measure.exact: needs precision = \"double\"", config.file));
    cell.hash = text_hash(identity(config.precision, config.seed, cell));
    if (!hashes.insert(cell.hash).second) continue;  // zipped lists may repeat a combination

    const auto estimator = cell.spec("estimator");
    const bool posterior = wants_posterior(estimator);
    const std::tuple key{cell.axes.at("task"), cell.axes.at("model"), posterior};
    auto it = fits.find(key);
    if (it == fits.end()) it = fits.emplace(key, fit(cell, posterior, config.seed, tasks)).first;
    cell.skip = it->second.refusal;
    if (cell.skip.empty()) {
      auto structure = it->second.model->structure();
      structure.reference |= !cell.settings.reference.empty();
      cell.skip = training::why_untrainable(estimator, structure, cell.settings.train);
    }
    if (cell.skip.empty()) cell.rows = stated_rows(estimator, it->second.model->structure(), cell.settings.train.steps > 0);
    cell.number = plan.cells.size();
    plan.cells.push_back(std::move(cell));
  }
  for (std::size_t i = 0; i < excluded.size(); ++i)
    if (!excluded[i]) plan.warnings.push_back(config.excludes[i].where + ": this [[exclude]] matches no cell");
  for (const auto& name : flattering)
    plan.warnings.push_back(
        fmt::format("{}: train.{}: selects by the split of the last evaluation, whose results are then optimistic; "
                    "train.final_split = \"test\" uses the other split",
                    config.file, name));
  for (std::size_t i = 0; i < overridden.size(); ++i)
    if (!overridden[i]) plan.warnings.push_back(config.overrides[i].when.where + ": this [[override]] matches no cell");
  if (plan.cells.empty()) throw UsageError(config.file + ": exclude: nothing is left to run");
  std::string all = "plan 1\n" + config.name + "\n";
  for (const auto& h : hashes) all += h + "\n";  // sorted: the order of the file does not matter
  if (config.tune) all += config.tune->text();
  plan.hash = text_hash(all);
  std::string in_order;
  for (const auto& cell : plan.cells) in_order += cell.hash;
  plan.numbering = text_hash(in_order);
  if (config.tune) begin_searches(plan, config, tasks);
  return plan;
}

namespace {

/// Whether a value of an axis matches. A spec with settings and without wildcards is compared in the form of the plan, which omits
/// default settings: rloo[samples=4] is rloo, and not rloo[samples=2].
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

}  // namespace

bool filter_keeps(const std::vector<std::string>& filters, const Cell& cell) {
  return std::all_of(filters.begin(), filters.end(), [&](const std::string& filter) {
    // The key ends at the first '=' before any '[': rloo[samples=4] is a bare pattern.
    const auto equals = filter.find('='), bracket = filter.find('[');
    if (equals == std::string::npos || bracket < equals)
      return std::any_of(cell.axes.begin(), cell.axes.end(),
                         [&](const auto& axis) { return keeps(axis.first, filter, axis.second); });
    const auto name = filter.substr(0, equals), pattern = filter.substr(equals + 1);
    const auto it = cell.axes.find(name);
    if (it == cell.axes.end()) {
      std::vector<std::string> names;
      for (const auto& [axis, value] : cell.axes) names.push_back(axis);
      throw UsageError(fmt::format("--only {}: no axis \"{}\"{}", filter, name, did_you_mean(name, names)));
    }
    return keeps(name, pattern, it->second);
  });
}

std::vector<const Cell*> selected_cells(const Plan& plan, const std::vector<std::string>& filters, std::size_t shard,
                                        std::size_t shards, bool to_come) {
  std::vector<const Cell*> all;
  for (const auto& cell : plan.cells) all.push_back(&cell);
  const auto known = all.size();
  if (plan.tuning)
    for (const auto& cell : plan.tuning->to_come) all.push_back(&cell);
  for (const auto& filter : filters) {
    if (std::any_of(all.begin(), all.end(), [&](const auto* cell) { return filter_keeps({filter}, *cell); })) continue;
    const auto equals = filter.find('='), bracket = filter.find('[');
    const bool named = equals != std::string::npos && !(bracket < equals);
    std::set<std::string> values;
    for (const auto* cell : all)
      for (const auto& [name, value] : cell->axes) {
        if (named ? name != filter.substr(0, equals) : name == "seed") continue;
        values.insert(value);
        values.insert(value.substr(0, value.find('[')));
      }
    throw UsageError(fmt::format("--only {}: matches no cell{}", filter,
                                 did_you_mean(named ? filter.substr(equals + 1) : filter, {values.begin(), values.end()})));
  }
  std::vector<const Cell*> result;
  for (std::size_t i = to_come ? known : 0; i < (to_come ? all.size() : known); ++i)
    if (all[i]->number % shards == shard - 1 && filter_keeps(filters, *all[i])) result.push_back(all[i]);
  return result;
}

bool more_is_better(const SweepConfig& config, const std::string& setting, const std::string& what, const Cell& cell,
                    TaskPool& tasks) {
  return training::higher_is_better(*tasks.get(cell.axes.at("task"), CellKeys(config.seed, cell.axes).data), what,
                                    fmt::format("{}: {}: {}", config.file, setting, cell.spec("task").name));
}

Durations::Left work_of(const std::vector<const Cell*>& cells) {
  Durations::Left work;
  for (const auto* cell : cells) work[kind_of(cell->axes)] += cell->share;
  return work;
}

namespace {

// The lines of a text, sorted.
std::vector<std::string_view> sorted_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t end; (end = text.find('\n')) != std::string_view::npos; text.remove_prefix(end + 1))
    lines.push_back(text.substr(0, end + 1));
  std::sort(lines.begin(), lines.end());
  return lines;
}

}  // namespace

nlohmann::json Plan::json() const {
  // The lines that all identities have are written once: they are most of the file.
  std::vector<std::string> identities;
  for (const auto& cell : cells) identities.push_back(identity(precision, seed, cell));
  auto common = identities.empty() ? std::vector<std::string_view>() : sorted_lines(identities[0]);
  for (const auto& text : identities) {
    const auto lines = sorted_lines(text);
    std::erase_if(common, [&](auto line) { return !std::binary_search(lines.begin(), lines.end(), line); });
  }
  std::string shared;
  for (const auto line : common) shared += line;
  auto list = nlohmann::json::array();
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const auto& cell = cells[i];
    std::string own;
    for (const auto line : sorted_lines(identities[i]))
      if (!std::binary_search(common.begin(), common.end(), line)) own += line;
    list.push_back({{"hash", cell.hash}, {"axes", cell.axes}, {"identity", own}, {"skip", cell.skip}});
    if (tuning)
      list.back().update({{"round", cell.round}, {"search", cell.search}, {"setting", cell.setting}, {"share", cell.share}});
  }
  nlohmann::json all{{"format", 2},      {"name", name},  {"hash", hash},    {"seed", seed}, {"precision", precision},
                     {"config", config}, {"cells", list}, {"common", shared}};
  if (tuning)
    all.update({{"tune", tuning->config->tune->text()},
                {"metric", tuning->config->tune->metric},
                {"searches", tuning_json(*this)},
                {"to_come", tuning->to_come.size()},
                {"work_to_come", work_of(selected_cells(*this, {}, 1, 1, true))}});
  return all;
}

std::string plan_difference(const nlohmann::json& frozen, const Plan& plan) {
  if (frozen.value("hash", "") == plan.hash) return {};
  const auto now = plan.json();
  if (const auto rule = now.value("tune", ""), was = frozen.value("tune", ""); rule != was)
    return was.empty()    ? "nothing was tuned -> [tune]"
           : rule.empty() ? "[tune] -> nothing is tuned"
                          : identity_difference(was, rule);
  if (frozen.value("name", "") != plan.name) return fmt::format("name {} -> {}", frozen.value("name", ""), plan.name);
  if (frozen.value("seed", std::uint64_t{0}) != plan.seed)
    return fmt::format("seed {} -> {}", frozen.value("seed", std::uint64_t{0}), plan.seed);
  if (frozen.value("precision", "") != plan.precision)
    return fmt::format("precision {} -> {}", frozen.value("precision", ""), plan.precision);
  std::map<std::string, nlohmann::json> before, after;
  const auto key = [](const nlohmann::json& cell) { return cell.at("axes").dump() + std::to_string(cell.value("round", 0)); };
  for (const auto& cell : frozen.at("cells")) before[key(cell)] = cell;
  for (const auto& cell : now.at("cells")) after[key(cell)] = cell;
  std::size_t added = 0, removed = 0, changed = 0;
  std::string example;
  for (const auto& [key, cell] : after) {
    const auto it = before.find(key);
    if (it == before.end()) {
      ++added;
    } else if (it->second.at("hash") != cell.at("hash")) {
      ++changed;
      if (example.empty())
        example = identity_difference(frozen.value("common", "") + it->second.value("identity", ""),
                                      now.value("common", "") + cell.value("identity", ""));
    }
  }
  for (const auto& [key, cell] : before) removed += !after.contains(key);
  std::vector<std::string> parts;
  const auto cells = [](std::size_t n) { return fmt::format("{} cell{}", n, n == 1 ? "" : "s"); };
  if (changed) parts.push_back(fmt::format("{} changed ({})", cells(changed), example));
  if (added) parts.push_back(cells(added) + " more");
  if (removed) parts.push_back(cells(removed) + " fewer");
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace hardgrad::sweeps
