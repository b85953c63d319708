// hardgrad evaluate: a trained network's losses and metrics, on any data of its task.
#include <fmt/format.h>
#include <tbb/global_control.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>

#include "core/support/error.hpp"
#include "experiments/cli/candidates.hpp"
#include "experiments/cli/output.hpp"
#include "experiments/cli/preflight.hpp"
#include "experiments/cli/scene.hpp"
#include "experiments/cli/verb.hpp"
#include "experiments/storage/atomic_file.hpp"
#include "experiments/support/parallel.hpp"
#include "experiments/sweeps/config.hpp"
#include "experiments/tasks/sequence_task.hpp"
#include "experiments/tasks/text.hpp"
#include "experiments/training/beam_search.hpp"
#include "experiments/training/evaluation.hpp"
#include "experiments/training/predictions.hpp"

namespace hardgrad::cli {
namespace {

struct EvaluateArguments {
  std::string checkpoint, task, model, alignments, hypotheses;
  tasks::Split split = tasks::Split::heldout;
  training::Attention attention = training::Attention::prior;
  std::optional<std::uint64_t> seed;
  int examples = 0, batch = 64, beam = 1, average = 0, bound_samples = 0, nbest = 1, jobs = 0;
  bool sum_choices = false, json = false;
};

// Writes the sentences that a beam search of width `settings.beam` finds for the examples of the evaluated split, in the order
// of the data's file: one line per example or, if `most` > 1, up to `most` lines `number ||| words ||| log-probability` (the
// n-best format of Moses), the most probable first. Words are separated by blanks; number counts the examples from 0. Returns
// the number of examples. UsageError if the network generates no words, or the file cannot be written.
template <class T>
std::size_t write_hypotheses(const std::string& path, int most, const tasks::Task& task, const Model<T>& model,
                             const Target& target, const training::EvaluationSettings& settings) {
  if (!dynamic_cast<const tasks::SequenceTask*>(&task))
    throw UsageError("--hypotheses needs a task whose answers are sentences: translation, transduce or parse");
  std::map<std::uint32_t, std::vector<training::Found>> found;  // by the example's place in its file
  const auto handler = training::decoding_handler<T>(model, target, settings);
  Tape<T> tape;
  training::for_each_batch(task, settings, [&](const Batch& batch) {
    tape.clear();
    auto sentences = training::beam_search(model, batch, *handler, settings.beam, tape, most, tasks::Vocabulary::marks());
    for (std::size_t b = 0; b < sentences.size(); ++b) found[batch.id[b]] = std::move(sentences[b]);
  });
  std::string text;
  std::size_t number = 0;
  for (const auto& [id, sentences] : found) {
    for (const auto& sentence : sentences) {
      std::vector<std::string> words;
      for (int label : sentence.labels) words.push_back(task.word("target", label));
      text += most == 1 ? tasks::joined(words) + "\n"
                        : fmt::format("{} ||| {} ||| {:.6g}\n", number, tasks::joined(words), sentence.log_p);
    }
    ++number;
  }
  storage::write_file(path, text);
  return number;
}

std::string words_of(const tasks::Task& task, const std::string& field, std::span<const int> numbers) {
  std::vector<std::string> words;
  for (int number : numbers) words.push_back(task.word(field, number));
  return tasks::joined(words) + "\n";
}

std::string text_of(const std::set<tasks::Link>& links, const tasks::GoldLinks* gold = nullptr) {
  std::string text;
  for (const auto& link : links)
    text +=
        fmt::format("{}{}{}{}", text.empty() ? "" : " ", link.first, !gold || gold->sure.count(link) ? '-' : '?', link.second);
  return text + "\n";
}

// Writes files to a folder, which is created if needed, with one line for each example of the evaluated split, in the
// order of the data's file, as write_hypotheses:
// - `source.txt` and `target.txt`: words separated by blanks, without the end mark;
// - `links.txt` (0-0 1-2): the source word that each target word attends to most, for all heads; null positions give no link;
// - `gold.txt` (0-0 1?2; ?: possible, not sure), if gold links are known.
// Returns the number of lines. UsageError if the network does not attend to source words, or the folder cannot be written.
template <class T>
std::size_t write_alignments(const std::string& folder, const tasks::Task& task, const Model<T>& model, const Target& target,
                             const training::EvaluationSettings& settings) {
  const auto* sequences = dynamic_cast<const tasks::SequenceTask*>(&task);
  const auto& sites = model.structure().sites;
  if (!sequences || sites.size() != 1)
    throw UsageError("--alignments needs a network that attends to a source word for each target word");
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw UsageError(fmt::format("{}: the folder cannot be created: {}", folder, error.message()));

  struct Line {
    std::string source, target, links, gold;
  };
  std::map<std::uint32_t, Line> lines;  // by the example's place in its file
  bool any_gold = false;
  training::for_each_batch(task, settings, [&](const Batch& batch) {
    const auto choices = training::most_probable(model, target, batch, settings.attention).choices;
    const auto of_word = static_cast<std::size_t>(sites[0].columns) * sites[0].subset_size;  // heads, and picks of each
    for (int b = 0; b < batch.examples(); ++b) {
      const auto S = static_cast<std::size_t>(batch.ints("source_length")(b));
      const auto n = static_cast<std::size_t>(batch.ints("target_length")(b)) - 1;
      auto& line = lines[batch.id[b]];
      line.source = words_of(task, "source", row_of(batch.ints("source"), b).first(S));
      line.target = words_of(task, "target", row_of(batch.ints("target"), b).first(n));
      std::set<tasks::Link> links;
      for (std::size_t i = 0; i < n * of_word; ++i)
        if (const int from = choices(b, i); from >= 0 && static_cast<std::size_t>(from) < S)
          links.emplace(from, static_cast<int>(i / of_word));
      line.links = text_of(links);
      const auto& known = sequences->gold(batch.id[b]);
      any_gold = any_gold || !known.empty();
      line.gold = text_of(known.possible, &known);
    }
  });
  const auto write = [&](const char* name, std::string Line::*part) {
    std::string text;
    for (const auto& [id, line] : lines) text += line.*part;
    storage::write_file((std::filesystem::path(folder) / name).string(), text);
  };
  write("source.txt", &Line::source);
  write("target.txt", &Line::target);
  write("links.txt", &Line::links);
  if (any_gold) write("gold.txt", &Line::gold);
  return lines.size();
}

template <class T>
int evaluate_network(const EvaluateArguments& options, const Trained& trained) {
  const auto& checkpoint = trained.checkpoint;
  const auto& task = trained.task;
  const auto& task_spec = trained.task_spec;
  const auto split = to_string(options.split);
  if (task->size(options.split) == 0)
    throw UsageError(
        fmt::format("--split {}: {} has no examples there; use another split, or change its shares", split, task_spec));
  if (options.beam > 1 && !task->decodes())
    throw UsageError(fmt::format("--beam {}: beam search needs sentences, which {} does not have", options.beam, task_spec));
  const auto model = trained.model<T>(false);
  const auto& structure = model->structure();
  const auto estimator = make_estimator<T>(Spec::parse(checkpoint.estimator), structure, Key(checkpoint.seed));
  const auto& target = estimator->target();
  if (options.attention == training::Attention::learned_posterior && !structure.posterior)
    throw UsageError(
        fmt::format("--attention posterior: the network was trained with {}, which learns no posterior", checkpoint.estimator));
  if (options.attention == training::Attention::exact_posterior) {
    if (const auto why = training::why_no_exact_posterior(structure); !why.empty())
      throw UsageError(fmt::format("--attention exact: the posterior of each choice cannot be enumerated: {}", why));
    if (target.name() == "soft")
      throw UsageError(fmt::format("--attention exact: the network was trained with {}, which reads weights, not choices",
                                   checkpoint.estimator));
  }
  if (options.sum_choices) {
    if (!task->decodes())
      throw UsageError(fmt::format("--sum-choices: decoding needs sentences, which {} does not have", task_spec));
    if (const auto why = training::why_no_exact_posterior(structure); !why.empty())
      throw UsageError(fmt::format("--sum-choices: the choices cannot be summed over: {}", why));
    if (target.name() == "soft")
      throw UsageError(fmt::format("--sum-choices: the network was trained with {}, which reads weights, not choices",
                                   checkpoint.estimator));
    if (options.average > 0) throw UsageError("--average and --sum-choices exclude each other; give one of them");
  }
  if (options.bound_samples > 0 && *structure.no_likelihood)
    throw UsageError(
        fmt::format("--bound-samples: a bound of a likelihood, but the network's losses are no log likelihoods, with {}",
                    structure.no_likelihood));
  if (options.average > 0 && target.name() == "soft")
    throw UsageError(fmt::format("--average: the network was trained with {}, which draws no samples; remove the option",
                                 checkpoint.estimator));
  if (options.average > 0 && options.beam > 1) throw UsageError("--average and --beam exclude each other; give one of them");
  if (options.nbest > 1 && options.hypotheses.empty())
    throw UsageError(fmt::format("--nbest {}: needs --hypotheses FILE", options.nbest));
  if (options.nbest > options.beam) throw UsageError(fmt::format("--nbest {0}: needs --beam {0} or more", options.nbest));
  if (!options.hypotheses.empty() && options.average > 0)
    throw UsageError("--average and --hypotheses exclude each other; give one of them");
  if (!options.hypotheses.empty()) require_writable(options.hypotheses);
  const training::EvaluationSettings settings{
      .split = options.split,
      .examples = options.examples,
      .batch = options.batch,
      .decode = true,
      .beam = options.beam,
      .sum_choices = options.sum_choices,
      .attention = options.attention,
      .average = options.average,
      .bound_samples = target.name() == "soft" ? 0 : options.bound_samples,
  };
  const auto point = evaluate(*task, *model, target, settings, Key(options.seed.value_or(checkpoint.seed)) / "evaluate");
  std::size_t written = 0, decoded = 0;
  if (!options.alignments.empty()) written = write_alignments(options.alignments, *task, *model, target, settings);
  if (!options.hypotheses.empty())
    decoded = write_hypotheses(options.hypotheses, options.nbest, *task, *model, target, settings);

  const auto all = task->size(options.split);
  const auto examples = options.examples > 0 ? std::min<std::size_t>(options.examples, all) : all;
  if (options.json) {
    print_json({{"checkpoint", options.checkpoint},
                {"task", task_spec},
                {"trained_on", checkpoint.task},
                {"model", trained.model_spec},
                {"trained_as", checkpoint.model},
                {"estimator", checkpoint.estimator},
                {"target", target.name()},
                {"step", checkpoint.step},
                {"split", split},
                {"examples", examples},
                {"beam", options.beam},
                {"sum_choices", options.sum_choices},
                {"average", options.average},
                {"attention", name_of(options.attention, training::attentions)},
                {"losses", numbers(point.losses)},
                {"metrics", numbers(point.metrics)},
                {"alignments", options.alignments.empty() ? nlohmann::json() : nlohmann::json(options.alignments)},
                {"hypotheses", options.hypotheses.empty() ? nlohmann::json() : nlohmann::json(options.hypotheses)}});
    return 0;
  }
  put("{} on {}, {} of its {} split, after {}\n", trained.model_spec, task_spec, counted(examples, "example"), split,
      counted(static_cast<std::size_t>(checkpoint.step), "step"));
  std::vector<std::vector<std::string>> rows = {{"QUANTITY", "VALUE"}};
  for (const auto* values : {&point.losses, &point.metrics})
    for (const auto& [name, value] : *values) rows.push_back({name, std::isfinite(value) ? fmt::format("{:.4f}", value) : "-"});
  print_table(std::move(rows), "lr");
  if (!options.alignments.empty()) put("alignments of {} written to {}\n", counted(written, "sentence"), options.alignments);
  if (!options.hypotheses.empty()) put("hypotheses for {} written to {}\n", counted(decoded, "example"), options.hypotheses);
  return 0;
}

}  // namespace

void add_evaluate(CLI::App& app, Action& action) {
  auto options = std::make_shared<EvaluateArguments>();
  Verb verb(app, "evaluate", "losses and metrics of a trained network, on any data of its task");
  verb.add("--checkpoint", options->checkpoint, "the network: CELL.checkpoint.h5 of a sweep with checkpoint = true").required();
  verb.add("--task", options->task, "data of the task it was trained on; by default the training data")
      .completed_by(task_specs);
  verb.add("--model", options->model,
           "other settings of the network that leave its parameters unchanged, such as more glimpses or steps")
      .completed_by(model_specs);
  verb.add("--split", options->split, tasks::splits, "train, heldout or test");
  verb.add("--examples", options->examples, "number of examples, from the start of the split; 0: all").from_to(0, 100000000);
  verb.add("--batch", options->batch, "examples per batch").from_to(1, 1000000).shows_default();
  verb.add("--beam", options->beam, "width of the beam search for sentences; 1: greedily").from_to(1, 1000).shows_default();
  verb.flag("--sum-choices", options->sum_choices,
            "decode by the probability of words summed over the choices, not at the most probable choice");
  verb.add("--average", options->average,
           "average predictions over this number of samples of the choices; 0: use the most probable choices")
      .from_to(0, 100000);
  verb.add("--attention", options->attention, training::attentions,
           "source of the attention for metrics: the prior; or, given the answer, the learned posterior or the exact posterior "
           "(exact)");
  verb.add("--bound-samples", options->bound_samples, "also compute the bound with this number of samples; 0: none")
      .from_to(0, 1000000);
  verb.add("--alignments", options->alignments, "folder for word alignments from attention, in the Pharaoh format");
  verb.add("--hypotheses", options->hypotheses,
           "file for the generated sentences, one a line, in the order of the data's file");
  verb.add("--nbest", options->nbest,
           "sentences per example in that file, as lines `number ||| words ||| log-probability`; 1: the words alone")
      .from_to(1, 1000)
      .shows_default();
  verb.add("--seed", options->seed, "seed of other data, its splits, and the noise; by default that of training")
      .not_negative();
  verb.add("--jobs", options->jobs, "threads, at most one per core; 0: one per core. It does not change the numbers")
      .from_to(0, 4096);
  verb.flag("--json", options->json, "print JSON");
  verb.does(action, [options] {
    warn_about_kernel();
    note_jobs(options->jobs);
    const tbb::global_control limit(tbb::global_control::max_allowed_parallelism,
                                    static_cast<std::size_t>(useful_jobs(options->jobs)));
    const Trained trained({.checkpoint = options->checkpoint,
                           .task = options->task,
                           .model = options->model,
                           .seed = options->seed,
                           .read = {.split = options->split, .examples = options->examples}});
    return trained.checkpoint.precision == Precision::float64 ? evaluate_network<double>(*options, trained)
                                                              : evaluate_network<float>(*options, trained);
  });
}

}  // namespace hardgrad::cli
