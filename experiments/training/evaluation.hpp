// Evaluation: losses and metrics of a model on a split, answered as its target would have it.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "core/estimator/estimator.hpp"
#include "experiments/tasks/task.hpp"
#include "experiments/training/trainer.hpp"

namespace hardgrad::training {

struct EvaluationSettings {
  tasks::Split split = tasks::Split::heldout;
  int examples = 0;  ///< the first of the split; 0 is all
  int batch = 64;
  bool decode = false;  ///< also run freely, for the task's decoding metrics
  int beam = 1;         ///< beginnings of a sentence that go on together as it does; 1: the likeliest word at every step
  DrawnFrom attention = DrawnFrom::prior;  ///< whose most probable choices metrics are taken of (decoding: always the prior's)
  int average =
      0;  ///< metrics are of answers averaged over so many samples (averaged_answers.hpp); 0: of the most probable choices
  int bound_samples = 0;   ///< also the bound of so many samples; 0: none
  double row_cap = 20000;  ///< most rows of one enumeration: batches are cut to it, larger examples are not enumerated
  Stop stop = {};          ///< polled between batches and parts of them
};

/// Losses per example, in the model's units: for the soft target `soft`; for the others `expected_loss` and
/// `marginal_likelihood` by enumeration where every example's choices are few enough (with `elbo` if the target draws from a
/// posterior), `sampled_loss` under one sample of the prior, `greedy_loss` under the most probable choices; for targets that
/// draw from a posterior `sampled_elbo` under one sample of it. `sampled_bound` is -log 1/K sum_k p(z_k) exp(-f(z_k)) / r(z_k),
/// z_k drawn from the target's distribution r: with the loss -log p(y | z) no less than the marginal likelihood's, on average
/// (Burda, Grosse & Salakhutdinov 2016). Metrics are those of the most probable choices (of the expected weights for the soft
/// target).
template <class T>
EvaluationPoint evaluate(const tasks::Task& task, const Model<T>& model, const Target& target,
                         const EvaluationSettings& settings, Key noise);

/// What the model does with a batch, fed with the truth, under the most probable choices (for the soft target, the weights).
template <class T>
tasks::Observation most_probable(const Model<T>& model, const Target& target, const Batch& batch, DrawnFrom attention);

/// Calls f with the examples to evaluate, a batch at a time; polls `stop` before each.
template <class F>
void for_each_batch(const tasks::Task& task, const EvaluationSettings& settings, F f) {
  const auto all = task.size(settings.split);
  const auto examples = settings.examples > 0 ? std::min<std::size_t>(settings.examples, all) : all;
  for (std::size_t from = 0; from < examples; from += settings.batch) {
    poll(settings.stop);
    std::vector<int> indices(std::min(from + settings.batch, examples) - from);
    std::iota(indices.begin(), indices.end(), static_cast<int>(from));
    f(task.batch(settings.split, indices));
  }
}

/// What an episode of one row per example showed.
template <class T>
tasks::Observation observe(const Episode<T>& episode);

}  // namespace hardgrad::training
