// hardgrad gradient: everything needed to recompute one gradient elsewhere.
#include "experiments/storage/gradient.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>

#include "core/autodiff/tape.hpp"
#include "core/models/parts/dropout.hpp"
#include "core/support/error.hpp"
#include "core/support/machine.hpp"
#include "experiments/cli/candidates.hpp"
#include "experiments/cli/gradient_rows.hpp"
#include "experiments/cli/output.hpp"
#include "experiments/cli/preflight.hpp"
#include "experiments/cli/scene.hpp"
#include "experiments/cli/verb.hpp"
#include "experiments/measurement/finite.hpp"
#include "experiments/measurement/lengths.hpp"
#include "experiments/storage/process.hpp"
#include "experiments/sweeps/config.hpp"

namespace hardgrad::cli {
namespace {

struct GradientArguments {
  SceneOptions scene;
  std::string estimator, out;
  int repeat = 0;
  bool json = false;
};

// The cost of repeating one gradient on one thread and one tape.
struct Timing {
  std::vector<double> seconds, cpu_seconds;
  std::size_t bytes = 0;  // peak memory, beyond that before the first gradient
};

template <class T>
Timing time_gradient(int repeat, const Estimator<T>& estimator, const Scene<T>& scene, Key noise) {
  using Clock = std::chrono::steady_clock;
  Timing timing;
  forget_peak();
  const auto before = resident_bytes();
  Tape<T> tape;
  std::vector<T> gradient(scene.model->parameters().size());
  for (int i = 0; i < repeat; ++i) {
    const auto start = Clock::now();
    const double cpu = thread_seconds();
    tape.clear();
    KeyedRandomness random(noise);
    const auto estimate = estimator.draw({tape, *scene.model, scene.batch, random});
    differentiate(estimate.surrogate, scene.model->parameters(), gradient);
    timing.cpu_seconds.push_back(thread_seconds() - cpu);
    timing.seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  timing.bytes = std::max(peak_resident_bytes(), before) - before;
  return timing;
}

// The words of the batch's integer fields that encode words.
std::map<std::string, Array<std::string>> words_of(const tasks::Task& task, const Batch& batch) {
  std::map<std::string, Array<std::string>> words;
  for (const auto& [name, field] : batch.integers) {
    Array<std::string> text = zeros<std::string>(field.shape());
    for (std::size_t i = 0; i < field.size(); ++i) text.flat(i) = task.word(name, field.flat(i));
    if (std::any_of(text.begin(), text.end(), [](const auto& word) { return !word.empty(); })) words[name] = std::move(text);
  }
  return words;
}

template <class T>
int dump_gradient(const GradientArguments& options) {
  const auto spec = Spec::parse(sweeps::canonical_spec("estimator", options.estimator));
  if (options.out.empty() && !options.repeat) throw UsageError("--out is needed: the file to write (or --repeat)");
  if (!options.out.empty()) require_writable(options.out);
  auto scene = open_scene<T>(options.scene, wants_posterior({options.estimator}));
  const Key key(options.scene.seed);
  add_dropout(scene.batch, key / "dropout");  // as in training
  const auto dropped = scene.model->dropout_factors(scene.batch);
  if (dropped.empty()) scene.batch.integers.erase("dropout");
  const auto estimator = open_estimator<T>(scene, spec, key / "init");
  const auto timing = time_gradient<T>(options.repeat, *estimator, scene, key / "noise");
  Tape<T> tape;
  KeyedRandomness random(key / "noise");
  auto estimate = estimator->draw({tape, *scene.model, scene.batch, random});
  std::vector<double> gradient(scene.model->parameters().size());
  differentiate(estimate.surrogate, scene.model->parameters(), gradient);
  measurement::require_finite(std::span<const double>(gradient), scene.model->parameters());
  measurement::require_finite(estimate.loss, "the loss");

  storage::GradientDump<T> dump;
  for (const auto& p : scene.model->parameters()) {
    dump.parameters.push_back({p.name, p.value});
    Array<T> g = zeros<T>(p.value.shape());
    for (std::size_t i = 0; i < g.size(); ++i) g.flat(i) = static_cast<T>(gradient[p.offset + i]);
    dump.gradient.push_back({p.name, std::move(g)});
  }
  for (const auto& [name, value] : scene.model->constants()) dump.constants.push_back({name, value});
  const auto& policies = scene.model->policies();
  for (const auto& [of, network] : {std::pair{"older.", policies.behaviour}, {"reference.", policies.reference}})
    if (network)
      for (auto& [name, value] : storage::save_parameters(network->parameters()))
        dump.constants.push_back({of + name, std::move(value)});
  for (const auto& [name, value] : dropped) dump.dropout.push_back({name, value});
  dump.batch = scene.batch;
  dump.task = scene.task_spec;
  dump.words = words_of(*scene.task, scene.batch);
  dump.model = scene.model_spec;
  dump.model_settings = sweeps::settings_json("model", scene.model_spec);
  dump.dimensions = nlohmann::json(scene.task->dimensions()).dump();
  dump.estimator = spec.text;
  dump.seed = options.scene.seed;
  dump.surrogate = static_cast<double>(estimate.surrogate.item());
  const auto described = estimate.episode ? describe_rows(*estimate.episode, dump) : Described::nothing;
  if (described != Described::rows)
    complain(fmt::format("note: {} branches separately at every step; {}", spec.text,
                         described == Described::examples
                             ? "the logits are those of the examples; choices and losses are omitted"
                             : "logits, choices and losses are omitted"));
  if (!options.out.empty()) storage::write_gradient(options.out, dump);
  const double length = measurement::length_of(gradient);
  auto seconds = timing.cpu_seconds;
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds.empty() ? 0 : seconds[seconds.size() / 2];
  if (options.json) {
    nlohmann::json json = {{"task", dump.task},
                           {"model", dump.model},
                           {"estimator", dump.estimator},
                           {"seed", dump.seed},
                           {"batch", scene.batch.examples()},
                           {"precision", name_of(precision_of<T>, precisions)},
                           {"parameters", gradient.size()},
                           {"gradient_norm", number(length)},
                           {"surrogate", number(dump.surrogate)},
                           {"loss", number(estimate.loss)},
                           {"rows", dump.row_example.size()},
                           {"out", options.out}};
    if (options.repeat)
      json["timing"] = {{"seconds", timing.seconds},
                        {"cpu_seconds", timing.cpu_seconds},
                        {"bytes", timing.bytes},
                        {"blas_kernel", storage::blas_kernel()},
                        {"instruction_set", instruction_set()}};
    print_json(json);
    return 0;
  }
  put("{} on {}: |gradient| = {:.6g}, loss {:.6g}", dump.estimator, dump.task, length, estimate.loss);
  if (!options.out.empty()) put("; written to {}", options.out);
  if (options.repeat)
    put("; {:.4g} ms of CPU time each (median of {}), {}, BLAS kernel {}, vectors of {}", 1e3 * median, options.repeat,
        size_text(static_cast<double>(timing.bytes)), storage::blas_kernel(), instruction_set());
  put("\n");
  return 0;
}

}  // namespace

void add_gradient(CLI::App& app, Action& action) {
  auto options = std::make_shared<GradientArguments>();
  Verb verb(app, "gradient", "write one gradient with everything needed to recompute it elsewhere");
  options->scene.add(verb);
  verb.add("--estimator", options->estimator, "e.g. 'rloo[samples=4]'").required().completed_by(estimator_specs);
  verb.add("--out", options->out, "the file to write (.h5)");
  verb.add("--repeat", options->repeat, "first repeat it this number of times on one thread, and report the cost")
      .from_to(1, 1000000);
  verb.flag("--json", options->json, "print JSON");
  verb.does(action, [options] {
    warn_about_kernel();
    return options->scene.precision == Precision::float64 ? dump_gradient<double>(*options) : dump_gradient<float>(*options);
  });
}

}  // namespace hardgrad::cli
