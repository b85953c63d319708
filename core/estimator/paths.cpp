#include "core/estimator/paths.hpp"

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/estimator/enumeration/outcomes.hpp"
#include "core/support/error.hpp"

namespace hardgrad {
namespace {

/// The entries that rows have in a column of `x` [R, D], as rows of [R D, 1].
template <class T>
std::pair<Var<T>, std::vector<int>> entries(Var<T> x, const std::vector<int>& row, int column) {
  const int D = static_cast<int>(x.cols());
  if (D == 1) return {x, row};
  auto index = row;
  for (int& i : index) i = i * D + column;
  return {reshape(x, 1), index};
}

/// f(cost, index): each cost the paths pass, and the rows of it they pass [N].
template <class T, class F>
void for_costs(const Episode<T>& episode, const Paths& paths, bool with_root, F&& f) {
  for (const auto& cost : episode.costs()) {
    if (cost.rows->is_root()) {
      if (with_root) f(cost.loss, paths.example);
      continue;
    }
    const int t = cost.rows->step - paths.from;
    if (t < 0 || t >= static_cast<int>(paths.row.size())) continue;
    const auto [loss, index] = entries(loss_of_paths(episode, cost), paths.row[t], paths.column);
    f(loss, index);
  }
}

/// f(log probability, index): likewise of the choices.
template <class T, class F>
void for_choices(Episode<T>& episode, const Paths& paths, F&& f) {
  for (std::size_t t = 0; t < paths.row.size(); ++t) {
    const auto [log_p, index] = entries(episode.log_probability(paths.from + static_cast<int>(t)), paths.row[t], paths.column);
    f(log_p, index);
  }
}

template <class T>
void accumulate(Var<T> x, const std::vector<int>& index, std::vector<double>& total) {
  const T* value = x.value().data;
  for (std::size_t n = 0; n < total.size(); ++n) total[n] += static_cast<double>(value[index[n]]);
}

}  // namespace

template <class T>
Paths paths_to(const Episode<T>& episode, int step) {
  const auto& last = *episode.steps()[step].choice.rows;
  int from = step;
  for (const auto* rows = last.origin.get(); !rows->is_root(); rows = rows->origin.get())
    if (rows->step != --from) throw Bug("a choice does not go on from the one before");
  Paths paths{.from = from, .example = last.example, .row = {}};
  paths.row.assign(step - from + 1, std::vector<int>(last.size()));
  for (std::size_t n = 0; n < last.size(); ++n) {
    int r = static_cast<int>(n);
    for (const auto* rows = &last; !rows->is_root(); rows = rows->origin.get()) {
      paths.row[rows->step - from][n] = r;
      r = rows->parent[r];
    }
  }
  return paths;
}

template <class T>
Var<T> path_cost(const Episode<T>& episode, const Paths& paths, bool with_root) {
  auto total = episode.tape().constant(paths.size(), 1);
  for_costs(episode, paths, with_root, [&](Var<T> loss, const std::vector<int>& index) {
    total = add(total, gather_rows(loss, std::span<const int>(index)));
  });
  return total;
}

template <class T>
std::vector<double> path_cost_values(const Episode<T>& episode, const Paths& paths, bool with_root) {
  std::vector<double> total(paths.size());
  for_costs(episode, paths, with_root, [&](Var<T> loss, const std::vector<int>& index) { accumulate(loss, index, total); });
  return total;
}

template <class T>
Var<T> path_log_probability(Episode<T>& episode, const Paths& paths) {
  Var<T> total = episode.tape().constant(paths.size(), 1);
  for_choices(episode, paths, [&](Var<T> log_p, const std::vector<int>& index) {
    total = add(total, gather_rows(log_p, std::span<const int>(index)));
  });
  return total;
}

template <class T>
std::vector<double> path_log_probability_values(Episode<T>& episode, const Paths& paths) {
  std::vector<double> total(paths.size());
  for_choices(episode, paths, [&](Var<T> log_p, const std::vector<int>& index) { accumulate(log_p, index, total); });
  return total;
}

#define HARDGRAD_INSTANTIATE(T)                                                         \
  template Paths paths_to(const Episode<T>&, int);                                      \
  template Var<T> path_cost(const Episode<T>&, const Paths&, bool);                     \
  template std::vector<double> path_cost_values(const Episode<T>&, const Paths&, bool); \
  template Var<T> path_log_probability(Episode<T>&, const Paths&);                      \
  template std::vector<double> path_log_probability_values(Episode<T>&, const Paths&);
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)

}  // namespace hardgrad
