// The table itself: one line a setting.
#include "experiments/sweeps/settings_table.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <string_view>

#include "core/support/error.hpp"
#include "experiments/sweeps/config.hpp"

namespace hardgrad::sweeps {
namespace {

constexpr double many = 2e9, endless = std::numeric_limits<double>::infinity();

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size() && !text.empty();) {
    const auto end = std::min(text.find(';', at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

// A point of measurement as a step of `steps`, or -1 if it cannot be read.
double point(std::string_view text, double steps) {
  if (text == "start") return 0;
  if (text == "end") return steps;
  const bool share = text.ends_with('%');
  if (share) text.remove_suffix(1);
  double value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= 0 && value <= many)) return -1;
  if (share) return value <= 100 ? std::round(value / 100 * steps) : -1;
  return value == std::floor(value) ? value : -1;
}

using Info = ParameterInfo;

template <class Member>
SettingInfo setting(const std::string& section, Info info, Member member) {
  using M = std::decay_t<decltype(member(std::declval<CellSettings&>()))>;
  SettingInfo result;
  result.path = section + "." + info.name;
  result.get = [member](const CellSettings& s) -> Value {
    const M& m = member(const_cast<CellSettings&>(s));
    if constexpr (std::is_same_v<M, int>)
      return static_cast<std::int64_t>(m);
    else
      return m;
  };
  result.set = [member](CellSettings& s, const Value& value) {
    if constexpr (std::is_same_v<M, int>)
      member(s) = static_cast<int>(std::get<std::int64_t>(value));
    else
      member(s) = std::get<M>(value);
  };
  info.fallback = result.get(CellSettings{});
  result.info = std::move(info);
  return result;
}

// No number of a result depends on it.
SettingInfo apart(SettingInfo setting) {
  setting.in_identity = false;
  return setting;
}

#define CELL(SECTION, INFO, MEMBER) \
  setting(                          \
      SECTION, INFO, [](CellSettings & s) -> auto& { return s.MEMBER; })
#define TRAIN(INFO, MEMBER) \
  setting(                  \
      "train", INFO, [](CellSettings & s) -> auto& { return s.train.MEMBER; })
#define MEASURE(INFO, MEMBER) CELL("measure", INFO, MEMBER)

std::vector<SettingInfo> make_table() {
  return {
      TRAIN(Info::integer("steps", 0, 0, many,
                          "training steps; 0 measures the untrained network, or leaves it to most_rows, most_attention_values "
                          "or most_cpu_seconds"),
            steps),
      TRAIN(Info::real("most_rows", 0, 0, endless, "training ends at so many rows of the network, too; 0: no limit"), rows),
      TRAIN(Info::real("most_attention_values", 0, 0, endless, "training ends at so many of them, too; 0: no limit"),
            attention_values),
      TRAIN(Info::real(
                "most_cpu_seconds", 0, 0, endless,
                "training ends after so many seconds of its thread, too, which no two runs do at the same step; 0: no limit"),
            cpu_seconds),
      TRAIN(Info::real("target_loss", 0, -endless, endless, "training ends at an evaluation whose loss is no higher, too"),
            target_loss),
      TRAIN(Info::integer("patience", 0, 0, many,
                          "training ends after so many evaluations in a row without a better one, too; 0: never"),
            patience),
      TRAIN(Info::text("monitor", "",
                       "what an evaluation is better by, for patience and keep_best: loss (of the estimator's own target), a "
                       "loss by its name, or a metric"),
            monitor),
      TRAIN(Info::integer("batch", 0, 1, 1e6, "examples per training step"), batch),
      TRAIN(Info::choice("optimizer", "", {"sgd", "rmsprop", "adam"}, "optimiser of the network"), optimizer.name),
      TRAIN(Info::real("learning_rate", 0, 0, endless, "its step size").above(), optimizer.learning_rate),
      TRAIN(Info::real("momentum", 0, 0, 1, "of sgd").below(), optimizer.momentum),
      TRAIN(Info::real("decay", 0, 0, 1, "of rmsprop's average of squares").below(), optimizer.decay),
      TRAIN(Info::real("beta1", 0, 0, 1, "adam's average of gradients").below(), optimizer.beta1),
      TRAIN(Info::real("beta2", 0, 0, 1, "adam's average of squares").below(), optimizer.beta2),
      TRAIN(Info::real("epsilon", 0, 0, endless, "added to adam's and rmsprop's divisor").above(), optimizer.epsilon),
      TRAIN(Info::real("clip", 0, 0, endless, "largest norm of the gradient; 0 is no limit"), optimizer.clip),
      TRAIN(Info::real("weight_decay", 0, 0, endless,
                       "taken off every parameter each step, times the learning rate (decoupled, as AdamW's)"),
            optimizer.weight_decay),
      TRAIN(Info::choice("schedule", "", {"constant", "linear", "cosine", "step"}, "of the learning rate"), optimizer.schedule),
      TRAIN(Info::integer("warmup", 0, 0, many, "steps of linear increase at the start"), optimizer.warmup),
      TRAIN(Info::real("floor", 0, 0, 1, "learning rate at the end, as a share of the first"), optimizer.floor),
      TRAIN(Info::real("drop", 0, 0, 1, "schedule=step: the factor applied").above(), optimizer.drop),
      TRAIN(Info::integer("drop_every", 0, 0, many, "schedule=step: every so many steps"), optimizer.drop_every),
      TRAIN(
          Info::text("apart", "",
                     "parameters that have an optimiser of their own, on the same schedule: a name, or how it begins before a "
                     "dot (\"prior\")"),
          apart),
      TRAIN(Info::choice("apart_optimizer", "", {"sgd", "rmsprop", "adam"}, "which"), apart_optimizer),
      TRAIN(Info::real("apart_learning_rate", 0, 0, endless, "its step size").above(), apart_learning_rate),
      TRAIN(Info::real("own_learning_rate", 0, 0, endless, "of the estimator's own networks (Adam, on the same schedule)")
                .above(),
            own_learning_rate),
      TRAIN(Info::text("anneal", "",
                       "real settings of the estimator that go in a straight line to these values, reached at train.steps: "
                       "\"temperature=0.1\""),
            anneal),
      TRAIN(Info::integer("log_every", 0, 1, many, "steps between logged training losses"), log_every),
      TRAIN(Info::integer("evaluate_every", 0, 0, many, "steps between evaluations; 0: only at the end"), evaluate_every),
      TRAIN(Info::integer("evaluate_examples", 0, 0, many, "examples per evaluation; 0 is the whole split"), evaluate_examples),
      TRAIN(Info::choice("evaluate_split", "", {"heldout", "test"}, "the split evaluated on"), evaluate_split),
      TRAIN(Info::choice("final_split", "", {"same", "heldout", "test"},
                         "the split of the last evaluation, by which the run is judged: \"test\" where keep_best, patience or "
                         "target_loss choose by held-out examples; same: evaluate_split"),
            final_split),
      TRAIN(Info::flag("decode", false, "also decode freely in the last evaluation"), decode),
      TRAIN(Info::integer("beam", 0, 1, 1000, "decode: by beam search with so many beginnings of a sentence; 1: greedily"),
            beam),
      TRAIN(Info::flag("keep_best", false, "go back to the best evaluation's parameters before the last one"), keep_best),
      CELL("train",
           Info::text("start", "",
                      "a network to start from: a checkpoint of it (FILE.h5), or an estimator that first trains it"),
           start),
      CELL("train", Info::integer("start_steps", 0, 0, many, "steps that this estimator trains, with the same settings"),
           start_steps),
      CELL("train",
           Info::flag("checkpoint", false, "save the trained network beside the cell, for measure, gradient and evaluate"),
           checkpoint),
      apart(CELL("train",
                 Info::real("save_seconds", 0, 0, endless,
                            "how often a cell is saved on its way, so that a run that is killed goes on from there; 0: never"),
                 save_seconds)),
      apart(CELL("train", Info::integer("save_every", 0, 0, many, "the same, by steps; 0: by the clock alone"), save_every)),
      MEASURE(Info::text("at", "", "when bias and variance are measured: a list of steps, \"start\", \"end\", \"50%\""),
              measure_at),
      MEASURE(Info::integer("replicates", 0, 2, many, "gradients drawn per measurement"), train.measure.replicates),
      MEASURE(
          Info::integer("most_replicates", 0, 0, many,
                        "where they do not support their intervals, as many more are drawn, and again, up to this; 0: never"),
          train.measure.most_replicates),
      MEASURE(Info::integer("batch", 0, 1, 1e6, "examples measured on: the first of the training split"), train.measure_batch),
      MEASURE(
          Info::integer("adapt", 0, 0, many,
                        "steps that what an estimator learns (averages, critics, control variates) is trained by itself, the "
                        "network held, before it is measured"),
          train.measure_adapt),
      MEASURE(Info::flag("exact", false, "visit every outcome instead of sampling (precision = \"double\")"),
              train.measure.exact),
      MEASURE(Info::choice("estimand", "", {"any", "enumerated", "none"},
                           "the true gradient: by a long run if it cannot be enumerated, enumerated only, or none"),
              train.measure.estimand),
      MEASURE(Info::integer("directions", 0, 0, 1e4, "random directions of the bias test"), train.measure.directions),
      MEASURE(Info::real("level", 0, 0, 1, "of the confidence intervals").above().below(), train.measure.level),
      MEASURE(Info::real("leaf_cap", 0, 1, endless, "most leaves of the tree behind the exact gradient"),
              train.measure.leaf_cap),
      MEASURE(Info::real("outcome_cap", 0, 1, endless, "most outcomes an exact measurement may visit"),
              train.measure.outcome_cap),
  };
}

}  // namespace

training::TrainSettings CellSettings::resolved() const {
  auto result = train;
  const bool by_cost = train.rows > 0 || train.attention_values > 0 || train.cpu_seconds > 0;
  const bool open = train.steps == 0 && by_cost;  // the number of steps is not known beforehand
  if (open) result.steps = static_cast<int>(many);
  result.optimizer.total_steps = train.steps;
  const auto& schedule = train.optimizer.schedule;
  if (open && train.optimizer.has_horizon())
    throw UsageError(fmt::format("train.schedule = \"{}\": needs train.steps, over which it goes down", schedule));
  for (int trained : {train.steps, start_steps})
    if (trained > 0 && train.optimizer.has_horizon() && trained <= train.optimizer.warmup)
      throw UsageError(
          fmt::format("train.warmup: after {} steps of it, of {} no step is left for schedule = \"{}\" to go down; lower it",
                      train.optimizer.warmup, trained, schedule));
  if (schedule == "step" && train.optimizer.drop_every == 0)
    throw UsageError("train.schedule = \"step\": needs train.drop_every, the steps between two drops");
  if (train.beam > 1 && !train.decode) throw UsageError(fmt::format("train.beam = {}: needs train.decode = true", train.beam));
  if (!train.anneal.empty() && train.steps == 0)
    throw UsageError(fmt::format("train.anneal = \"{}\": needs train.steps, over which it goes", train.anneal));
  if (train.evaluate_split == "test")
    for (const auto& [name, what] : train.choosing())
      throw UsageError(
          fmt::format("train.{}: would {} on test, the split that judges what was chosen; set train.evaluate_split = "
                      "\"heldout\" and train.final_split = \"test\"",
                      name, what));
  const bool has_target = train.target_loss > training::TrainSettings{}.target_loss;
  for (const auto& [set, name] : {std::pair{has_target, "target_loss"}, {train.patience > 0, "patience"}}) {
    if (set && train.evaluate_every == 0)
      throw UsageError(fmt::format("train.{}: needs train.evaluate_every: it is evaluations that it is about", name));
    if (set && train.steps == 0 && !by_cost)
      throw UsageError(fmt::format("train.{}: needs a limit beside it, such as train.steps: it may never be reached", name));
  }
  if ((start_steps > 0) != (!start.empty() && !is_checkpoint(start)))
    throw UsageError(start_steps > 0
                         ? "train.start_steps: needs train.start, an estimator that trains for them"
                         : fmt::format("train.start = \"{}\": needs train.start_steps, for which it trains", start));
  if (start_steps > 0) canonical_spec("estimator", start);
  std::set<int> steps;
  for (const auto& part : split(measure_at)) {
    if (open && part.ends_with('%'))
      throw UsageError(fmt::format("measure.at: {} is a share of train.steps, which is 0", part));
    const double step = point(part, result.steps);
    if (step > result.steps)
      throw UsageError(
          fmt::format("measure.at: step {} lies beyond train.steps = {}; \"end\" is always the last one", part, result.steps));
    steps.insert(static_cast<int>(step));
  }
  result.measure_at.assign(steps.begin(), steps.end());
  return result;
}

const std::vector<SettingInfo>& settings_table() {
  static const auto table = make_table();
  return table;
}

const SettingInfo* find_setting(const std::string& path) {
  for (const auto& setting : settings_table())
    if (setting.path == path) return &setting;
  return nullptr;
}

std::string settings_json(const CellSettings& settings) {
  auto json = nlohmann::json::object();
  for (const auto& setting : settings_table())
    json[setting.path] = std::visit([](const auto& v) { return nlohmann::json(v); }, setting.get(settings));
  return json.dump();
}

Value checked_setting(const SettingInfo& setting, const std::string& text) {
  auto info = setting.info;
  info.name = "value";
  auto value = Settings(setting.path, {info}, Spec{.name = setting.path, .arguments = {{"value", text}}, .text = {}})
                   .values()
                   .at("value");
  if (setting.path == "measure.at")
    for (const auto& part : split(text))
      if (point(part, 100) < 0)
        throw UsageError(
            fmt::format("{}: must be steps, \"start\", \"end\" or shares such as \"50%\", got \"{}\"", setting.path, part));
  return value;
}

}  // namespace hardgrad::sweeps
