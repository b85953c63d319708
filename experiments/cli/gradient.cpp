// hardgrad gradient: everything needed to redo one gradient elsewhere.
#include "experiments/storage/gradient.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>

#include "core/autodiff/gradient.hpp"
#include "core/support/error.hpp"
#include "core/support/instruction_set.hpp"
#include "core/support/usage.hpp"
#include "experiments/cli/common.hpp"
#include "experiments/cli/output.hpp"
#include "experiments/cli/verbs.hpp"
#include "experiments/storage/provenance.hpp"
#include "experiments/sweeps/config.hpp"

namespace hardgrad::cli {
namespace {

struct Options {
  SceneOptions scene;
  std::string estimator, out;
  int repeat = 0;
  bool json = false;
};

// What the same gradient costs, taken again and again on one thread and one tape.
struct Timing {
  std::vector<double> seconds, cpu_seconds;
  std::size_t bytes = 0;  // most memory in use at once, beyond what was before the first
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

// For each final row, the row of `rows` it continues; nothing if the two are on different branches.
std::optional<std::vector<int>> ancestors(const RowsPtr& final_rows, const RowsPtr& rows) {
  std::vector<int> at(final_rows->size());
  for (std::size_t r = 0; r < at.size(); ++r) at[r] = static_cast<int>(r);
  for (auto walk = final_rows; walk; walk = walk->origin) {
    if (walk == rows) return at;
    if (walk->is_root()) break;
    for (auto& r : at) r = walk->parent[r];
  }
  if (rows->is_root()) return final_rows->example;
  // Independent steps branch from the root each, in the same order: row for row the same sample.
  if (rows->example == final_rows->example && rows->replica == final_rows->replica) {
    for (std::size_t r = 0; r < at.size(); ++r) at[r] = static_cast<int>(r);
    return at;
  }
  return {};
}

// The shape [T, R] of what there is one of for each choice, [T, R, D] where a question has several columns; and the place of
// column d of row r at step t in it.
struct Cells {
  std::size_t steps, rows, columns = 1;
  template <class Steps>
  Cells(const Steps& asked, std::size_t rows) : steps(asked.size()), rows(rows) {
    for (const auto& step : asked) columns = std::max<std::size_t>(columns, step.question.site.columns);
  }
  std::vector<std::size_t> shape() const { return columns == 1 ? std::vector{steps, rows} : std::vector{steps, rows, columns}; }
  std::vector<std::size_t> shape(std::size_t options) const {
    auto all = shape();
    all.push_back(options);
    return all;
  }
  std::size_t operator()(std::size_t t, std::size_t r, std::size_t d) const { return (t * rows + r) * columns + d; }
};

// Fills choices, weights, logits, log-probabilities and losses; false if rows of different steps do not
// belong together.
template <class T>
bool describe_rows(const Episode<T>& episode, GradientDump<T>& dump) {
  const auto& steps = episode.steps();
  RowsPtr final_rows = steps.empty() ? episode.root() : steps.back().choice.rows;
  for (const auto& step : steps)  // the finest rows are those every other step is repeated for
    if (step.choice.rows->size() > final_rows->size()) final_rows = step.choice.rows;
  const auto R = final_rows->size();
  std::size_t S = 0;
  bool relaxed = false;
  for (const auto& step : steps) {
    S = std::max(S, step.question.site.logits.cols());
    relaxed |= !step.choice.hard();
  }
  dump.row_example = final_rows->example;
  dump.loss = Array<T>({episode.costs().size(), R});
  for (std::size_t c = 0; c < episode.costs().size(); ++c) {
    const auto& cost = episode.costs()[c];
    const auto at = ancestors(final_rows, cost.rows);
    if (!at) return false;
    for (std::size_t r = 0; r < R; ++r) dump.loss.data[c * R + r] = cost.loss.value().data[(*at)[r]];
  }
  if (steps.empty()) return true;
  const Cells place(steps, R);
  constexpr T none = -std::numeric_limits<T>::infinity();
  dump.logits = Array<T>(place.shape(S), none);
  if (relaxed) dump.weights = Array<T>(place.shape(S));
  if (!relaxed) dump.choices = Array<int>(place.shape(), -1);
  if (!relaxed) dump.log_prob = Array<T>(place.shape());
  const bool posterior = episode.terms().drawn_from == DrawnFrom::posterior;
  if (posterior) dump.posterior_logits = Array<T>(place.shape(S), none);
  if (posterior && !relaxed) dump.posterior_log_prob = Array<T>(place.shape());
  for (std::size_t t = 0; t < steps.size(); ++t) {
    const auto& [question, choice] = steps[t];
    const auto at = ancestors(final_rows, choice.rows);
    if (!at) return false;
    const auto logits = question.site.logits.value();
    const auto log_prior = question.log_prior.value(), log_p = question.log_p.value(), drawn_from = question.logits.value();
    const std::size_t D = question.site.columns;
    for (std::size_t r = 0; r < R; ++r)
      for (std::size_t d = 0; d < D; ++d) {
        const auto row = static_cast<std::size_t>((*at)[r]), cell = row * D + d;
        const auto asked = static_cast<std::size_t>(choice.rows->parent[row]) * D + d;
        const auto options = static_cast<std::size_t>(question.site.options[asked]);
        const auto to = place(t, r, d);
        std::copy_n(logits.row(asked), options, &dump.logits.data[to * S]);
        if (posterior) std::copy_n(drawn_from.row(asked), options, &dump.posterior_logits.data[to * S]);
        if (relaxed && choice.hard()) {
          dump.weights.data[to * S + static_cast<std::size_t>(choice.option[cell])] = 1;
        } else if (relaxed) {
          std::copy_n(choice.weights.value().row(cell), choice.weights.cols(), &dump.weights.data[to * S]);
        } else if (options > 1) {
          const auto option = static_cast<std::size_t>(choice.option[cell]);
          dump.choices.data[to] = choice.option[cell];
          dump.log_prob.data[to] = log_prior(asked, option);
          if (posterior) dump.posterior_log_prob.data[to] = log_p(asked, option);
        }
      }
  }
  return true;
}

// Where independent steps were branched one by one, no row lives through them all: the logits of the examples
// remain.
template <class T>
bool describe_examples(const Episode<T>& episode, GradientDump<T>& dump) {
  const auto& steps = episode.steps();
  const auto B = episode.root()->size();
  std::size_t S = 0;
  for (const auto& step : steps) {
    if (!step.question.site.rows->is_root()) return false;
    S = std::max(S, step.question.site.logits.cols());
  }
  dump.row_example = episode.root()->example;
  const Cells place(steps, B);
  dump.logits = Array<T>(place.shape(S), -std::numeric_limits<T>::infinity());
  for (std::size_t t = 0; t < steps.size(); ++t) {
    const auto& site = steps[t].question.site;
    for (std::size_t cell = 0; cell < site.options.size(); ++cell)
      std::copy_n(site.logits.value().row(cell), site.options[cell],
                  &dump.logits.data[place(t, cell / site.columns, cell % site.columns) * S]);
  }
  return true;
}

// The integer fields of the batch that hold words, as words.
std::map<std::string, Array<std::string>> words_of(const Task& task, const Batch& batch) {
  std::map<std::string, Array<std::string>> words;
  for (const auto& [name, field] : batch.integers) {
    Array<std::string> text(field.shape);
    for (std::size_t i = 0; i < field.size(); ++i) text.data[i] = task.word(name, field.data[i]);
    if (std::any_of(text.data.begin(), text.data.end(), [](const auto& word) { return !word.empty(); }))
      words[name] = std::move(text);
  }
  return words;
}

template <class T>
int dump_gradient(const Options& options) {
  const auto spec = Spec::parse(canonical_spec("estimator", options.estimator));
  if (options.out.empty() && !options.repeat) throw UsageError("--out is needed: the file to write (or --repeat)");
  if (!options.out.empty()) require_writable(options.out);
  const auto scene = open_scene<T>(options.scene, wants_posterior({options.estimator}));
  if (scene.model->structure().numbers() && !options.out.empty())
    throw UsageError("gradient --out writes options and logits, and this model chooses numbers: leave --out off");
  const Key key(options.scene.seed);
  const auto estimator = open_estimator<T>(scene, spec, key / "init");
  const auto timing = time_gradient<T>(options.repeat, *estimator, scene, key / "noise");
  Tape<T> tape;
  KeyedRandomness random(key / "noise");
  auto estimate = estimator->draw({tape, *scene.model, scene.batch, random});
  std::vector<double> gradient(scene.model->parameters().size());
  differentiate(estimate.surrogate, scene.model->parameters(), gradient);

  GradientDump<T> dump;
  for (const auto& p : scene.model->parameters()) {
    dump.parameters.push_back({p.name, p.value});
    Array<T> g(p.value.shape);
    for (std::size_t i = 0; i < g.size(); ++i) g.data[i] = static_cast<T>(gradient[p.offset + i]);
    dump.gradient.push_back({p.name, std::move(g)});
  }
  dump.batch = scene.batch;
  dump.task = scene.task_spec;
  dump.words = words_of(*scene.task, scene.batch);
  dump.model = scene.model_spec;
  dump.model_settings = settings_json("model", scene.model_spec);
  dump.estimator = spec.text;
  dump.seed = options.scene.seed;
  dump.surrogate = static_cast<double>(estimate.surrogate.item());
  if (!estimate.episode || !describe_rows(*estimate.episode, dump)) {
    dump.choices = {};
    dump.weights = dump.log_prob = dump.loss = dump.logits = dump.posterior_log_prob = dump.posterior_logits = {};
    dump.row_example.clear();
    const bool examples = estimate.episode && describe_examples(*estimate.episode, dump);
    complain(fmt::format("note: {} branches at every step by itself; {}", spec.text,
                         examples ? "the logits are those of the examples, choices and losses are left out"
                                  : "logits, choices and losses are left out"));
  }
  if (dump.logits.size())
    for (const auto& step : estimate.episode->steps()) dump.sites.emplace_back(step.question.site.name);
  if (!options.out.empty()) write_gradient(options.out, dump);
  double norm = 0;
  for (double g : gradient) norm += g * g;
  norm = std::sqrt(norm);
  auto seconds = timing.cpu_seconds;
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds.empty() ? 0 : seconds[seconds.size() / 2];
  if (options.json) {
    nlohmann::json json = {{"task", dump.task},
                           {"model", dump.model},
                           {"estimator", dump.estimator},
                           {"seed", dump.seed},
                           {"batch", scene.batch.examples()},
                           {"precision", sizeof(T) == 4 ? "float" : "double"},
                           {"parameters", gradient.size()},
                           {"gradient_norm", number(norm)},
                           {"surrogate", number(dump.surrogate)},
                           {"loss", number(estimate.loss)},
                           {"rows", dump.row_example.size()},
                           {"out", options.out}};
    if (options.repeat)
      json["timing"] = {{"seconds", timing.seconds},
                        {"cpu_seconds", timing.cpu_seconds},
                        {"bytes", timing.bytes},
                        {"blas_kernel", blas_kernel()},
                        {"instruction_set", instruction_set()}};
    print_json(json);
    return 0;
  }
  put("{} on {}: |gradient| = {:.6g}, loss {:.6g}", dump.estimator, dump.task, norm, estimate.loss);
  if (!options.out.empty()) put("; written to {}", options.out);
  if (options.repeat)
    put("; {:.4g} ms of processor time each (median of {}), {}, BLAS kernel {}, vectors of {}", 1e3 * median, options.repeat,
        size_text(static_cast<double>(timing.bytes)), blas_kernel(), instruction_set());
  put("\n");
  return 0;
}

}  // namespace

void add_gradient(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* sub = app.add_subcommand("gradient", "dump one gradient and all that is needed to redo it elsewhere");
  options->scene.add_options(*sub);
  sub->add_option("--estimator", options->estimator, "e.g. 'rloo[samples=4]'")->required();
  sub->add_option("--out", options->out, "the file to write (.h5)");
  sub->add_option("--repeat", options->repeat, "first take it so many times on one thread, and say what it costs")
      ->check(CLI::Range(1, 1000000));
  sub->add_flag("--json", options->json, "print JSON");
  sub->callback([options, &action] {
    action = [options] {
      warn_about_kernel();
      return options->scene.precision == "double" ? dump_gradient<double>(*options) : dump_gradient<float>(*options);
    };
  });
}

}  // namespace hardgrad::cli
