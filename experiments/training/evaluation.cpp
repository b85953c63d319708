#include "experiments/training/evaluation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/choice/handlers.hpp"
#include "core/estimator/enumeration/objectives.hpp"
#include "core/estimator/importance/importance.hpp"
#include "core/support/error.hpp"
#include "experiments/measurement/finite.hpp"
#include "experiments/support/parallel.hpp"
#include "experiments/tasks/text.hpp"
#include "experiments/training/beam_search.hpp"
#include "experiments/training/predictions.hpp"

namespace hardgrad::training {
namespace {

/// Sum over costs of their mean over rows: the loss of a run with one row per example.
template <class T>
double plain_loss(const Episode<T>& episode, Tape<T>& tape) {
  auto total = tape.constant(1, 1);
  for (const auto& cost : episode.costs()) total = add(total, sum(cost.loss, 1.0 / static_cast<double>(cost.rows->size())));
  return static_cast<double>(total.item());
}

/// The model's output without teacher forcing.
template <class T>
tasks::Observation decoded(Tape<T>& tape, const Model<T>& model, const Batch& batch, const Target& target,
                           const EvaluationSettings& settings) {
  const auto handler = decoding_handler(model, target, settings);
  if (settings.beam == 1 && !settings.sum_choices) {
    Episode<T> episode(tape, *handler, batch.examples());
    episode.run_freely();
    model.run(batch, episode);
    return observe(episode);
  }
  const auto hypotheses = beam_search(model, batch, *handler, settings.beam, tape, 1, tasks::Vocabulary::marks());
  std::size_t longest = 0;
  for (const auto& sentences : hypotheses) longest = std::max(longest, sentences.front().labels.size());
  tasks::Observation seen{full<int>({hypotheses.size(), longest}, -1), full<int>({hypotheses.size(), 0}, -1)};
  for (std::size_t b = 0; b < hypotheses.size(); ++b)
    std::copy(hypotheses[b].front().labels.begin(), hypotheses[b].front().labels.end(), row_of(seen.predictions, b).begin());
  return seen;
}

/// Predictions averaged over samples, at most `row_cap` rows at a time.
template <class T>
Array<int> averaged(Tape<T>& tape, const Model<T>& model, const Batch& batch, const EvaluationSettings& settings, Key noise) {
  const int B = batch.examples(), together = std::max(1, static_cast<int>(settings.row_cap / settings.average));
  std::vector<Array<int>> parts;
  std::size_t places = 0;
  for (int first = 0; first < B; first += together) {
    poll(settings.stop);
    tape.clear();
    std::vector<int> some(std::min(together, B - first));
    std::iota(some.begin(), some.end(), first);
    KeyedRandomness random(noise);
    parts.push_back(averaged_answers(model, batch.select(some), settings.average, tape, random));
    places = std::max(places, extent(parts.back(), 1));
  }
  Array<int> all = full<int>({static_cast<std::size_t>(B), places}, -1);
  for (std::size_t first = 0; const auto& part : parts) {
    const auto end = first + extent(part, 0);
    xt::view(all, xt::range(first, end), xt::range(0, extent(part, 1))) = part;
    first = end;
  }
  return all;
}

/// Splits a batch so that each part enumerates to at most `row_cap` rows; empty if a single example has more.
template <class T>
std::vector<std::vector<int>> enumerable_parts(const Model<T>& model, const Batch& batch, double row_cap) {
  std::vector<std::vector<int>> parts;
  const auto of_example = enumeration_rows(model, batch);
  double rows = 0;
  for (int b = 0; b < batch.examples(); ++b) {
    const double own = of_example[b];
    if (own > row_cap) return {};
    if (parts.empty() || rows + own > row_cap) {
      parts.emplace_back();
      rows = 0;
    }
    parts.back().push_back(b);
    rows += own;
  }
  return parts;
}

/// Named terms of the losses, sums over examples.
using LossTerms = std::vector<std::pair<std::string, double>>;

/// Adds the losses of a batch by complete enumeration of each example.
template <class T>
void add_enumerated(LossTerms& terms, Tape<T>& tape, const Model<T>& model, const Batch& batch,
                    const std::vector<std::vector<int>>& parts, bool elbo, const Stop& stop) {
  for (const auto& part : parts) {
    poll(stop);
    const auto examples = static_cast<double>(part.size());
    tape.clear();
    EnumerateHandler<T> handler(model.structure());
    const auto some = batch.select(part);
    KeyedRandomness none{Key()};  // an enumeration needs no random numbers
    const Problem<T> problem{tape, model, some, none};
    const auto run = problem.run(handler);
    auto& episode = *run;
    terms.emplace_back("expected_loss", examples * static_cast<double>(expected_loss(episode).item()));
    if (!*model.structure().no_likelihood)
      terms.emplace_back("marginal_likelihood", examples * static_cast<double>(marginal_likelihood_loss(episode).item()));
    if (elbo)
      terms.emplace_back("elbo", examples * exact_objective("elbo", problem, std::numeric_limits<double>::infinity()).loss);
  }
}

/// Mean loss of one posterior sample per example, with the analytic divergence.
template <class T>
double sampled_elbo(Tape<T>& tape, const Model<T>& model, const Batch& batch, Key noise) {
  tape.clear();
  KeyedRandomness random(noise);
  const TargetTerms terms{DrawnFrom::posterior, TargetTerms::Divergence::analytic};
  return Sampled<T>({.tape = tape, .model = model, .batch = batch, .random = random, .terms = terms}, 1).mean_loss();
}

/// Sum over the examples of the bound with `samples` samples; draws at most `row_cap` rows at a time.
template <class T>
double sampled_bound(Tape<T>& tape, const Model<T>& model, const Batch& batch, DrawnFrom drawn_from, int samples,
                     double row_cap, Key noise, const Stop& stop) {
  const int B = batch.examples(), together = std::max(1, static_cast<int>(row_cap / B));
  std::vector<std::vector<double>> log_weight(B);
  for (int first = 0; first < samples; first += together) {
    poll(stop);
    tape.clear();
    const int count = std::min(together, samples - first);
    KeyedRandomness random(noise / static_cast<std::uint64_t>(first));
    const Problem<T> problem{
        .tape = tape, .model = model, .batch = batch, .random = random, .terms = {.drawn_from = drawn_from}};
    const auto add = [&](int b, std::span<const double> some) {
      log_weight[b].insert(log_weight[b].end(), some.begin(), some.end());
    };
    if (drawn_from == DrawnFrom::posterior) {
      const ImportanceSamples<T> drawn(problem, count);
      for (int b = 0; b < B; ++b) add(b, drawn.log_weights(b));
    } else {
      auto minus = Sampled<T>(problem, count, Costs::weighted).losses();
      for (double& loss : minus) loss = -loss;
      for (int b = 0; b < B; ++b) add(b, std::span<const double>(minus).subspan(std::size_t(b) * count, count));
    }
  }
  double total = 0;
  for (const auto& log_w : log_weight) total -= log_mean_exp(log_w);
  return total;
}

}  // namespace

template <class T>
std::unique_ptr<Handler<T>> plain_handler(const Target& target) {
  if (target.name() == "soft") return std::make_unique<ExpectedHandler<T>>();
  return std::make_unique<GreedyHandler<T>>();
}

template <class T>
std::unique_ptr<Handler<T>> decoding_handler(const Model<T>& model, const Target& target, const EvaluationSettings& settings) {
  if (settings.sum_choices) return std::make_unique<EnumerateHandler<T>>(model.structure());
  return plain_handler<T>(target);
}

namespace {

DrawnFrom drawn_from(Attention attention) {
  return attention == Attention::learned_posterior ? DrawnFrom::posterior : DrawnFrom::prior;
}

/// The handler that makes the most probable choices. For the exact posterior it enumerates on a tape of its own.
template <class T>
std::unique_ptr<Handler<T>> handler_of(const Model<T>& model, const Target& target, const Batch& batch, Attention attention) {
  if (attention != Attention::exact_posterior) return plain_handler<T>(target);
  Tape<T> tape;
  return std::make_unique<ForcedHandler<T>>(exact_posterior_modes(tape, model, batch));
}

}  // namespace

template <class T>
tasks::Observation most_probable(const Model<T>& model, const Target& target, const Batch& batch, Attention attention) {
  Tape<T> tape;
  const auto handler = handler_of(model, target, batch, attention);
  Episode<T> episode(tape, *handler, batch.examples(), {drawn_from(attention)});
  model.run(batch, episode);
  return observe(episode);
}

namespace {

/// The results of one batch of an evaluation.
struct EvaluatedBatch {
  Batch batch;
  tasks::Observation seen;
  std::optional<tasks::Observation> decoded;  // freely
  LossTerms terms;
};

template <class T>
EvaluatedBatch evaluated(Tape<T>& tape, const tasks::Task& task, const Model<T>& model, const Target& target,
                         const EvaluationSettings& settings, Key noise, Batch batch, std::atomic<bool>& enumerable) {
  EvaluatedBatch found{std::move(batch), {}, {}, {}};
  const auto& of = found.batch;
  const auto add = [&](const char* name, double sum) { found.terms.emplace_back(name, sum); };
  tape.clear();
  {
    const auto handler = handler_of(model, target, of, settings.attention);
    Episode<T> episode(tape, *handler, of.examples(), {drawn_from(settings.attention)});
    model.run(of, episode);
    add(target.name() == "soft" ? "soft" : "greedy_loss", of.examples() * plain_loss(episode, tape));
    found.seen = observe(episode);
    if (settings.average > 0 && !task.decodes())
      found.seen.predictions = averaged(tape, model, of, settings, noise / "average");
  }
  if (settings.decode && task.decodes()) {
    tape.clear();
    found.decoded = settings.average > 0 ? tasks::Observation{averaged(tape, model, of, settings, noise / "average"),
                                                              full<int>({of.id.size(), 0}, -1)}
                                         : decoded(tape, model, of, target, settings);
  }
  if (target.name() == "soft") return found;  // its loss is that of the plain run
  const auto drawn_from = target.terms().drawn_from;
  if (drawn_from == DrawnFrom::posterior) add("sampled_elbo", of.examples() * sampled_elbo(tape, model, of, noise / "elbo"));
  if (settings.bound_samples > 0 && !*model.structure().no_likelihood)
    add("sampled_bound",
        sampled_bound(tape, model, of, drawn_from, settings.bound_samples, settings.row_cap, noise / "bound", settings.stop));
  tape.clear();
  KeyedRandomness random(noise);
  add("sampled_loss", of.examples() * Sampled<T>({tape, model, of, random}, 1).mean_loss());
  if (!enumerable) return found;
  const auto parts = enumerable_parts(model, of, settings.row_cap);
  if (parts.empty()) enumerable = false;
  add_enumerated(found.terms, tape, model, of, parts, drawn_from == DrawnFrom::posterior, settings.stop);
  return found;
}

}  // namespace

template <class T>
EvaluationPoint evaluate(const tasks::Task& task, const Model<T>& model, const Target& target,
                         const EvaluationSettings& settings, Key noise) {
  auto metrics = task.metrics();
  std::map<std::string, double> sums;
  std::atomic<bool> enumerable = !model.structure().numbers();  // a quadrature's error would not be reported
  std::vector<Tape<T>> tapes(lanes());
  for (auto& tape : tapes) tape.pause_for(polling(settings.stop));
  const auto batches = batches_of(task, settings);
  parallel_then_in_order(
      static_cast<int>(batches.size()),
      [&](int lane, int i) {
        poll(settings.stop);
        return evaluated(tapes[lane], task, model, target, settings, noise, task.batch(settings.split, batches[i]), enumerable);
      },
      [&](const EvaluatedBatch& found) {
        task.score(found.batch, found.seen, metrics);
        if (found.decoded) task.score_decoded(found.batch, *found.decoded, metrics);
        for (const auto& [name, term] : found.terms) sums[name] += term;
      });
  if (!enumerable)  // a mean over a subset of the examples would be biased
    for (const auto* name : {"expected_loss", "marginal_likelihood", "elbo"}) sums.erase(name);
  double examples = 0;
  for (const auto& batch : batches) examples += static_cast<double>(batch.size());
  EvaluationPoint point{};
  for (const auto& [name, sum] : sums) measurement::require_finite(point.losses[name] = sum / examples, name.c_str());
  for (const auto& metric : metrics) point.metrics[metric.name] = metric.value();
  return point;
}

void require_same_words(const tasks::Task& trained, const tasks::Task& task, const EvaluationSettings& settings,
                        const std::string& where) {
  std::map<std::string, std::set<int>> seen;  // indices of each field
  for_each_batch(task, settings, [&](const Batch& batch) {
    for (const auto& [field, values] : batch.integers)
      for (int number : values) {
        if (number < 0 || !seen[field].insert(number).second) continue;
        const auto here = task.word(field, number);
        if (here.empty()) continue;
        std::string there = "nothing";
        try {
          there = trained.word(field, number);
        } catch (const std::out_of_range&) {  // it has fewer words
        }
        if (here != there)
          throw InputError(
              fmt::format("{}: the network was trained on other words: number {} of `{}` is \"{}\" here and \"{}\" "
                          "there, and this task cannot reuse the training vocabulary",
                          where, number, field, here, there));
      }
  });
}

#define HARDGRAD_INSTANTIATE(T)                                                                                     \
  template std::unique_ptr<Handler<T>> plain_handler(const Target&);                                                \
  template std::unique_ptr<Handler<T>> decoding_handler(const Model<T>&, const Target&, const EvaluationSettings&); \
  template tasks::Observation most_probable(const Model<T>&, const Target&, const Batch&, Attention);               \
  template EvaluationPoint evaluate(const tasks::Task&, const Model<T>&, const Target&, const EvaluationSettings&, Key);
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)
#undef HARDGRAD_INSTANTIATE

}  // namespace hardgrad::training
