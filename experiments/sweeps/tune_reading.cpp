#include "experiments/sweeps/toml_source.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/estimator/estimator.hpp"

namespace hardgrad::sweeps {
namespace {

const std::vector<std::string> keys{"trials", "seeds", "rounds", "keep", "metric", "split"};

// Settings of a trial's length and criterion are not tunable.
bool tunable(const std::string& path) {
  static const std::set<std::string> fixed{"most_rows",
                                           "most_attention_values",
                                           "most_cpu_seconds",
                                           "target_loss",
                                           "patience",
                                           "monitor",
                                           "parts",
                                           "threads",
                                           "save_seconds",
                                           "save_every",
                                           "steps",
                                           "log_every",
                                           "evaluate_every",
                                           "evaluate_examples",
                                           "evaluate_split",
                                           "final_split",
                                           "decode",
                                           "beam",
                                           "keep_best",
                                           "checkpoint"};
  return path.starts_with("train.") && !fixed.contains(path.substr(6));
}

class TuneReader {
 public:
  TuneReader(const TomlSource& source, const SweepConfig& config) : source_(source), config_(config) {}
  TuneConfig read(const toml::table& table);

 private:
  std::vector<std::string> estimators_with(const std::string& parameter) const;
  void add_part(std::map<std::string, TomlSource::Flat>& axes, const std::string& name, const toml::node& node) const;
  TunedAxis axis(const std::string& name, const TomlSource::Flat& parts) const;
  void range(TunedAxis& axis, const TomlSource::Flat& parts) const;
  std::string value(const TunedAxis& axis, const toml::node& node, const std::string& path) const;
  double number(const toml::node& node, const std::string& path, double low, double high) const;
  void seeds(TuneConfig& tune, const toml::table& table) const;
  void rounds(TuneConfig& tune, const toml::table& table) const;

  const TomlSource& source_;
  const SweepConfig& config_;
};

std::vector<std::string> values_of(const SweepConfig& config, const std::string& name) {
  for (const auto& group : config.axes)
    for (const auto& axis : group)
      if (axis.name == name) return axis.values;
  return {};
}

std::vector<std::string> TuneReader::estimators_with(const std::string& parameter) const {
  std::vector<std::string> found;
  const TunedAxis axis{.name = "estimator." + parameter, .choices = {}};
  for (const auto& estimator : values_of(config_, "estimator"))
    if (applies(axis, estimator)) found.push_back(estimator);
  return found;
}

// `train.warmup.low` is part of the range of `train.warmup`.
void TuneReader::add_part(std::map<std::string, TomlSource::Flat>& axes, const std::string& name,
                          const toml::node& node) const {
  const auto dot = name.rfind('.');
  const auto last = name.substr(dot + 1);
  const bool part = dot != std::string::npos && !find_setting(name) && (last == "low" || last == "high" || last == "scale");
  auto& parts = axes[part ? name.substr(0, dot) : name];
  parts.emplace_back(part ? last : "", &node);
}

double TuneReader::number(const toml::node& node, const std::string& path, double low, double high) const {
  const auto value = node.value<double>();
  if (!value || !std::isfinite(*value)) source_.fail(node, path, "must be a number, got " + described(node));
  if (*value < low || *value > high)
    source_.fail(node, path, fmt::format("must be from {} to {}, got {}", low, high, described(node)));
  return *value;
}

std::string TuneReader::value(const TunedAxis& axis, const toml::node& node, const std::string& path) const {
  if (!axis.of_estimator()) return setting_text(source_, node, path, *find_setting(axis.name));
  if (!node.is_value()) source_.fail(node, path, "must be a value, got " + described(node));
  auto text = node.is_string() ? node.as_string()->get() : described(node);
  source_.located(node, path + ": ", path, [&] {
    for (const auto& estimator : estimators_with(axis.parameter()))
      canonical_spec("estimator", Spec::parse(estimator).with(axis.parameter(), text).text);
  });
  return text;
}

void TuneReader::range(TunedAxis& axis, const TomlSource::Flat& parts) const {
  const auto path = "tune." + axis.name;
  const toml::node *low = nullptr, *high = nullptr;
  for (const auto& [part, node] : parts) {
    if (part == "low") low = node;
    if (part == "high") high = node;
    if (part != "scale") continue;
    const auto* scale = node->as_string();
    if (!scale || (scale->get() != "log" && scale->get() != "linear"))
      source_.fail(*node, path + ".scale", "must be \"log\" or \"linear\", got " + described(*node));
    axis.log = scale->get() == "log";
  }
  const auto& any = *parts.front().second;
  if (!low || !high) source_.fail(any, path, "a range needs both ends: { low = ..., high = ... }");
  constexpr double endless = std::numeric_limits<double>::infinity();
  axis.low = number(*low, path + ".low", -endless, endless);
  axis.high = number(*high, path + ".high", -endless, endless);
  value(axis, *low, path + ".low");  // if both ends are allowed, so are the values between
  value(axis, *high, path + ".high");
  if (axis.low >= axis.high)
    source_.fail(*high, path,
                 fmt::format("a range goes from low to high: {} is not below {}", described(*low), described(*high)));
  if (axis.log && axis.low <= 0)
    source_.fail(*low, path + ".low",
                 fmt::format("a range is drawn log-uniformly, so low must be above 0, got {}; or set scale = \"linear\"",
                             described(*low)));
}

TunedAxis TuneReader::axis(const std::string& name, const TomlSource::Flat& parts) const {
  const auto path = "tune." + name;
  const auto& node = *parts.front().second;
  TunedAxis result{.name = name, .choices = {}};
  ParameterInfo info;
  if (result.of_estimator()) {
    const auto having = estimators_with(result.parameter());
    if (having.empty()) {
      std::set<std::string> known;
      for (const auto& estimator : values_of(config_, "estimator"))
        for (const auto& p : Estimators::instance().at(Spec::parse(estimator).name).parameters)
          known.insert("estimator." + p.name);
      source_.fail(node, path, "no estimator of the sweep has it" + did_you_mean(name, {known.begin(), known.end()}));
    }
    for (const auto& estimator : having)
      for (const auto& [key, value] : Spec::parse(estimator).arguments)
        if (key == result.parameter()) source_.fail(node, path, fmt::format("{} sets it; remove it there or here", estimator));
    for (const auto& declared : Estimators::instance().at(Spec::parse(having.front()).name).parameters)
      if (declared.name == result.parameter()) info = declared;
  } else {
    const auto* setting = find_setting(name);
    if (!setting) {
      auto names = keys;
      for (const auto& known : settings_table())
        if (tunable(known.path)) names.push_back(known.path);
      source_.fail(node, path, "unknown setting" + did_you_mean(name, names));
    }
    if (!tunable(name))
      source_.fail(node, path, "cannot be tuned: it does not affect training, or sets its length or criterion");
    if (!values_of(config_, name).empty()) source_.fail(node, path, "it is an axis of the sweep: compared or tuned, not both");
    for (const auto& override : config_.overrides)
      for (const auto& [set, value] : override.set)
        if (set->path == name) source_.fail(node, path, "an [[override]] sets it: overridden or tuned, not both");
    if (std::find(source_.sets().begin(), source_.sets().end(), name) != source_.sets().end())
      throw UsageError(fmt::format("--set {}: it is tuned; use --set tune.{}=[...]", name, name));
    info = setting->info;
  }
  result.whole = info.type == ParameterInfo::Type::integer;
  if (!info.open_low) result.least = info.low;
  if (!info.open_high) result.most = info.high;
  if (!parts.front().first.empty()) {
    if (!result.whole && info.type != ParameterInfo::Type::real)
      source_.fail(node, path,
                   fmt::format("is not a number, so it has no range: give a list of choices (it is: {})", info.type_name()));
    range(result, parts);
    return result;
  }
  const auto* list = node.as_array();
  if (!list)
    source_.fail(node, path, "must be a list of choices, or a range { low = ..., high = ... }, got " + described(node));
  if (list->empty()) source_.fail(node, path, "must not be empty");
  for (const auto& item : *list) {
    result.choices.push_back(value(result, item, path));
    if (std::count(result.choices.begin(), result.choices.end(), result.choices.back()) > 1)
      source_.fail(item, path, fmt::format("{} is given twice", result.choices.back()));
  }
  return result;
}

void TuneReader::seeds(TuneConfig& tune, const toml::table& table) const {
  const auto* node = table.get("seeds");
  if (!node)
    source_.fail(table, "tune.seeds", "missing: give seeds for the trials that are not in the grid, such as [101, 102]");
  const auto* list = node->as_array();
  if (!list || list->empty())
    source_.fail(*node, "tune.seeds", "must be a list of seeds, such as [101, 102], got " + described(*node));
  for (const auto& item : *list) tune.seeds.push_back(axis_value(source_, item, "tune.seeds", "seed"));
  const auto reported = values_of(config_, "seed");
  for (std::size_t i = 0; i < tune.seeds.size(); ++i) {
    if (std::count(tune.seeds.begin(), tune.seeds.end(), tune.seeds[i]) > 1)
      source_.fail(*node, "tune.seeds", fmt::format("{} is given twice", tune.seeds[i]));
    if (std::find(reported.begin(), reported.end(), tune.seeds[i]) != reported.end())
      source_.fail(
          *node, "tune.seeds",
          fmt::format("{} is a seed of the grid: its results would be optimistic for settings chosen by it", tune.seeds[i]));
  }
}

void TuneReader::rounds(TuneConfig& tune, const toml::table& table) const {
  if (const auto* node = table.get("rounds")) {
    const auto* list = node->as_array();
    if (!list || list->empty())
      source_.fail(*node, "tune.rounds",
                   "must be a list of shares of the training, such as [0.1, 0.3, 1], got " + described(*node));
    tune.rounds.clear();
    for (const auto& item : *list) {
      const double share = number(item, "tune.rounds", 0, 1);
      if (share <= 0 || (!tune.rounds.empty() && share <= tune.rounds.back()))
        source_.fail(item, "tune.rounds",
                     fmt::format("shares of the training must be above 0 and increase, got {}", described(item)));
      tune.rounds.push_back(share);
    }
  }
  if (const auto* node = table.get("keep")) {
    tune.keep = number(*node, "tune.keep", 0, 1);
    if (tune.keep <= 0) source_.fail(*node, "tune.keep", "the share of settings kept must be above 0, got " + described(*node));
  }
}

TuneConfig TuneReader::read(const toml::table& table) {
  TuneConfig tune;
  std::map<std::string, TomlSource::Flat> axes;
  for (const auto& [name, node] : TomlSource::leaves(table))
    if (std::find(keys.begin(), keys.end(), name) == keys.end()) add_part(axes, name, *node);
  if (axes.empty())
    source_.fail(table, "tune", "names nothing to tune; add e.g. train.learning_rate = { low = 1e-4, high = 1e-1 }");
  for (const auto& [name, parts] : axes) tune.axes.push_back(axis(name, parts));
  if (const auto* node = table.get("trials")) {
    const auto* whole = node->as_integer();
    if (!whole || whole->get() < 1 || whole->get() > 100'000)
      source_.fail(*node, "tune.trials", "must be an integer from 1 to 100000, got " + described(*node));
    tune.trials = static_cast<std::size_t>(whole->get());
  } else {
    for (const auto& axis : tune.axes)
      if (axis.choices.empty())
        source_.fail(table, "tune.trials",
                     fmt::format("missing: the number of settings to sample, as {} is a range", axis.name));
  }
  seeds(tune, table);
  rounds(tune, table);
  const auto text = [&](const char* key, std::string& into) {
    if (const auto* node = table.get(key))
      into = text_of(source_, *node, std::string("tune.") + key, ParameterInfo::text(key, "", ""));
  };
  text("metric", tune.metric);
  std::string split = to_string(tune.split);
  text("split", split);
  const auto named = std::ranges::find(training::evaluation_splits, split, &Named<tasks::Split>::name);
  if (named == std::end(training::evaluation_splits))
    source_.fail(*table.get("split"), "tune.split", fmt::format("must be heldout or test, got \"{}\"", split));
  tune.split = named->value;
  return tune;
}

}  // namespace

std::optional<TuneConfig> read_tune(const TomlSource& source, const SweepConfig& config) {
  const auto* node = source.root().get("tune");
  if (!node) return {};
  return TuneReader(source, config).read(source.table_of(*node, "tune"));
}

}  // namespace hardgrad::sweeps
