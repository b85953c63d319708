#include "core/estimator/enumeration/objectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/autodiff/softmax.hpp"
#include "core/choice/handlers.hpp"
#include "core/estimator/enumeration/outcomes.hpp"
#include "core/support/text.hpp"

namespace hardgrad {
namespace {

constexpr double beyond_any_machine = 1e12;  // terms that no larger cap makes feasible

template <class T>
Var<T> plus(Var<T> a, Var<T> b) {
  return a ? add(a, b) : b;
}

/// Sum over rows (and side-by-side columns) of path probability x value, divided by the number of examples.
template <class T>
Var<T> weighted_by_path(Episode<T>& episode, const RowsPtr& rows, Var<T> value) {
  const double share = 1.0 / episode.examples();
  bool certain = true;  // no hard choice on the path: probability 1
  for (auto* r = rows.get(); !r->is_root(); r = r->origin.get()) certain &= !episode.steps()[r->step].choice.has_probability();
  if (certain) return sum(value, share);
  return sum(multiply(exp(episode.path_log_probability(rows)), value), share);
}

}  // namespace

template <class T>
Var<T> expected_loss(Episode<T>& episode) {
  Var<T> total;
  for (const auto& cost : episode.costs())
    total = plus(total, weighted_by_path(episode, cost.rows, loss_of_paths(episode, cost)));
  return total ? total : episode.tape().constant(1, 1);
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
    const std::size_t columns = log_joint.cols();
    auto group = rows->example;
    if (columns > 1) {  // side-by-side columns have separate sums
      std::vector<int> choice(rows->size() * columns);
      std::iota(choice.begin(), choice.end(), 0);
      const auto group_of = [&](std::size_t c) { return static_cast<int>(rows->example[c / columns] * columns + c % columns); };
      std::stable_sort(choice.begin(), choice.end(), [&](int a, int b) { return group_of(a) < group_of(b); });
      group.clear();
      for (int c : choice) group.push_back(group_of(c));
      log_joint = gather_rows(reshape(log_joint, 1), std::span<const int>(choice));
    }
    auto log_likelihood = segment_logsumexp(log_joint, std::span<const int>(group), episode.examples() * columns);
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

/// Product of the entmax weights of the choices on the path to `rows` [R, 1]; for side-by-side columns,
/// their weights [R, D].
template <class T>
Var<T> sparse_path_weight(const Episode<T>& episode, const Rows& rows, double alpha, std::map<const Rows*, Var<T>>& made) {
  if (auto it = made.find(&rows); it != made.end()) return it->second;
  const auto& [question, choice] = episode.steps()[rows.step];
  const std::size_t D = question.site.columns;
  const auto choices = question.parent_choices(rows);
  const auto& categories = question.categories();
  const auto of_cell = reshape(pick(entmax(categories.logits(), std::span<const int>(categories.options()), alpha),
                                    std::span<const int>(choices), std::span<const int>(choice.option())),
                               D);
  if (choice.side_by_side) {
    std::vector<T> counts(choice.padding_mask.size());
    for (std::size_t c = 0; c < counts.size(); ++c) counts[c] = choice.padding_mask[c] ? T{0} : T{1};
    return made[&rows] = multiply(of_cell, episode.tape().constant(MatrixView<const T>{counts.data(), rows.size(), D}));
  }
  auto weight = slice_columns(of_cell, 0, 1);
  for (std::size_t d = 1; d < D; ++d) weight = multiply(weight, slice_columns(of_cell, d, 1));
  if (!rows.origin->is_root())
    weight = multiply(weight,
                      gather_rows(sparse_path_weight(episode, *rows.origin, alpha, made), std::span<const int>(rows.parent)));
  return made[&rows] = weight;
}

}  // namespace

template <class T>
Var<T> sparse_expected_loss(Episode<T>& episode, double alpha) {
  const double share = 1.0 / episode.examples();
  std::map<const Rows*, Var<T>> made;
  auto total = episode.tape().constant(1, 1);
  for (const auto& cost : episode.costs()) {
    const auto loss = loss_of_paths(episode, cost);
    total = add(total,
                sum(cost.rows->is_root() ? loss : multiply(sparse_path_weight(episode, *cost.rows, alpha, made), loss), share));
  }
  return total;
}

template <class T>
std::vector<double> enumeration_rows(const Model<T>& model, const Batch& batch) {
  const auto& structure = model.structure();
  if (!structure.steps_apart()) return model.outcomes(batch);
  return std::vector<double>(batch.examples(), structure.most_sets());
}

template <class T>
std::vector<double> enumeration_terms(const Target& target, const Model<T>& model, const Batch& batch) {
  return target.entry().exact<T>().terms(target, model, batch);
}

template <class T>
Estimate<T> estimate_of(const Problem<T>& problem, Handler<T>& handler, CostWeights weights,
                        const std::type_identity_t<std::function<Var<T>(Episode<T>&)>>& objective) {
  auto episode = problem.run(handler, weights);
  auto value = objective(*episode);
  return {.surrogate = value, .episode = std::move(episode), .loss = static_cast<double>(value.item())};
}

template <class T>
Estimate<T> enumerated_mean(const Target&, const Problem<T>& problem) {
  EnumerateHandler<T> handler(problem.model.structure());
  return estimate_of(problem, handler, CostWeights::path_probability, expected_loss<T>);
}

template <class T>
Estimate<T> exact_objective(const Target& target, Problem<T> problem, double leaf_cap) {
  problem.terms = target.terms();
  const auto& structure = problem.model.structure();
  const auto of_example = enumeration_terms(target, problem.model, problem.batch);
  if (const double terms = std::accumulate(of_example.begin(), of_example.end(), 0.0); terms > leaf_cap)
    throw NotExact(fmt::format(
        "exact enumeration needs {:.6g} {} ({}{} of up to {}, {}), more than the cap of {:.6g}: {}", terms,
        target.entry().counted, counted(structure.choices(), "choice"),
        structure.most_columns() > 1 ? fmt::format(", {} at once,", structure.most_columns()) : "",
        structure.most_options() ? counted(structure.most_options(), "option") : counted(structure.nodes(), "quadrature point"),
        counted(problem.batch.examples(), "example"), leaf_cap,
        terms > beyond_any_machine ? "take fewer choices or options, or an estimator that samples"
                                   : "take fewer samples, choices, options or examples, or raise the cap"));
  return target.entry().exact<T>().objective(target, problem);
}

#define HARDGRAD_INSTANTIATE(T)                                                                                             \
  template Var<T> expected_loss(Episode<T>&);                                                                               \
  template Var<T> marginal_likelihood_loss(Episode<T>&);                                                                    \
  template Var<T> sparse_expected_loss(Episode<T>&, double);                                                                \
  template Var<T> path_entropy(Episode<T>&);                                                                                \
  template std::vector<double> enumeration_rows(const Model<T>&, const Batch&);                                             \
  template std::vector<double> enumeration_terms(const Target&, const Model<T>&, const Batch&);                             \
  template Estimate<T> enumerated_mean(const Target&, const Problem<T>&);                                                   \
  template Estimate<T> estimate_of(const Problem<T>&, Handler<T>&, CostWeights, const std::function<Var<T>(Episode<T>&)>&); \
  template Estimate<T> exact_objective(const Target&, Problem<T>, double);
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)
#undef HARDGRAD_INSTANTIATE

}  // namespace hardgrad
