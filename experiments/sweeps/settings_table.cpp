// The table: one entry per setting.
#include "experiments/sweeps/settings_table.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "core/support/error.hpp"
#include "core/support/named.hpp"
#include "experiments/support/text.hpp"
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
  const double value = number_of<double>(text).value_or(-1);
  if (!(value >= 0 && value <= many)) return -1;
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

// A value of an enumeration.
template <class E, std::size_t N, class Member>
SettingInfo setting(const std::string& section, const std::string& name, const Named<E> (&names)[N], std::string help,
                    Member member) {
  SettingInfo result;
  result.path = section + "." + name;
  result.get = [member, &names](const CellSettings& s) -> Value {
    return std::string(name_of(member(const_cast<CellSettings&>(s)), names));
  };
  result.set = [member, &names](CellSettings& s, const Value& value) {
    member(s) = value_named(std::get<std::string>(value), names).value();
  };
  result.info = Info::choice(name, std::get<std::string>(result.get(CellSettings{})), names_of(names), std::move(help));
  return result;
}

// A setting that does not affect results.
SettingInfo without_effect(SettingInfo setting) {
  setting.in_identity = false;
  return setting;
}

// As Field::absent_means.
SettingInfo absent_means(const char* value, SettingInfo setting) {
  setting.info.absent = std::string(value);
  return setting;
}

#define CELL(SECTION, INFO, MEMBER) \
  setting(                          \
      SECTION, INFO, [](CellSettings & s) -> auto& { return s.MEMBER; })
#define TRAIN(INFO, MEMBER) \
  setting(                  \
      "train", INFO, [](CellSettings & s) -> auto& { return s.train.MEMBER; })
#define MEASURE(INFO, MEMBER) CELL("measure", INFO, MEMBER)
#define CHOICE(SECTION, NAME, NAMES, HELP, MEMBER) \
  setting(                                         \
      SECTION, NAME, NAMES, HELP, [](CellSettings & s) -> auto& { return s.MEMBER; })

std::vector<SettingInfo> make_table() {
  return {
      TRAIN(
          Info::integer("steps", 0, 0, many,
                        "training steps; 0: measure the untrained network, or train until most_rows, most_attention_values or "
                        "most_cpu_seconds"),
          steps),
      TRAIN(Info::real("most_rows", 0, 0, endless, "training also ends at this number of rows of the network; 0: no limit"),
            rows),
      TRAIN(Info::real("most_attention_values", 0, 0, endless,
                       "training also ends at this number of attention values; 0: no limit"),
            attention_values),
      TRAIN(Info::real("most_cpu_seconds", 0, 0, endless,
                       "training also ends after this CPU time of its steps, in seconds; not reproducible; 0: no limit"),
            cpu_seconds),
      TRAIN(Info::real("target_loss", 0, -endless, endless, "training also ends when an evaluation's loss is at or below this"),
            target_loss),
      TRAIN(Info::integer("patience", 0, 0, many,
                          "training also ends after this many evaluations in a row without improvement; 0: never"),
            patience),
      TRAIN(
          Info::text("monitor", "",
                     "quantity for patience and keep_best: loss (of the estimator's target), a loss by its name, or a metric"),
          monitor),
      TRAIN(Info::integer("batch", 0, 1, 1e6, "examples per training step"), batch),
      TRAIN(Info::integer("parts", 0, 1, 1e6,
                          "parts of a batch whose gradients idle cores compute side by side; rounding differs; 1 if the "
                          "estimator learns or joins examples")
                .absent_means(std::int64_t{1}),
            parts),
      without_effect(TRAIN(Info::integer("threads", 0, 0, 1e6, "most threads for the parts; 0: all that run no other cell")
                               .absent_means(std::int64_t{0}),
                           threads)),
      TRAIN(
          Info::integer("reuse", 0, 1, many,
                        "steps on one batch, with samples that the network drew at the first of them; needs an estimator that "
                        "corrects for this"),
          reuse),
      CHOICE("train", "optimizer", update_rules, "optimiser of the network", train.optimizer.rule),
      TRAIN(Info::real("learning_rate", 0, 0, endless, "step size of the optimiser").above(), optimizer.learning_rate),
      TRAIN(Info::real("momentum", 0, 0, 1, "momentum of sgd and rmsprop").below(), optimizer.momentum),
      TRAIN(Info::real("decay", 0, 0, 1, "decay of rmsprop's averages").below(), optimizer.decay),
      TRAIN(
          Info::flag("centred", false, "rmsprop divides by the deviation of the gradient, not by the root of its mean square"),
          optimizer.centred),
      TRAIN(Info::real("beta1", 0, 0, 1, "decay of adam's average of gradients").below(), optimizer.beta1),
      TRAIN(Info::real("beta2", 0, 0, 1, "decay of adam's average of squares").below(), optimizer.beta2),
      TRAIN(Info::real("epsilon", 0, 0, endless, "added to adam's and rmsprop's divisor").above(), optimizer.epsilon),
      TRAIN(Info::real("clip_value", 0, 0, endless, "largest absolute value of an entry of the gradient; 0 is no limit"),
            optimizer.clip_value),
      TRAIN(Info::real("clip", 0, 0, endless, "largest norm of the gradient; 0 is no limit"), optimizer.clip),
      TRAIN(Info::real("gradient_noise", 0, 0, endless,
                       "variance of Gaussian noise added to the gradient at the first step; it falls as (1 + step)^-0.55"),
            optimizer.gradient_noise),
      TRAIN(Info::real("weight_decay", 0, 0, endless,
                       "decoupled weight decay, as in AdamW: each step subtracts this times learning rate times parameter"),
            optimizer.weight_decay),
      CHOICE("train", "schedule", rate_schedules, "schedule of the learning rate", train.optimizer.schedule),
      TRAIN(Info::integer("warmup", 0, 0, many, "steps of linear increase at the start"), optimizer.warmup),
      TRAIN(Info::real("floor", 0, 0, 1, "final learning rate as a fraction of the initial one"), optimizer.floor),
      TRAIN(Info::real("drop", 0, 0, 1, "schedule=step: factor of each drop").above(), optimizer.drop),
      TRAIN(Info::integer("drop_every", 0, 0, many, "schedule=step: steps between drops"), optimizer.drop_every),
      TRAIN(Info::text(
                "apart", "",
                "parameters with a separate optimiser on the same schedule: a name, or its prefix before a dot (\"prior\")"),
            param_group),
      CHOICE("train", "apart_optimizer", update_rules, "the separate optimiser", train.param_group_optimizer),
      TRAIN(Info::real("apart_learning_rate", 0, 0, endless, "step size of the separate optimiser").above(),
            param_group_learning_rate),
      TRAIN(Info::real("own_learning_rate", 0, 0, endless,
                       "learning rate of the estimator's networks (Adam, on the same schedule)")
                .above(),
            own_learning_rate),
      TRAIN(Info::text("anneal", "",
                       "real settings of the estimator that change linearly to these values, reached at train.steps: "
                       "\"temperature=0.1\""),
            anneal),
      TRAIN(Info::integer("log_every", 0, 1, many, "steps between logged training losses"), log_every),
      TRAIN(Info::integer("evaluate_every", 0, 0, many, "steps between evaluations; 0: only at the end"), evaluate_every),
      TRAIN(Info::integer("evaluate_examples", 0, 0, many, "examples per evaluation; 0 is the whole split"), evaluate_examples),
      CHOICE("train", "evaluate_split", training::evaluation_splits, "split of the evaluations", train.evaluate_split),
      CHOICE("train", "final_split", training::final_splits,
             "split of the last evaluation, which judges the run: \"test\" if keep_best, patience or target_loss select by "
             "held-out examples; same: evaluate_split",
             train.final_split),
      TRAIN(Info::flag("decode", false, "also decode without teacher forcing in the last evaluation"), decode),
      TRAIN(Info::integer("beam", 0, 1, 1000, "decode: width of the beam search; 1: greedily"), beam),
      TRAIN(Info::flag("keep_best", false, "restore the best evaluation's parameters before the last evaluation"), keep_best),
      CELL("train",
           Info::text("start", "", "network to start from: a checkpoint (FILE.h5), or an estimator that trains it first"),
           start),
      CELL("train", Info::integer("start_steps", 0, 0, many, "training steps with the start estimator, with the same settings"),
           start_steps),
      CELL("train",
           Info::real("start_overlap", 0, 0, 1,
                      "largest share of the held-out or test examples that a network from a file may have been trained on")
               .absent_means(0.0),
           start_overlap),
      CELL("train",
           Info::text("reference", "",
                      "checkpoint (FILE.h5) of the same network: the reference policy of near_reference and its divergence"),
           reference),
      CELL("train",
           Info::flag("checkpoint", false, "save the trained network beside the cell, for measure, gradient and evaluate"),
           checkpoint),
      without_effect(
          CELL("train",
               Info::real("save_seconds", 0, 0, endless,
                          "seconds between checkpoints of a running cell, from which a killed run resumes; 0: never"),
               save_seconds)),
      without_effect(CELL("train", Info::integer("save_every", 0, 0, many, "the same in steps; 0: only by time"), save_every)),
      MEASURE(Info::text("at", "", "when to measure bias and variance: a list of steps, \"start\", \"end\", \"50%\""),
              measure_at),
      MEASURE(Info::integer("replicates", 0, 2, many, "sampled gradients per measurement"), train.measure.replicates),
      MEASURE(Info::integer("most_replicates", 0, 0, many,
                            "replicates are doubled up to this number while they do not support their intervals; 0: never"),
              train.measure.most_replicates),
      MEASURE(Info::integer("batch", 0, 1, 1e6, "examples measured on: the first of the training split"), train.measure_batch),
      MEASURE(Info::integer(
                  "adapt", 0, 0, many,
                  "steps for which the estimator's state (averages, critics, control variates) is trained with the network "
                  "fixed, before it is measured"),
              train.measure_adapt),
      absent_means(
          "sampled",
          CHOICE("measure", "method", measurement::methods,
                 "exact: visit every outcome (precision = \"double\"); cheapest: exact where that costs no more rows than "
                 "the replicates, else sampled",
                 train.measure.method)),
      CHOICE("measure", "estimand", measurement::estimands,
             "true gradient: estimated by a long run if it cannot be enumerated, enumerated only, or none",
             train.measure.estimand),
      MEASURE(Info::integer("directions", 0, 0, 1e4, "random directions in the bias test"), train.measure.directions),
      MEASURE(Info::real("level", 0, 0, 1, "level of the confidence intervals").above().below(), train.measure.level),
      MEASURE(Info::real("leaf_cap", 0, 1, endless, "most leaves of the tree for the exact gradient"), train.measure.leaf_cap),
      MEASURE(Info::real("outcome_cap", 0, 1, endless, "most outcomes an exact measurement may visit"),
              train.measure.outcome_cap),
  };
}

}  // namespace

training::TrainSettings CellSettings::resolved() const {
  auto result = train;
  const bool by_cost = train.rows > 0 || train.attention_values > 0 || train.cpu_seconds > 0;
  const bool open = train.steps == 0 && by_cost;  // the number of steps is unknown in advance
  if (open) result.steps = static_cast<int>(many);
  result.optimizer.total_steps = train.steps;
  const auto schedule = train.optimizer.schedule;
  const std::string named = name_of(schedule, rate_schedules);
  if (open && train.optimizer.has_horizon())
    throw UsageError(fmt::format("train.schedule = \"{}\": needs train.steps, the length of its decay", named));
  for (int trained : {train.steps, start_steps})
    if (trained > 0 && train.optimizer.has_horizon() && trained <= train.optimizer.warmup)
      throw UsageError(
          fmt::format("train.warmup: {} warm-up steps of {} leave none for the decay of schedule = \"{}\"; lower it",
                      train.optimizer.warmup, trained, named));
  if (schedule == RateSchedule::step && train.optimizer.drop_every == 0)
    throw UsageError("train.schedule = \"step\": needs train.drop_every, the steps between two drops");
  if (train.beam > 1 && !train.decode) throw UsageError(fmt::format("train.beam = {}: needs train.decode = true", train.beam));
  if (!train.anneal.empty() && train.steps == 0)
    throw UsageError(fmt::format("train.anneal = \"{}\": needs train.steps, the length of the annealing", train.anneal));
  if (train.evaluate_split == tasks::Split::test)
    for (const auto& [name, what] : train.choosing())
      throw UsageError(
          fmt::format("train.{}: would {} on test, the split that judges the chosen network; set train.evaluate_split = "
                      "\"heldout\" and train.final_split = \"test\"",
                      name, what));
  const bool has_target = train.target_loss > training::TrainSettings{}.target_loss;
  for (const auto& [set, name] : {std::pair{has_target, "target_loss"}, {train.patience > 0, "patience"}}) {
    if (set && train.evaluate_every == 0)
      throw UsageError(fmt::format("train.{}: needs train.evaluate_every: it depends on evaluations", name));
    if (set && train.steps == 0 && !by_cost)
      throw UsageError(fmt::format("train.{}: needs another limit, such as train.steps: it may never be reached", name));
  }
  if ((start_steps > 0) != (!start.empty() && !is_checkpoint(start)))
    throw UsageError(start_steps > 0
                         ? "train.start_steps: needs train.start, an estimator to train with"
                         : fmt::format("train.start = \"{}\": needs train.start_steps, its number of steps", start));
  if (start_steps > 0) canonical_spec("estimator", start);
  std::set<int> steps;
  for (const auto& part : split(measure_at)) {
    if (open && part.ends_with('%'))
      throw UsageError(fmt::format("measure.at: {} is a share of train.steps, which is 0", part));
    const double step = point(part, result.steps);
    if (step > result.steps)
      throw UsageError(
          fmt::format("measure.at: step {} is after train.steps = {}; \"end\" is always the last step", part, result.steps));
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
