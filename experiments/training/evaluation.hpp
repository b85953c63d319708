// Evaluation: losses and metrics of a model on a split, with choices according to its target.
#pragma once

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "core/estimator/estimator.hpp"
#include "core/support/named.hpp"
#include "experiments/tasks/task.hpp"
#include "experiments/training/predictions.hpp"
#include "experiments/training/trainer.hpp"

namespace hardgrad::training {

/// The distribution whose most probable choices metrics use: the prior, the learned posterior, or the exact posterior
/// p(z | x, y) (predictions.hpp). Posteriors depend on the answer.
enum class Attention { prior, learned_posterior, exact_posterior };
inline constexpr Named<Attention> attentions[] = {
    {"prior", Attention::prior}, {"posterior", Attention::learned_posterior}, {"exact", Attention::exact_posterior}};

struct EvaluationSettings {
  tasks::Split split = tasks::Split::heldout;
  int examples = 0;  ///< the first of the split; 0 is all
  int batch = 64;
  bool decode = false;                     ///< also generate without teacher forcing, for the task's decoding metrics
  int beam = 1;                            ///< width of the beam for decoding; 1: the most probable word at every step
  bool sum_choices = false;                ///< decode by the words' probability summed over choices, as beam_search.hpp
  Attention attention = Attention::prior;  ///< source of the most probable choices for metrics (decoding: always the prior)
  int average = 0;  ///< number of samples over which predictions are averaged (predictions.hpp); 0: the most probable choices
  int bound_samples = 0;   ///< number of samples of the sampled bound; 0: none
  double row_cap = 20000;  ///< most rows per enumeration: batches are split to fit; larger examples are not enumerated
  Stop stop = {};          ///< polled between batches and parts of them
};

/// Losses per example, in the model's units. For the soft target: `soft`. For others:
/// - `expected_loss` and `marginal_likelihood` by enumeration if every example has few enough choices (with `elbo` if the
///   target draws from a posterior, and without `marginal_likelihood` if exp(-loss) is not a probability);
/// - `sampled_loss` under one sample of the prior, `greedy_loss` under the most probable choices;
/// - `sampled_elbo` under one sample of the posterior, for targets that draw from it;
/// - `sampled_bound`: -log 1/K sum_k p(z_k) exp(-f(z_k)) / r(z_k), z_k drawn from the target's distribution r, if exp(-loss) is a
///   probability: on average no less than that of the marginal likelihood (Burda, Grosse & Salakhutdinov 2016).
/// Metrics use the most probable choices (for the soft target, the expected weights). Batches are divided over the threads; the
/// numbers do not depend on how many there are.
template <class T>
EvaluationPoint evaluate(const tasks::Task& task, const Model<T>& model, const Target& target,
                         const EvaluationSettings& settings, Key noise);

/// The choices for metrics and decoding: the most probable options, or the expected weights for the soft target.
template <class T>
std::unique_ptr<Handler<T>> plain_handler(const Target& target);

/// The handler for free decoding: that of above, or the enumeration of `sum_choices`. The model must outlive it.
template <class T>
std::unique_ptr<Handler<T>> decoding_handler(const Model<T>& model, const Target& target, const EvaluationSettings& settings);

/// The model's output for a batch with teacher forcing, under the most probable choices (for the soft target, the weights).
template <class T>
tasks::Observation most_probable(const Model<T>& model, const Target& target, const Batch& batch, Attention attention);

/// The indices of the examples to evaluate, by batch.
inline std::vector<std::vector<int>> batches_of(const tasks::Task& task, const EvaluationSettings& settings) {
  const auto all = task.size(settings.split);
  const auto examples = settings.examples > 0 ? std::min<std::size_t>(settings.examples, all) : all;
  std::vector<std::vector<int>> batches;
  for (std::size_t from = 0; from < examples; from += settings.batch) {
    auto& batch = batches.emplace_back(std::min(from + settings.batch, examples) - from);
    std::iota(batch.begin(), batch.end(), static_cast<int>(from));
  }
  return batches;
}
/// Calls f with these batches, in order; polls `stop` before each.
template <class F>
void for_each_batch(const tasks::Task& task, const EvaluationSettings& settings, F f) {
  for (const auto& batch : batches_of(task, settings)) {
    poll(settings.stop);
    f(task.batch(settings.split, batch));
  }
}

/// Checks that data has the training vocabulary, for tasks that cannot reuse a vocabulary. InputError `<where>: ...` if an
/// index means one word in the training data and another in the examples to evaluate.
void require_same_words(const tasks::Task& trained, const tasks::Task& task, const EvaluationSettings& settings,
                        const std::string& where);

}  // namespace hardgrad::training
