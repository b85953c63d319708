#include "experiments/training/evaluation.hpp"

#include <algorithm>
#include <numeric>

#include "core/choice/choosers.hpp"
#include "core/estimator/objectives.hpp"
#include "core/estimator/score_function.hpp"

namespace hardgrad {
namespace {

std::vector<int> consecutive(std::size_t from, std::size_t to) {
  std::vector<int> indices(to - from);
  std::iota(indices.begin(), indices.end(), static_cast<int>(from));
  return indices;
}

/// The answers metrics are taken of: the most probable options, or the expected weights.
template <class T>
std::unique_ptr<Chooser<T>> plain_chooser(const Target& target) {
  if (target.kind == Target::Kind::soft) return std::make_unique<ExpectedChooser<T>>();
  return std::make_unique<GreedyChooser<T>>();
}

template <class T>
void add_losses(std::map<std::string, double>& sums, const Problem<T>& problem, const Target& target, double row_cap) {
  const double examples = problem.batch.examples();
  const auto& model = problem.model;
  if (target.kind == Target::Kind::soft) return;  // its loss is the plain run's
  if (enumeration_rows(model, problem.batch) > row_cap) {
    sums["sampled_loss"] += examples * Sampled<T>(problem, 1).mean_loss();
    return;
  }
  const bool elbo = target.kind == Target::Kind::elbo;
  EnumerateChooser<T> chooser(elbo);
  Episode<T> episode(problem.tape, chooser, problem.batch.examples());
  model.run(problem.batch, episode);
  sums["expected_loss"] += examples * static_cast<double>(expected_loss(episode).item());
  sums["marginal_likelihood"] += examples * static_cast<double>(marginal_likelihood_loss(episode).item());
  if (elbo) sums["elbo"] += examples * static_cast<double>(negative_elbo(episode).item());
}

}  // namespace

template <class T>
Observation observe(const Episode<T>& episode) {
  const auto examples = static_cast<std::size_t>(episode.examples());
  const auto& steps = episode.steps();
  const auto& predictions = episode.predictions();
  Observation seen{Array<int>({examples, predictions.size()}, -1), Array<int>({examples, steps.size()}, -1)};
  for (std::size_t t = 0; t < steps.size(); ++t)
    for (std::size_t b = 0; b < examples; ++b) {
      const auto& choice = steps[t].choice;
      int option;
      if (choice.hard()) {
        option = choice.option[b];
      } else {
        const auto* row = choice.weights.value().row(b);
        option = static_cast<int>(std::max_element(row, row + choice.weights.cols()) - row);
      }
      seen.choices.row(b)[t] = option;
    }
  for (std::size_t p = 0; p < predictions.size(); ++p)
    for (std::size_t b = 0; b < examples; ++b) seen.predictions.row(b)[p] = predictions[p].label[b];
  return seen;
}

template <class T>
EvaluationPoint evaluate(const Task& task, const Model<T>& model, const Target& target,
                         const EvaluationSettings& settings, Key noise) {
  const auto all = task.size(settings.split);
  const auto examples = settings.examples > 0 ? std::min<std::size_t>(settings.examples, all) : all;
  auto metrics = task.metrics();
  std::map<std::string, double> sums;
  Tape<T> tape;
  for (std::size_t from = 0; from < examples; from += settings.batch) {
    const auto batch = task.batch(settings.split, consecutive(from, std::min(from + settings.batch, examples)));
    KeyedRandomness random(noise);
    const auto plain = plain_chooser<T>(target);
    {
      tape.clear();
      Episode<T> episode(tape, *plain, batch.examples());
      model.run(batch, episode);
      sums[target.kind == Target::Kind::soft ? "soft" : "greedy_loss"] +=
          batch.examples() * static_cast<double>(plain_loss(episode).item());
      task.score(batch, observe(episode), metrics);
    }
    if (settings.decode && task.decodes()) {
      tape.clear();
      Episode<T> episode(tape, *plain, batch.examples(), Feeding::free_running);
      model.run(batch, episode);
      task.score_decoded(batch, observe(episode), metrics);
    }
    tape.clear();
    add_losses<T>(sums, {tape, model, batch, random}, target, settings.row_cap);
  }
  EvaluationPoint point{};
  for (const auto& [name, sum] : sums) point.losses[name] = sum / static_cast<double>(examples);
  for (const auto& metric : metrics) point.metrics[metric.name] = metric.value();
  return point;
}

#define HARDGRAD_INSTANTIATE(T)                              \
  template Observation observe(const Episode<T>&);           \
  template EvaluationPoint evaluate(const Task&, const Model<T>&, const Target&, const EvaluationSettings&, Key);
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)

}  // namespace hardgrad
