#include "experiments/verification/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "experiments/measurement/exact_moments.hpp"
#include "experiments/measurement/measure.hpp"
#include "experiments/verification/estimates.hpp"
#include "experiments/verification/estimator_checks.hpp"
#include "experiments/verification/promises.hpp"
#include "experiments/verification/scenes.hpp"
#include "experiments/verification/test_models.hpp"

namespace hardgrad::verification {
namespace {

constexpr int draws = 20000;        // if an exact mean has too many outcomes
constexpr int target_draws = 4000;  // for a further target or setting, where errors are not small
constexpr int shown_draws = 2000;   // for a bias that is reported, not judged
constexpr int model_draws = 300;    // on whole models
constexpr double least_p_value = 1e-6;

/// A network on generated data in both precisions, with its known gradients.
struct Scene {
  Scene(const SceneSpec& spec, bool posterior)
      : narrow(spec, posterior),
        wide(make_model<double>(Spec::parse(spec.model), narrow.task->dimensions(), Key(1) / "init", posterior)),
        references(*wide, narrow.batch, measurement::MeasureSettings().leaf_cap) {}
  SmallScene narrow;
  std::unique_ptr<Model<double>> wide;
  measurement::ReferenceGradients<double> references;
};

/// Made once per process.
Scene& scene_of(const SceneSpec& spec, bool posterior) {
  static std::map<std::pair<std::string, bool>, Scene> made;
  return made.try_emplace({spec.name, posterior}, spec, posterior).first->second;
}

/// Runs the checks in order and records their results.
class EstimatorVerifier {
 public:
  EstimatorVerifier(const Spec& spec, bool to_the_first_failure, bool quick, const Stop& stop)
      : spec_(spec),
        to_the_first_failure_(to_the_first_failure),
        quick_(quick),
        stop_(stop),
        entry_(Estimators::instance().at(spec.name)),
        unbiased_(claims_unbiased(spec)),
        verdict_{"estimator", spec.text, {}, unbiased_} {}

  Verdict run() {
    // The most sensitive first.
    for (const auto& tested : models_) step("exact mean", tested.name, [&] { on_model(tested, draws); });
    off_policy();
    step("promises", "", [&] {
      for (auto& check : keeps_promises(spec_, to_the_first_failure_)) verdict_.checks.push_back(std::move(check));
    });
    other_options();
    other_columns();
    if (!quick_) {
      other_numbers();
      for (const auto& scene : scene_specs()) step("contract", scene.name, [&] { on_model(scene); });
    }
    step("moments", "with twice the samples", [&] { more_samples(); });
    step("shift", "", [&] { shift(); });
    if (!quick_) {
      other_targets();
      other_settings();
    }
    return std::move(verdict_);
  }

 private:
  bool done() const { return to_the_first_failure_ && verdict_.count(Check::Outcome::failed) > 0; }
  void add(std::string what, const std::string& where, const std::string& failure, const std::string& detail = "") {
    verdict_.checks.push_back({std::move(what), where, failure.empty() ? Check::Outcome::passed : Check::Outcome::failed,
                               failure.empty() ? detail : failure});
  }
  /// A part of the verdict, unless it has already ended. If `body` throws, the check has failed.
  void step(const std::string& what, const std::string& where, const std::function<void()>& body) {
    if (done()) return;
    poll(stop_);
    if (const auto thrown = guarded([&] {
          body();
          return std::string();
        });
        !thrown.empty())
      add(what + under_, where, thrown);
  }
  /// True if the estimator supports the model; else records the reason.
  bool supported(const Structure& structure, const std::string& what, const std::string& where) {
    const auto reason = why_unsupported(spec_, structure);
    if (!reason.empty()) verdict_.checks.push_back({what, where, Check::Outcome::skipped, reason});
    return reason.empty();
  }

  void on_model(const SceneSpec& spec) {
    auto& [narrow_scene, wide_model, references] = scene_of(spec, wants_posterior(spec_));
    const auto& [task, batch, narrow_model] = narrow_scene;
    const auto& structure = narrow_model->structure();
    if (!supported(structure, "contract", spec.name)) return;
    const auto narrow = make_estimator<float>(spec_, structure, Key(1));
    const auto wide = make_estimator<double>(spec_, structure, Key(1));
    add("contract", spec.name, guarded([&] {
          if (auto broken = broken_contract(spec_, *narrow, *narrow_model, batch); !broken.empty()) return broken;
          return broken_contract(spec_, *wide, *wide_model, batch);
        }));
    if (unbiased_) sampled_mean("mean", spec.name, *wide, *wide_model, batch, model_draws, &references);
  }

  void on_model(const TestModel& tested, int most_draws) {
    const auto& structure = tested.model->structure();
    const auto what = (target_of(spec_) == Target() ? "exact mean" : "exact mean, " + target_of(spec_).text()) + under_;
    if (!supported(structure, what, tested.name)) return;
    auto estimator = make_estimator<double>(spec_, structure, Key(1));
    perturb_state(*estimator);
    contract(tested, *estimator);
    if (under_.empty())
      if (const auto found = slope_of_value(estimator->target(), tested))
        add("truth", tested.name, found->right ? "" : found->detail, found->detail);
    exact_mean(what, tested, *estimator, unbiased_ ? most_draws : shown_draws);
  }

  void contract(const TestModel& tested, const Estimator<double>& estimator) {
    add("contract" + under_, tested.name,
        guarded([&] { return broken_contract(spec_, estimator, *tested.model, tested.batch); }));
  }

  void exact_mean(const std::string& what, const TestModel& tested, const Estimator<double>& estimator, int most_draws) {
    // The whole batch if it has few outcomes. Otherwise its most ragged example (with another, if examples are coupled),
    // otherwise draws.
    std::vector<Batch> batches{tested.batch};
    const int examples = tested.batch.examples(), fewer = estimator.couples_examples() ? 2 : 1;
    if (examples > fewer) batches.push_back(tested.batch.select(fewer == 1 ? std::vector{1} : std::vector{1, examples - 1}));
    for (const auto& batch : batches) {
      try {
        const auto& truth = reference_of(estimator.target(), tested, batch);
        const auto moments =
            measurement::exact_moments(estimator, *tested.model, batch, truth.of_example, outcome_cap, false, stop_);
        const double scale = std::max(1.0, measurement::largest(truth.gradient));
        const double doubt = (truth.error + moments.mean_error) / scale;  // error of quadratures
        if (doubt > 1e-6) throw NotExact("the quadrature is too rough");
        const double off = largest_difference(moments.mean, truth.gradient) / scale;
        auto message = fmt::format("off by {:.1e} ({:.0f} {})", off, moments.outcomes,
                                   moments.continuous ? "outcomes and quadrature nodes" : "outcomes");
        if (doubt > 0) message += fmt::format(", good to {:.1e}", std::max(doubt, 1e-15));
        const double allowed = moments.continuous ? 1e-8 + doubt : 1e-10;
        add(what, tested.name, unbiased_ && !(off < allowed) ? "says it is unbiased, but the mean is " + message : "", message);
        if (unbiased_ && !done()) reported_loss(tested, estimator, batch, truth, moments, allowed);
        return;
      } catch (const NotExact&) {  // try the next smaller batch, or draws
      } catch (const std::exception& e) {
        add(what, tested.name, e.what());
        return;
      }
    }
    sampled_mean(what, tested.name, estimator, *tested.model, tested.batch, most_draws);
  }

  void reported_loss(const TestModel& tested, const Estimator<double>& estimator, const Batch& batch,
                     const measurement::ReferenceGradient& truth, const measurement::Moments& moments, double allowed) {
    const auto reported = estimator.target().entry().reported;
    const double wanted = reported ? reference_of(reported(estimator.target()), tested, batch).value : truth.value;
    const double off = std::abs(moments.loss - wanted) / std::max(1.0, std::abs(wanted));
    const auto message = fmt::format("mean off by {:.1e}", off);
    add("reported loss" + under_, tested.name, off < allowed ? "" : message, message);
  }

  void sampled_mean(const std::string& what, const std::string& where, const Estimator<double>& estimator,
                    const Model<double>& model, const Batch& batch, int replicates,
                    measurement::ReferenceGradients<double>* references = nullptr) {
    if (quick_) replicates /= 10;
    measurement::MeasureSettings settings;
    settings.replicates = replicates;
    settings.method = measurement::Method::sampled;
    settings.stop = stop_;
    std::string found, unknown,
        failure = guarded([&]() -> std::string {
          const auto m = measure(spec_, estimator, model, batch, settings, Key(4), references);
          const double p = std::isnan(m.bias_p_value) ? m.bias_p_value_plain : m.bias_p_value;  // NaN for a long run
          found = fmt::format("p(unbiased) = {:.2g}, relative bias {:.2g} ({} draws)", p, m.relative_bias, replicates);
          if (m.estimand != "enumerated") found += "; truth: " + m.estimand;
          if (std::isnan(p) && m.estimand.starts_with("unknown")) {
            unknown = m.estimand;
            return "";
          }
          return unbiased_ && !(p >= least_p_value) ? "says it is unbiased: " + found : "";
        });
    if (unknown.empty())
      add(what, where, failure, found);
    else
      verdict_.checks.push_back({what, where, Check::Outcome::skipped, "the true gradient is " + unknown});
  }

  /// The networks that are drawn by another policy, if the estimator corrects for it.
  void off_policy() {
    if (corrects_behaviour(spec_))
      for (const auto& tested : off_policy_models()) step("exact mean", tested.name, [&] { on_model(tested, draws); });
  }

  /// A single choice of two to seven options.
  void other_options() {
    for (int options = 2; options <= 7; ++options) one_choice(options);
  }

  /// Up to six choices of two options at once, which share a loss.
  void other_columns() {
    for (int columns : {3, 4, 6}) one_choice(2, columns);
  }

  /// Each numeric setting at other values, on one choice of four options: numbers of samples up to eight, and half and twice a
  /// real number.
  void other_numbers() {
    const Settings settings(spec_.name, entry_.parameters, spec_);
    for (const auto& parameter : entry_.parameters) {
      if (is_shared(parameter)) continue;
      std::vector<double> values;
      if (parameter.type == ParameterInfo::Type::integer) values = {2, 3, 5, 8};
      if (parameter.type == ParameterInfo::Type::real)
        values = {settings.real(parameter.name) / 2, settings.real(parameter.name) * 2};
      for (const double value : values) {
        const auto other = spec_.with(parameter.name, fmt::format("{}", value));
        if (allowed(other)) with(other, fmt::format(", {}={}", parameter.name, value), [&] { one_choice(4); });
      }
    }
  }
  /// True if the settings of a spec are within their bounds, and the estimator accepts the combination.
  bool allowed(const Spec& spec) const {
    try {
      Settings(spec.name, entry_.parameters, spec);
      make_estimator<double>(spec, alone(4, wants_posterior(spec)).model->structure(), Key(1));
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  void one_choice(int options, int columns = 1) {
    const auto tested = alone(options, wants_posterior(spec_), columns);
    const auto what = "exact mean" + under_;
    step(what, tested.name, [&] {
      if (!supported(tested.model->structure(), what, tested.name)) return;
      auto estimator = make_estimator<double>(spec_, tested.model->structure(), Key(1));
      perturb_state(*estimator);
      exact_mean(what, tested, *estimator, unbiased_ ? target_draws : shown_draws);
    });
  }

  /// With twice the samples: a batch is still the mean of its examples, the mean is unchanged, and the exact variance agrees
  /// with draws.
  void more_samples() {
    const auto& known = entry_.parameters;
    const auto samples = std::find_if(known.begin(), known.end(), [](const auto& p) { return p.name == "samples"; });
    if (samples == known.end()) return;
    const Settings settings(spec_.name, known, spec_);
    const auto more = spec_.with("samples", std::to_string(2 * settings.integer("samples")));
    with(more, ", " + more.text, [&] {
      for (const auto& tested : models_)
        if (tested.batch.examples() > 1 && why_unsupported(spec_, tested.model->structure()).empty()) {
          const auto estimator = make_estimator<double>(spec_, tested.model->structure(), Key(1));
          perturb_state(*estimator);
          contract(tested, *estimator);
          break;
        }
      std::string why;
      bool told = false;
      for (const auto& tested : models_)
        if (!done() && !told) told = moments(tested, why);
      for (int options : {3, 2, 0})  // a single choice, if networks with several have too many outcomes
        if (!done() && !told) told = moments(shifted(options, 0), why);
      if (!done() && !told) verdict_.checks.push_back({"moments" + under_, "", Check::Outcome::skipped, why});
    });
  }
  /// True if they could be computed and judged; else sets `why`.
  bool moments(const TestModel& tested, std::string& why) {
    const auto found = moments_beside_draws(spec_, unbiased_, tested, why);
    if (found) add("moments" + under_, tested.name, found->right ? "" : found->detail, found->detail);
    return found.has_value();
  }

  /// Mean and variance with and without a constant added to every loss.
  void shift() {
    if (!unbiased_) return;
    for (int options : {3, 2, 0}) {
      const auto plain = shifted(options, 0), moved = shifted(options, 10);
      if (!why_unsupported(spec_, plain.model->structure()).empty()) continue;
      const auto estimator = make_estimator<double>(spec_, plain.model->structure(), Key(1));
      exact_mean("shift", moved, *estimator, draws);
      measurement::MeasureSettings settings;
      settings.replicates = 400;
      const auto before = measure(spec_, *estimator, *plain.model, plain.batch, settings, Key(5));
      const auto after = measure(spec_, *estimator, *moved.model, moved.batch, settings, Key(5));
      if (before.variance > 0)
        verdict_.checks.back().detail += fmt::format("; variance x {:.3g}", after.variance / before.variance);
      if (options > 0 && !done()) large_losses(*estimator, options);
      return;
    }
  }
  /// The mean with losses far above and below 0, which an estimator may clip; where every outcome can be visited.
  void large_losses(const Estimator<double>& estimator, int options) {
    if (target_of(spec_) != Target()) return;  // others may be infinite there
    for (const double by : {1000., -1000.}) {
      const auto moved = shifted(options, by);
      const auto batch = moved.batch.select({1});
      try {
        const auto& truth = reference_of(estimator.target(), moved, batch);
        const auto moments =
            measurement::exact_moments(estimator, *moved.model, batch, truth.of_example, outcome_cap, false, stop_);
        if (moments.continuous) return;
        const double off = largest_difference(moments.mean, truth.gradient);
        const auto message = fmt::format("off by {:.1e}", off);
        add("shift", moved.name, off < 1e-10 * std::abs(by) ? "" : "says it is unbiased, but the mean is " + message, message);
      } catch (const NotExact&) {
        return;
      }
    }
  }

  /// An estimator of a mean over choices also estimates the evidence lower bound, with either form of its divergence.
  void other_targets() {
    if (entry_.target != "expected_loss" || target_of(spec_) != Target()) return;
    for (const auto* kl : {"analytic", "sampled"})
      with(spec_.with("target", "elbo").with("kl", kl), "", [&] {
        for (const auto& tested : models_) step("exact mean", tested.name, [&] { on_model(tested, target_draws); });
      });
  }

  /// Each flag inverted, and each other choice of a setting; then all flags together, on the networks with several examples.
  void other_settings() {
    const Settings settings(spec_.name, entry_.parameters, spec_);
    auto all = spec_;
    int flags = 0;
    for (const auto& parameter : entry_.parameters) {
      if (is_shared(parameter)) continue;
      std::vector<std::string> others = parameter.choices;
      if (parameter.type == ParameterInfo::Type::boolean) {
        others = {settings.flag(parameter.name) ? "false" : "true"};
        all = all.with(parameter.name, others[0]);
        ++flags;
      }
      for (const auto& other : others)
        if (parameter.choices.empty() || other != settings.text(parameter.name))
          on_models_of_several(spec_.with(parameter.name, other), fmt::format(", {}={}", parameter.name, other));
    }
    if (flags > 1) on_models_of_several(all, ", all flags inverted");
  }

  void on_models_of_several(const Spec& spec, const std::string& under) {
    with(spec, under, [&] {
      for (const auto& tested : models_)
        if (tested.batch.examples() > 1) step("exact mean", tested.name, [&] { on_model(tested, target_draws); });
      off_policy();
    });
  }

  /// Runs `body` under another spec; `under` names the difference in the report.
  void with(const Spec& spec, const std::string& under, const std::function<void()>& body) {
    const auto own = std::exchange(spec_, spec);
    const auto own_under = std::exchange(under_, under);
    const bool own_claim = std::exchange(unbiased_, claims_unbiased(spec));
    const auto restore = [&] { spec_ = own, under_ = own_under, unbiased_ = own_claim; };
    try {
      body();
    } catch (...) {
      restore();
      throw;
    }
    restore();
  }

  Spec spec_;
  bool to_the_first_failure_, quick_;
  const Stop& stop_;
  const EstimatorEntry& entry_;
  const std::vector<TestModel>& models_ = test_models();
  bool unbiased_;           // its claim
  std::string under_ = {};  // setting that differs from the spec's
  Verdict verdict_;
};

}  // namespace

Verdict verify(const Spec& spec, bool to_the_first_failure, bool quick, const Stop& stop) {
  return EstimatorVerifier(spec, to_the_first_failure, quick, stop).run();
}

}  // namespace hardgrad::verification
