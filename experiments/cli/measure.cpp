// hardgrad measure: bias, variance and cost of estimators at one point, without a sweep.
#include "experiments/measurement/measure.hpp"

#include <fmt/format.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "core/support/error.hpp"
#include "experiments/cli/candidates.hpp"
#include "experiments/cli/measure_table.hpp"
#include "experiments/cli/output.hpp"
#include "experiments/cli/preflight.hpp"
#include "experiments/cli/scene.hpp"
#include "experiments/cli/verb.hpp"
#include "experiments/measurement/exact_moments.hpp"
#include "experiments/measurement/finite.hpp"
#include "experiments/measurement/reference_gradient.hpp"
#include "experiments/storage/process.hpp"
#include "experiments/storage/result_files.hpp"
#include "experiments/support/parallel.hpp"
#include "experiments/sweeps/config.hpp"
#include "experiments/sweeps/plan.hpp"
#include "experiments/sweeps/progress.hpp"
#include "experiments/training/adaptation.hpp"

namespace hardgrad::cli {
namespace {

constexpr std::size_t most_listed_parameters = 1000;

struct MeasureArguments {
  SceneOptions scene;
  std::vector<std::string> estimators;
  measurement::MeasureSettings settings;
  training::AdaptSettings adapt;
  bool exact = false, sampled = false;
  int jobs = 0;
  std::string out;
  bool json = false;
};

template <class T>
nlohmann::json result_json(const measurement::Measurement& m, const ParameterSet<T>& parameters) {
  auto intervals = nlohmann::json::object();
  for (const auto& [name, ends] : m.intervals) intervals[name] = {number(ends[0]), number(ends[1])};
  nlohmann::json mean;
  if (m.status == measurement::Status::ok && !m.mean.empty() && parameters.size() <= most_listed_parameters) {
    mean = nlohmann::json::object();
    for (const auto& p : parameters) {
      auto list = nlohmann::json::array();
      for (std::size_t i = 0; i < p.value.size(); ++i) list.push_back(number(m.mean.at(p.offset + i)));
      mean[p.name] = list;
    }
  }
  auto covariance = nlohmann::json::array();
  for (std::size_t i = 0; i < parameters.size() && !m.covariance.empty(); ++i) {
    const auto row = m.covariance.begin() + static_cast<std::ptrdiff_t>(i * parameters.size());
    covariance.push_back(std::vector<double>(row, row + static_cast<std::ptrdiff_t>(parameters.size())));
  }
  auto result = nlohmann::json{{"estimator", m.estimator},
                               {"target", m.target},
                               {"status", name_of(m.status, measurement::statuses)},
                               {"reason", m.reason},
                               {"estimand", m.estimand},
                               {"variance_is_infinite", std::isinf(m.variance)},
                               {"unsupported", m.reliability_warning},
                               {"entropy_by_site", numbers(m.entropy_by_site)},
                               {"variance_by_site", numbers(m.variance_by_site)},
                               {"bias_against", numbers(m.bias_against)},
                               {"intervals", intervals},
                               {"variance_by_group", numbers(m.variance_by_group)},
                               {"mean_gradient", mean}};
  for (const auto& row : measurement::quantities())
    if (row.measured) result[std::string(row.name)] = number(m.*row.measured);
  if (!covariance.empty()) result["covariance"] = covariance;
  return result;
}

// The norm of the expected loss's gradient if an estimator has it as target, else of the first known target.
double estimand_norm(const std::vector<measurement::Measurement>& measured) {
  for (const auto& m : measured)
    if (m.target == "expected_loss" && std::isfinite(m.estimand_norm)) return m.estimand_norm;
  for (const auto& m : measured)
    if (std::isfinite(m.estimand_norm)) return m.estimand_norm;
  return measurement::not_a_number;
}

void save(const MeasureArguments& options, const std::string& task, const std::string& model,
          const std::vector<measurement::Measurement>& measured) {
  std::vector<storage::CellRecord> records;
  auto text = fmt::format("measure --task {} --model {} --seed {} --batch {} --replicates {}{}{}", task, model,
                          options.scene.seed, options.scene.batch, options.settings.replicates,
                          options.exact ? " --exact"
                                        : fmt::format(" --precision {}{}", name_of(options.scene.precision, precisions),
                                                      options.sampled ? " --sampled" : ""),
                          options.scene.files());
  for (const auto& m : measured) {
    storage::CellRecord record;
    record.axes = {{"task", task},
                   {"model", model},
                   {"estimator", sweeps::canonical_spec("estimator", m.estimator)},
                   {"seed", std::to_string(options.scene.seed)}};
    record.estimator_settings = sweeps::settings_json("estimator", m.estimator);
    record.plan_hash = sweeps::text_hash(text);
    record.cell_hash = sweeps::text_hash(text + " --estimator " + record.axes["estimator"]);
    record.configuration = "# hardgrad " + text + "\n";
    record.precision = options.exact ? Precision::float64 : options.scene.precision;
    if (m.status == measurement::Status::ok) {
      record.result.measurements.push_back({0, m});
    } else {
      record.status = m.status;
      record.reason = m.reason;
    }
    records.push_back(std::move(record));
  }
  storage::write_merged(options.out, records);
}

/// An unsupported network is an error if nothing was measured. A non-finite value is always an error.
int status(const std::vector<measurement::Measurement>& measured) {
  if (std::any_of(measured.begin(), measured.end(), [](const auto& m) { return m.status == measurement::Status::failed; }))
    return 1;
  if (std::any_of(measured.begin(), measured.end(), [](const auto& m) { return m.status == measurement::Status::ok; }))
    return 0;
  if (measured.empty())
    throw UsageError("measure: no estimator supports this network; `hardgrad list matrix` lists their needs");
  throw UsageError(fmt::format("measure: {}: {}", measured.front().estimator, measured.front().reason));
}

template <class T>
measurement::Measurement measure_one(const Spec& spec, const Scene<T>& scene, const MeasureArguments& options,
                                     measurement::ReferenceGradients<T>& references) {
  const auto& model = *scene.model;
  if (const auto reason = why_unsupported(spec, model.structure_with_policies()); !reason.empty())
    return measurement::skipped(spec, reason);
  const Key key(options.scene.seed);
  try {
    const auto estimator = open_estimator<T>(scene, spec, key / "init");
    adapt(*estimator, model, *scene.task, options.adapt, key / "adapt");
    return measure<T>(spec, *estimator, model, scene.batch, options.settings, key / "noise", &references);
  } catch (const measurement::NotFinite& e) {
    return measurement::failed(spec, e.what());
  } catch (const NotExact& e) {  // too many outcomes for this one
    const auto fits = options.exact ? measurement::affordable<T>(spec, model, scene.batch, options.settings.outcome_cap) : "";
    return measurement::skipped(spec, e.what() + (fits.empty() ? "" : "; the largest that fits: " + fits));
  } catch (const UsageError&) {  // of the command
    throw;
  } catch (const InputError&) {  // of a file
    throw;
  } catch (const std::exception& e) {  // a fault of this one, which does not take the others along
    return measurement::failed(spec, e.what());
  }
}

template <class T>
int measure_with(const MeasureArguments& options) {
  const bool all = options.estimators.empty();
  auto names = all ? Estimators::instance().names() : options.estimators;
  std::vector<std::string> known;
  for (const auto& name : names) {
    const auto canonical = sweeps::canonical_spec("estimator", name);  // reports errors before anything is loaded
    if (std::find(known.begin(), known.end(), canonical) != known.end())
      throw UsageError(fmt::format("--estimator: {} is given twice", name));
    known.push_back(canonical);
  }
  if (options.settings.at_logits && options.exact) throw UsageError("--at-logits is sampled: give either it or --exact");
  if (options.exact && options.settings.estimand == measurement::Estimand::none)
    throw UsageError("--estimand none: --exact needs the true gradient");
  if (options.settings.at_logits && !options.out.empty())
    throw UsageError("--at-logits only prints its result: a file stores moments of parameters");
  if (!options.out.empty()) require_writable(options.out);
  const auto scene = open_scene<T>(options.scene, wants_posterior(names));
  if (options.settings.covariance && scene.model->parameters().size() > most_listed_parameters)
    throw UsageError(fmt::format("--covariance: the model has {} parameters; at most {} are possible",
                                 scene.model->parameters().size(), most_listed_parameters));
  measurement::ReferenceGradients<T> references(*scene.model, scene.batch, options.settings.leaf_cap);
  if (all)
    std::erase_if(names, [&](const auto& name) {
      return !why_unsupported(Spec::parse(name), scene.model->structure_with_policies()).empty();
    });
  std::vector<measurement::Measurement> measured;
  sweeps::Progress progress(names.size(), sweeps::ProgressMode::bar, {}, {}, "estimators");
  for (const auto& name : names) {
    measured.push_back(measure_one(Spec::parse(name), scene, options, references));
    progress.advance(false);
  }
  progress.finish();
  if (!options.out.empty()) save(options, scene.task_spec, scene.model_spec, measured);
  if (options.json) {
    auto results = nlohmann::json::array();
    for (const auto& m : measured) results.push_back(result_json(m, scene.model->parameters()));
    print_json({{"task", scene.task_spec},
                {"model", scene.model_spec},
                {"seed", options.scene.seed},
                {"batch", scene.batch.examples()},
                {"parameters", scene.model->parameters().size()},
                {"precision", name_of(precision_of<T>, precisions)},
                {"replicates", options.settings.replicates},
                {"exact", options.exact},
                {"at_logits", options.settings.at_logits},
                {"estimand_norm", number(estimand_norm(measured))},
                {"results", results}});
    return status(measured);
  }
  put("{} on {}: {}, {}, {}\n\n", scene.model_spec, scene.task_spec,
      counted(static_cast<std::size_t>(scene.batch.examples()), "example"),
      counted(scene.model->parameters().size(), "parameter"),
      options.exact ? "all outcomes enumerated" : counted(static_cast<std::size_t>(options.settings.replicates), "replicate"));
  print_measured(measured, std::numeric_limits<T>::epsilon());
  if (!options.out.empty()) put("\nwritten to {}\n", options.out);
  return status(measured);
}

}  // namespace

void add_measure(CLI::App& app, Action& action) {
  auto options = std::make_shared<MeasureArguments>();
  Verb verb(app, "measure", "measure bias, variance and cost of estimators");
  options->scene.add(verb);
  verb.repeated("--estimator", options->estimators, "e.g. 'rloo[samples=4]'; may be repeated; by default all supported ones")
      .completed_by(estimator_specs);
  verb.add("--replicates", options->settings.replicates, "sampled gradients per estimator")
      .from_to(2, 2000000000)
      .shows_default();
  const auto most =
      verb.add("--most-replicates", options->settings.most_replicates,
               "replicates are doubled up to this number while they do not support their intervals; by default 16 times "
               "--replicates")
          .from_to(0, 2000000000);
  verb.add("--adapt", options->adapt.steps,
           "training steps for the estimator's state (averages, critics, control variates) with the network fixed, before "
           "it is measured")
      .from_to(0, 2000000000)
      .shows_default();
  verb.add("--adapt-rate", options->adapt.learning_rate, "learning rate of --adapt (Adam)").positive().shows_default();
  verb.flag(
      "--exact", options->exact,
      "enumerate all outcomes with their probabilities: no sampling noise (in double). By default only where that costs no "
      "more rows than the replicates");
  verb.flag("--sampled", options->sampled, "always sample; the exact variance is shown beside where it costs no more");
  verb.flag("--covariance", options->settings.covariance,
            "--exact --json: also the covariance matrix, in the order of mean_gradient")
      .needs("--exact");
  verb.flag("--at-logits", options->settings.at_logits,
            "moments at the logits of the choices instead of the parameters: much cheaper");
  verb.add("--estimand", options->settings.estimand, measurement::estimands,
           "true gradient: any (a long run if it cannot be enumerated), enumerated, none (only variance and cost)");
  verb.add("--leaf-cap", options->settings.leaf_cap, "most leaves of the tree for the exact gradient")
      .positive()
      .shows_default();
  verb.add("--outcome-cap", options->settings.outcome_cap, "--exact: most enumerated outcomes").positive().shows_default();
  verb.add("--jobs", options->jobs, "threads, at most one per core; 0: one per core. It does not change the numbers")
      .from_to(0, 4096);
  verb.add("--out", options->out, "also write the result to a file (.h5)");
  verb.flag("--json", options->json, "print JSON");
  verb.does(action, [options, most] {
    if (options->exact && options->sampled) throw UsageError("give either --exact or --sampled");
    if (options->exact) options->settings.method = measurement::Method::exact;
    if (options->sampled) options->settings.method = measurement::Method::sampled;
    if (!most.given()) options->settings.most_replicates = static_cast<int>(std::min(2e9, 16.0 * options->settings.replicates));
    warn_about_kernel();
    note_jobs(options->jobs);
    const int jobs = useful_jobs(options->jobs);
    storage::provenance_threads(jobs);
    const tbb::global_control limit(tbb::global_control::max_allowed_parallelism, static_cast<std::size_t>(jobs));
    if (options->exact || options->scene.precision == Precision::float64) return measure_with<double>(*options);
    return measure_with<float>(*options);
  });
}

}  // namespace hardgrad::cli
