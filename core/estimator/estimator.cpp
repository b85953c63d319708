#include "core/estimator/estimator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <type_traits>

#include "core/choice/declared.hpp"
#include "core/choice/handlers.hpp"
#include "core/estimator/target.hpp"

namespace hardgrad {

template <class T>
std::unique_ptr<Episode<T>> Problem<T>::run(Handler<T>& handler, CostWeights weights) const {
  const auto& structure = model.structure();
  const auto& [behaviour, reference] = model.policies();
  const auto run_of = [&](const Model<T>& other, Handler<T>& its) {
    const typename Tape<T>::FixedParameters fixed(tape);
    return Problem{.tape = tape, .model = other, .batch = batch, .random = random, .nodes = nodes, .cap = cap}.run(its);
  };
  std::shared_ptr<const Episode<T>> drawn;
  std::optional<RepeatHandler<T>> repeats;
  if (behaviour && terms.drawn_from == DrawnFrom::behaviour) {
    drawn = run_of(*behaviour, handler);
    repeats.emplace(*drawn);
  }
  DeclaredHandler<T> declared(structure, repeats ? static_cast<Handler<T>&>(*repeats) : handler, cap);
  auto episode = std::make_unique<Episode<T>>(tape, declared, batch.examples(), terms);
  episode->expect(structure.steps());
  episode->hint(weights);
  episode->integrate_with(nodes > 0 ? nodes : structure.nodes());
  episode->behave_as(std::move(drawn));
  model.run(batch, *episode);
  if (reference && (terms.to_reference != 0 || terms.reads_reference)) {
    RepeatHandler<T> same(*episode, true);
    episode->refer_to(run_of(*reference, same));
  }
  episode->add_divergence_from_reference();
  if (const auto undeclared_site = not_by_row(*episode); !undeclared_site.empty()) refuse_undeclared(undeclared_site);
  return episode;
}

Settings settings_of(const EstimatorEntry& entry, const Spec& spec) {
  Settings given(entry.name, entry.parameters, spec);
  for (const auto& preset : entry.presets) {
    if (preset.name != given.text("preset")) continue;
    const auto of_preset = Spec::parse(entry.name + "[" + preset.settings + "]");
    const Settings values(entry.name, entry.parameters, of_preset);
    auto declared = entry.parameters;
    for (auto& parameter : declared)
      for (const auto& [key, text] : of_preset.arguments)
        if (parameter.name == key) parameter.fallback = values.values().at(key);
    return {entry.name, declared, spec};
  }
  return given;
}

namespace {

using Aim = SharedConfig::Aim;
using Divergence = SharedConfig::Divergence;
constexpr Named<Aim> aims[] = {
    {"expected_loss", Aim::expected_loss}, {"elbo", Aim::elbo}, {"near_reference", Aim::near_reference}};
constexpr Named<Divergence> divergences[] = {{"analytic", Divergence::analytic}, {"sampled", Divergence::sampled}};

constexpr std::string_view estimates_any_mean = "expected_loss";  // constexpr: entries are registered before main

}  // namespace

void SharedConfig::declare(Fields& field) {
  field(cap, "cap", 1, 1e12,
        "most rows of the network that one run may evaluate, and where rows change one choice each, a hundredth of the most "
        "choices "
        "in them; more is an error");
  field(target, "target", aims,
        "the estimated mean: the loss under the prior, the evidence lower bound under a learned posterior, or the loss "
        "under the prior and its divergence from a reference policy");
  field(near, "near", 0, 1e6, "beta of target=near_reference, the weight of the divergence");
  field(kl, "kl", divergences, "the divergence of the posterior in target=elbo: summed over options, or of the drawn choices");
  field(kl_weight, "kl_weight", 0, 1e6, "weight of that divergence; with train.anneal it may grow from 0");
}

EstimatorEntry with_shared_settings(EstimatorEntry entry) {
  auto shared = declared<SharedConfig>();
  if (entry.target != estimates_any_mean) shared.resize(1);
  entry.parameters.insert(entry.parameters.end(), shared.begin(), shared.end());
  if (entry.presets.empty()) return entry;
  std::vector<std::string> names{"none"};
  for (const auto& preset : entry.presets) names.push_back(preset.name);
  entry.parameters.insert(entry.parameters.begin(),
                          ParameterInfo::choice("preset", "none", std::move(names),
                                                "a published method: values of the settings below, unless they are given"));
  return entry;
}

bool is_shared(const ParameterInfo& parameter) {
  static const auto shared = declared<SharedConfig>();
  return std::any_of(shared.begin(), shared.end(), [&](const auto& info) { return info.name == parameter.name; });
}

Target target_of(const Spec& spec) {
  const auto& entry = Estimators::instance().at(spec.name);
  const auto settings = settings_of(entry, spec);
  if (entry.target == estimates_any_mean) {
    const auto shared = read<SharedConfig>(settings);
    if (shared.target == Aim::elbo)
      return fmt::format("elbo[kl={},weight={}]", name_of(shared.kl, divergences), shared.kl_weight);
    if (shared.target == Aim::near_reference) return fmt::format("near_reference[beta={}]", shared.near);
  }
  return entry.target_of ? Target(entry.target_of(settings)) : Target(entry.target);
}

bool wants_posterior(const Spec& spec) { return target_of(spec).terms().drawn_from == DrawnFrom::posterior; }

bool corrects_behaviour(const Spec& spec) {
  return Estimators::instance().at(spec.name).off_policy && target_of(spec).terms().drawn_from == DrawnFrom::prior;
}

bool claims_unbiased(const Spec& spec) {
  const auto& entry = Estimators::instance().at(spec.name);
  return entry.unbiased && !(entry.biased_by && entry.biased_by(settings_of(entry, spec)));
}

std::string why_unsupported(const Spec& spec, const Structure& structure) {
  const auto& entry = Estimators::instance().at(spec.name);
  const auto settings = settings_of(entry, spec);
  auto needs = entry.needs;
  if (wants_posterior(spec)) needs.push_back(need::posterior);
  if (const auto reason = unmet(needs, structure)) return *reason;
  if (target_of(spec).terms().to_reference != 0 && !structure.reference) return Structure::lacks_reference;
  if (const auto& target = target_of(spec).entry(); target.rewards && !structure.rewards)
    return Structure::lacks_rewards;
  else if (target.likelihood && *structure.no_likelihood)
    return structure.lacks_likelihood();
  return entry.why_unsupported ? entry.why_unsupported(settings, structure) : "";
}

std::string infinite_variance(const Spec& spec, const Structure& structure, double outcomes) {
  const auto& entry = Estimators::instance().at(spec.name);
  return entry.infinite_variance ? entry.infinite_variance(settings_of(entry, spec), structure, outcomes) : "";
}

template <class T>
std::unique_ptr<Estimator<T>> make_estimator(const Spec& spec, const Structure& structure, Key init) {
  if (auto reason = why_unsupported(spec, structure); !reason.empty()) throw UsageError(spec.name + ": " + reason);
  const auto& entry = Estimators::instance().at(spec.name);
  const auto settings = settings_of(entry, spec);
  std::unique_ptr<Estimator<T>> estimator;
  if constexpr (std::is_same_v<T, float>)
    estimator = entry.make_float(settings, structure, init);
  else
    estimator = entry.make_double(settings, structure, init);
  estimator->aim(target_of(spec));
  estimator->limit_rows(settings.real("cap"));
  estimator->couple_examples(entry.couples(settings));
  return estimator;
}

template struct Problem<float>;
template struct Problem<double>;
template std::unique_ptr<Estimator<float>> make_estimator(const Spec&, const Structure&, Key);
template std::unique_ptr<Estimator<double>> make_estimator(const Spec&, const Structure&, Key);

Target::Target(const std::string& spec) {
  const auto parsed = Spec::parse(spec);
  entry_ = &Targets::instance().at(parsed.name);
  settings_ = Settings(parsed.name, entry_->parameters, parsed);
  text_ = settings_.canonical();
  if (entry_->terms) terms_ = entry_->terms(settings_);
}

const std::string& Target::name() const { return entry_->name; }

}  // namespace hardgrad
