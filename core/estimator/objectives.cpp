#include "core/estimator/objectives.hpp"

#include <fmt/format.h>

#include <map>
#include <numeric>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/autodiff/softmax.hpp"
#include "core/autodiff/sparsemax.hpp"
#include "core/choice/choosers.hpp"
#include "core/estimator/outcome_objectives.hpp"

namespace hardgrad {
namespace {

template <class T>
Var<T> plus(Var<T> a, Var<T> b) {
  return a ? add(a, b) : b;
}

/// sum over rows of path probability x value, over the number of examples.
template <class T>
Var<T> weighted_by_path(Episode<T>& episode, const RowsPtr& rows, Var<T> value, Law law) {
  const double share = 1.0 / episode.examples();
  bool certain = true;  // no hard choice on the way: probability one
  for (auto* r = rows.get(); !r->is_root(); r = r->origin.get())
    certain &= episode.steps()[r->step].choice.option.empty();
  if (certain) return sum(value, share);
  return sum(multiply(exp(episode.path_log_probability(rows, law)), value), share);
}

}  // namespace

template <class T>
Var<T> expected_loss(Episode<T>& episode, Law law) {
  Var<T> total;
  for (const auto& cost : episode.costs()) total = plus(total, weighted_by_path(episode, cost.rows, cost.loss, law));
  return total ? total : episode.tape().constant(1, 1);
}

template <class T>
Var<T> plain_loss(Episode<T>& episode) {
  auto total = episode.tape().constant(1, 1);
  for (const auto& cost : episode.costs()) total = add(total, sum(cost.loss, 1.0 / static_cast<double>(cost.rows->size())));
  return total;
}

template <class T>
Var<T> marginal_likelihood_loss(Episode<T>& episode) {
  const double share = 1.0 / episode.examples();
  Var<T> total = episode.tape().constant(1, 1);
  for (const auto& cost : episode.costs())
    if (cost.rows->is_root()) total = add(total, sum(cost.loss, share));
  std::map<const Rows*, Var<T>> made;
  for (const auto& rows : leaf_sets(episode)) {
    auto log_joint = episode.path_log_probability(rows);
    if (auto loss = path_loss(episode, rows, made)) log_joint = subtract(log_joint, loss);
    auto log_likelihood = segment_logsumexp(log_joint, std::span<const int>(rows->example), episode.examples());
    total = add(total, sum(log_likelihood, -share));
  }
  return total;
}

template <class T>
Var<T> negative_elbo(Episode<T>& episode) {
  auto total = expected_loss(episode, Law::proposal);
  for (const auto& step : episode.steps()) {
    const auto& question = step.question;
    auto divergence = kl_divergence(question.log_proposal, question.log_prior);
    total = add(total, weighted_by_path(episode, question.site.rows, divergence, Law::proposal));
  }
  return total;
}

template <class T>
Var<T> path_entropy(Episode<T>& episode) {
  Var<T> total = episode.tape().constant(1, 1);
  for (const auto& step : episode.steps())
    total = add(total, weighted_by_path(episode, step.question.site.rows, entropy(step.question.log_prior), Law::prior));
  return total;
}

namespace {

/// Product of the sparsemax weights of the choices on the way to `rows` [R, 1].
template <class T>
Var<T> sparse_path_weight(const Episode<T>& episode, const Rows& rows, std::map<const Rows*, Var<T>>& made) {
  if (auto it = made.find(&rows); it != made.end()) return it->second;
  const auto& [question, choice] = episode.steps()[rows.step];
  const std::span<const int> parent(rows.parent);
  auto weight = pick(sparsemax(question.site.logits, std::span<const int>(question.site.options)), parent,
                     std::span<const int>(choice.option));
  if (!rows.origin->is_root())
    weight = multiply(weight, gather_rows(sparse_path_weight(episode, *rows.origin, made), parent));
  return made[&rows] = weight;
}

}  // namespace

template <class T>
Var<T> sparse_expected_loss(Episode<T>& episode) {
  const double share = 1.0 / episode.examples();
  std::map<const Rows*, Var<T>> made;
  auto total = episode.tape().constant(1, 1);
  for (const auto& [rows, loss] : episode.costs())
    total = add(total, sum(rows->is_root() ? loss : multiply(sparse_path_weight(episode, *rows, made), loss), share));
  return total;
}

template <class T>
std::vector<double> enumeration_rows(const Model<T>& model, const Batch& batch) {
  const auto& structure = model.structure();
  if (structure.dependence == Dependence::sequential) return model.outcomes(batch);
  return std::vector<double>(batch.examples(), structure.options);
}

template <class T>
std::vector<double> enumeration_terms(const Target& target, const Model<T>& model, const Batch& batch) {
  if (target.kind == Target::Kind::soft) return std::vector<double>(batch.examples(), 1.0);
  if (!needs_outcomes(target.kind)) return enumeration_rows(model, batch);
  return outcome_terms(target, model, batch);
}

namespace {

/// E[f] with the score term weighted by lambda_r, minus lambda_e times the entropy. With lambda_r = 1 this is the
/// gradient of E[f] - lambda_e H[p(z)].
template <class T>
Var<T> regularised(Episode<T>& episode, const Target& target) {
  auto full = expected_loss(episode);
  auto total = affine(full, static_cast<T>(target.lambda_r));
  if (target.lambda_r != 1) {
    Var<T> path;  // probabilities held fixed
    for (const auto& cost : episode.costs()) {
      auto weight = exp(episode.tape().detach(episode.path_log_probability(cost.rows)));
      path = plus(path, sum(multiply(weight, cost.loss), 1.0 / episode.examples()));
    }
    if (path) total = add(total, affine(path, static_cast<T>(1 - target.lambda_r)));
  }
  if (target.lambda_e == 0) return total;
  return add(total, affine(path_entropy(episode), static_cast<T>(-target.lambda_e)));
}

}  // namespace

template <class T>
Estimate<T> exact_objective(const Target& target, const Problem<T>& problem, double leaf_cap) {
  auto& tape = problem.tape;
  auto& model = problem.model;
  auto& batch = problem.batch;
  const auto run = [&](Chooser<T>& chooser, CostWeights weights) {
    auto episode = std::make_unique<Episode<T>>(tape, chooser, batch.examples());
    episode->expect(model.structure().steps);
    episode->announce(weights);
    model.run(batch, *episode);
    return episode;
  };
  const auto run_soft = [&] {
    ExpectedChooser<T> chooser;
    return run(chooser, CostWeights::equal);
  };
  if (target.kind == Target::Kind::soft) {
    auto episode = run_soft();
    auto loss = expected_loss(*episode);
    return {.surrogate = loss, .episode = std::move(episode), .loss = static_cast<double>(loss.item())};
  }

  const auto of_example = enumeration_terms(target, model, batch);
  if (const double terms = std::accumulate(of_example.begin(), of_example.end(), 0.0); terms > leaf_cap) {
    const bool tuples = target.kind == Target::Kind::importance_bound;
    const auto what = tuples ? fmt::format("multisets of {} samples", target.samples)
                             : target.kind == Target::Kind::wake_sleep ? "sets of choices and observations" : "rows";
    throw UsageError(fmt::format(
        "exact enumeration needs {:.6g} {} ({} choices of up to {} options, {} examples), more than the cap of {:.6g}: "
        "take fewer {}steps, options or examples, or raise the cap",
        terms, what, model.structure().steps, model.structure().options, batch.examples(), leaf_cap,
        tuples ? "samples, " : ""));
  }
  if (needs_outcomes(target.kind)) return outcome_objective(target, problem);
  EnumerateChooser<T> chooser(needs_posterior(target.kind));
  auto weights = CostWeights::unknown;
  if (target.kind == Target::Kind::expected_loss || target.kind == Target::Kind::regularised)
    weights = CostWeights::path_probability;
  if (target.kind == Target::Kind::marginal_likelihood && model.structure().dependence == Dependence::factorised)
    weights = CostWeights::posterior;
  auto episode = run(chooser, weights);
  Var<T> objective;
  switch (target.kind) {
    case Target::Kind::expected_loss: objective = expected_loss(*episode); break;
    case Target::Kind::marginal_likelihood: objective = marginal_likelihood_loss(*episode); break;
    case Target::Kind::elbo: objective = negative_elbo(*episode); break;
    case Target::Kind::regularised: {
      objective = regularised(*episode, target);
      if (target.semi) {
        auto soft = run_soft();
        auto half = expected_loss(*soft);
        if (target.lambda_e != 0) half = add(half, affine(path_entropy(*soft), static_cast<T>(-target.lambda_e)));
        objective = affine(add(objective, half), T{0.5});
      }
      break;
    }
    case Target::Kind::sparsemax: objective = sparse_expected_loss(*episode); break;
    default: break;  // not by enumeration of rows
  }
  return {.surrogate = objective, .episode = std::move(episode), .loss = static_cast<double>(objective.item())};
}

#define HARDGRAD_INSTANTIATE(T)                                                             \
  template Var<T> plain_loss(Episode<T>&);                                                  \
  template Var<T> expected_loss(Episode<T>&, Law);                                          \
  template Var<T> marginal_likelihood_loss(Episode<T>&);                                    \
  template Var<T> negative_elbo(Episode<T>&);                                               \
  template Var<T> sparse_expected_loss(Episode<T>&);                                        \
  template Var<T> path_entropy(Episode<T>&);                                                \
  template std::vector<double> enumeration_rows(const Model<T>&, const Batch&);             \
  template std::vector<double> enumeration_terms(const Target&, const Model<T>&, const Batch&); \
  template Estimate<T> exact_objective(const Target&, const Problem<T>&, double);
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)

}  // namespace hardgrad
