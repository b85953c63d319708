#include "core/estimator/paths.hpp"

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/support/error.hpp"

namespace hardgrad {
namespace {

/// f(cost, index): each cost the paths pass, and the rows of it they pass [N].
template <class T, class F>
void for_costs(const Episode<T>& episode, const Paths& paths, bool with_root, F&& f) {
  for (const auto& cost : episode.costs()) {
    if (cost.rows->is_root()) {
      if (with_root) f(cost.loss, paths.example);
      continue;
    }
    const int t = cost.rows->step - paths.from;
    if (t >= 0 && t < static_cast<int>(paths.row.size())) f(cost.loss, paths.row[t]);
  }
}

template <class T>
void accumulate(Var<T> x, const std::vector<int>& index, std::vector<double>& total) {
  const T* value = x.value().data;
  for (std::size_t n = 0; n < total.size(); ++n) total[n] += static_cast<double>(value[index[n]]);
}

}  // namespace

template <class T>
Paths paths_to_leaves(const Episode<T>& episode) {
  const auto& last = *episode.steps().back().choice.rows;
  Paths paths{0, last.example, std::vector<std::vector<int>>(episode.steps().size(), std::vector<int>(last.size()))};
  for (std::size_t n = 0; n < last.size(); ++n) {
    int r = static_cast<int>(n);
    for (const auto* rows = &last; !rows->is_root(); rows = rows->origin.get()) {
      paths.row.at(rows->step)[n] = r;
      r = rows->parent[r];
      if (rows->origin->is_root() != (rows->step == 0)) throw Bug("a choice does not go on from the one before");
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
  for (std::size_t t = 0; t < paths.row.size(); ++t)
    total =
        add(total, gather_rows(episode.log_probability(paths.from + static_cast<int>(t)), std::span<const int>(paths.row[t])));
  return total;
}

template <class T>
std::vector<double> path_log_probability_values(Episode<T>& episode, const Paths& paths) {
  std::vector<double> total(paths.size());
  for (std::size_t t = 0; t < paths.row.size(); ++t)
    accumulate(episode.log_probability(paths.from + static_cast<int>(t)), paths.row[t], total);
  return total;
}

#define HARDGRAD_INSTANTIATE(T)                                                         \
  template Paths paths_to_leaves(const Episode<T>&);                                    \
  template Var<T> path_cost(const Episode<T>&, const Paths&, bool);                     \
  template std::vector<double> path_cost_values(const Episode<T>&, const Paths&, bool); \
  template Var<T> path_log_probability(Episode<T>&, const Paths&);                      \
  template std::vector<double> path_log_probability_values(Episode<T>&, const Paths&);
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)

}  // namespace hardgrad
