#include "core/estimator/enumeration/objectives.hpp"

#include <fmt/format.h>

#include <map>
#include <numeric>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/autodiff/softmax.hpp"
#include "core/autodiff/sparsemax.hpp"
#include "core/choice/choosers.hpp"
#include "core/estimator/enumeration/outcomes.hpp"

namespace hardgrad {
namespace {

template <class T>
Var<T> plus(Var<T> a, Var<T> b) {
  return a ? add(a, b) : b;
}

/// sum over rows of path probability x value, over the number of examples.
template <class T>
Var<T> weighted_by_path(Episode<T>& episode, const RowsPtr& rows, Var<T> value) {
  const double share = 1.0 / episode.examples();
  bool certain = true;  // no hard choice on the way: probability one
  for (auto* r = rows.get(); !r->is_root(); r = r->origin.get()) certain &= !episode.steps()[r->step].choice.has_probability();
  if (certain) return sum(value, share);
  return sum(multiply(exp(episode.path_log_probability(rows)), value), share);
}

}  // namespace

template <class T>
Var<T> expected_loss(Episode<T>& episode) {
  Var<T> total;
  for (const auto& cost : episode.costs()) total = plus(total, weighted_by_path(episode, cost.rows, cost.loss));
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
Var<T> path_entropy(Episode<T>& episode) {
  Var<T> total = episode.tape().constant(1, 1);
  for (const auto& step : episode.steps())
    total = add(total, weighted_by_path(episode, step.question.site.rows, step.question.distribution->entropy()));
  return total;
}

namespace {

/// Product of the sparsemax weights of the choices on the way to `rows` [R, 1].
template <class T>
Var<T> sparse_path_weight(const Episode<T>& episode, const Rows& rows, std::map<const Rows*, Var<T>>& made) {
  if (auto it = made.find(&rows); it != made.end()) return it->second;
  const auto& [question, choice] = episode.steps()[rows.step];
  const std::span<const int> parent(rows.parent);
  auto weight = pick(sparsemax(question.logits, std::span<const int>(question.site.options)), parent,
                     std::span<const int>(choice.option));
  if (!rows.origin->is_root()) weight = multiply(weight, gather_rows(sparse_path_weight(episode, *rows.origin, made), parent));
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
  if (!structure.factorised()) return model.outcomes(batch);
  return std::vector<double>(batch.examples(), structure.most_sets());
}

template <class T>
std::vector<double> enumeration_terms(const Target& target, const Model<T>& model, const Batch& batch) {
  return target.entry().exact<T>().terms(target, model, batch);
}

template <class T>
Estimate<T> enumerated_mean(const Target&, const Problem<T>& problem) {
  EnumerateChooser<T> chooser;
  auto episode = problem.run(chooser, CostWeights::path_probability);
  auto loss = expected_loss(*episode);
  return {.surrogate = loss, .episode = std::move(episode), .loss = static_cast<double>(loss.item())};
}

template <class T>
Estimate<T> exact_objective(const Target& target, Problem<T> problem, double leaf_cap) {
  problem.terms = target.terms();
  const auto& structure = problem.model.structure();
  const auto of_example = enumeration_terms(target, problem.model, problem.batch);
  if (const double terms = std::accumulate(of_example.begin(), of_example.end(), 0.0); terms > leaf_cap)
    throw NotExact(fmt::format(
        "exact enumeration needs {:.6g} {} ({} choices of up to {} options, {} examples), more than the cap of {:.6g}: "
        "take fewer samples, steps, options or examples, or raise the cap",
        terms, target.entry().counted, structure.steps(), structure.most_options(), problem.batch.examples(), leaf_cap));
  return target.entry().exact<T>().objective(target, problem);
}

#define HARDGRAD_INSTANTIATE(T)                                                                 \
  template Var<T> plain_loss(Episode<T>&);                                                      \
  template Var<T> expected_loss(Episode<T>&);                                                   \
  template Var<T> marginal_likelihood_loss(Episode<T>&);                                        \
  template Var<T> sparse_expected_loss(Episode<T>&);                                            \
  template Var<T> path_entropy(Episode<T>&);                                                    \
  template std::vector<double> enumeration_rows(const Model<T>&, const Batch&);                 \
  template std::vector<double> enumeration_terms(const Target&, const Model<T>&, const Batch&); \
  template Estimate<T> enumerated_mean(const Target&, const Problem<T>&);                       \
  template Estimate<T> exact_objective(const Target&, Problem<T>, double);
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)

}  // namespace hardgrad
