#include "core/estimator/enumeration/outcomes.hpp"

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/support/error.hpp"

namespace hardgrad {

template <class T>
std::vector<RowsPtr> leaf_sets(const Episode<T>& episode) {
  std::vector<RowsPtr> leaves;
  for (const auto& step : episode.steps()) {
    const auto& rows = step.choice.rows;
    const bool continued = std::any_of(episode.steps().begin(), episode.steps().end(),
                                       [&](const auto& later) { return later.question.site.rows == rows; });
    if (!continued) leaves.push_back(rows);
  }
  return leaves;
}

template <class T>
Var<T> loss_of_paths(const Episode<T>& episode, const typename Episode<T>::Cost& cost) {
  if (cost.rows->is_root() || !episode.steps()[cost.rows->step].choice.side_by_side) return cost.loss;
  if (!cost.by_column) throw Bug("columns declared to have separate costs share one");
  return cost.by_column;
}

template <class T>
Var<T> path_loss(const Episode<T>& episode, const RowsPtr& rows, std::map<const Rows*, Var<T>>& made) {
  if (rows->is_root()) return {};
  if (auto it = made.find(rows.get()); it != made.end()) return it->second;
  Var<T> loss;
  const auto include = [&](Var<T> more) { loss = loss ? add(loss, more) : more; };
  for (const auto& cost : episode.costs())
    if (cost.rows == rows) include(loss_of_paths(episode, cost));
  if (auto before = path_loss(episode, rows->origin, made)) include(gather_rows(before, std::span<const int>(rows->parent)));
  return made[rows.get()] = loss;
}

namespace {

template <class T>
double at(Var<T> values, std::size_t choice) {
  return values ? static_cast<double>(values.value().data[choice]) : 0;
}

}  // namespace

template <class T>
std::vector<typename Outcomes<T>::Leaves> Outcomes<T>::ends_of(Episode<T>& episode) {
  const bool proposed = episode.terms().drawn_from == DrawnFrom::posterior;
  std::map<const Rows*, Var<T>> made;
  std::vector<Leaves> ends;
  for (const auto& rows : leaf_sets(episode)) {
    Leaves leaves{.rows = rows,
                  .log_p = episode.path_log_probability(rows, DrawnFrom::prior),
                  .log_q = proposed ? episode.path_log_probability(rows, DrawnFrom::posterior) : Var<T>{},
                  .loss = path_loss(episode, rows, made)};
    const auto& choice = episode.steps()[rows->step].choice;
    if (!choice.padding_mask.empty()) leaves.padding_mask = &choice.padding_mask;
    for (; leaves.column < leaves.log_p.cols(); ++leaves.column) ends.push_back(leaves);
  }
  return ends;
}

template <class T>
std::vector<Outcomes<T>> Outcomes<T>::parts(Episode<T>& episode) {
  std::vector<Outcomes> result;
  for (const auto& leaves : ends_of(episode)) result.push_back(Outcomes(episode, {leaves}, result.empty()));
  return result;
}

template <class T>
Outcomes<T>::Outcomes(Episode<T>& episode, std::vector<Leaves> ends, bool with_root)
    : episode_(episode), leaves_(std::move(ends)), of_(episode.examples()) {
  for (auto& outcomes : of_) outcomes.push_back({});
  for (const auto& cost : episode.costs())
    if (with_root && cost.rows->is_root()) {
      root_.push_back(cost.loss);
      for (int b = 0; b < examples(); ++b) of_[b][0].loss += at(cost.loss, b);
    }
  // Each leaf set multiplies the number of an example's outcomes by the number of its leaves.
  for (const auto& leaves : leaves_) {
    std::vector<std::vector<Outcome>> grown(of_.size());
    for (int r = 0; r < static_cast<int>(leaves.rows->size()); ++r) {
      const auto choice = leaves.choice(r);
      if (leaves.padding_mask && (*leaves.padding_mask)[choice]) continue;
      const int b = leaves.rows->example[r];
      for (auto outcome : of_[b]) {
        outcome.rows.push_back(r);
        outcome.log_p += at(leaves.log_p, choice);
        outcome.log_q += at(leaves.log_q, choice);
        outcome.loss += at(leaves.loss, choice);
        grown[b].push_back(std::move(outcome));
      }
    }
    of_ = std::move(grown);
  }
}

template <class T>
Var<T> Outcomes<T>::surrogate(const std::vector<Slopes>& slopes) const {
  const double share = 1.0 / examples();
  auto total = episode_.tape().constant(1, 1);
  const auto include = [&](Var<T> column, const std::vector<double>& weight) {
    if (column) total = add(total, weighted_sum(column, std::span<const double>(weight)));
  };
  std::vector<double> root(of_.size());
  for (std::size_t l = 0; l < leaves_.size(); ++l) {
    Slopes leaf(leaves_[l].log_p.value().size());
    for (std::size_t b = 0; b < of_.size(); ++b)
      for (std::size_t i = 0; i < of_[b].size(); ++i) {
        const auto r = leaves_[l].choice(of_[b][i].rows[l]);
        leaf.log_p[r] += share * slopes[b].log_p[i];
        leaf.log_q[r] += share * slopes[b].log_q[i];
        leaf.loss[r] += share * slopes[b].loss[i];
      }
    include(leaves_[l].log_p, leaf.log_p);
    include(leaves_[l].log_q, leaf.log_q);
    include(leaves_[l].loss, leaf.loss);
  }
  for (std::size_t b = 0; b < of_.size(); ++b)
    for (double slope : slopes[b].loss) root[b] += share * slope;
  for (const auto& loss : root_) include(loss, root);
  return total;
}

#define HARDGRAD_INSTANTIATE(T)                                                                 \
  template std::vector<RowsPtr> leaf_sets(const Episode<T>&);                                   \
  template Var<T> path_loss(const Episode<T>&, const RowsPtr&, std::map<const Rows*, Var<T>>&); \
  template Var<T> loss_of_paths(const Episode<T>&, const typename Episode<T>::Cost&);           \
  template class Outcomes<T>;
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)
#undef HARDGRAD_INSTANTIATE

}  // namespace hardgrad
