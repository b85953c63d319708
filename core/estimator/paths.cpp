#include "core/estimator/paths.hpp"

#include <numeric>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/estimator/enumeration/outcomes.hpp"
#include "core/support/error.hpp"

namespace hardgrad {
namespace {

/// The entries of `x` [R, D] at these rows and one column, as rows of [R D, 1].
template <class T>
std::pair<Var<T>, std::vector<int>> entries(Var<T> x, const std::vector<int>& row, int column) {
  const int D = static_cast<int>(x.cols());
  if (D == 1) return {x, row};
  auto index = row;
  for (int& i : index) i = i * D + column;
  return {reshape(x, 1), index};
}

/// Calls f(cost, index) for each cost on the paths; `index`: the row of that cost on each path [N].
template <class T, class F>
void for_costs(const Episode<T>& episode, const Paths& paths, bool with_root, F&& f) {
  for (const auto& cost : episode.costs()) {
    const auto* row = paths.through(*cost.rows);
    if (!row || (cost.rows->is_root() && !with_root)) continue;
    const auto [loss, index] = entries(loss_of_paths(episode, cost), *row, paths.column);
    f(loss, index);
  }
}

/// Calls f(log probability, index), likewise for the choices.
template <class T, class F>
void for_choices(Episode<T>& episode, const Paths& paths, F&& f) {
  for (std::size_t t = 0; t < paths.row.size(); ++t) {
    const auto [log_p, index] = entries(episode.log_probability(paths.from + static_cast<int>(t)), paths.row[t], paths.column);
    f(log_p, index);
  }
}

}  // namespace

const std::vector<int>* Paths::through(const Rows& rows) const {
  if (rows.is_root()) return &example;
  const int t = rows.step - from;
  return t >= 0 && t < static_cast<int>(row.size()) ? &row[t] : nullptr;
}

template <class T>
Paths paths_side_by_side(const Episode<T>& episode, int copies) {
  Paths paths;
  paths.example.resize(static_cast<std::size_t>(copies) * episode.examples());
  std::iota(paths.example.begin(), paths.example.end(), 0);
  paths.row.assign(episode.steps().size(), paths.example);
  for (int& n : paths.example) n /= copies;
  return paths;
}

template <class T>
void accumulate(Var<T> x, const std::vector<int>& row, std::span<double> total, double weight) {
  const T* value = x.value().data;
  const std::size_t columns = total.size() / row.size(), own = x.cols();
  for (std::size_t n = 0; n < row.size(); ++n) {
    const T* from = value + row[n] * own;
    double* const to = &total[n * columns];
    if (own == 1)
      for (std::size_t d = 0; d < columns; ++d) to[d] += weight * static_cast<double>(from[0]);
    else
      for (std::size_t d = 0; d < columns; ++d) to[d] += weight * static_cast<double>(from[d]);
  }
}

template <class T>
Paths paths_to(const Episode<T>& episode, int step) {
  const auto& last = *episode.steps()[step].choice.rows;
  int from = step;
  for (const auto* rows = last.origin.get(); !rows->is_root(); rows = rows->origin.get())
    if (rows->step != --from) throw Bug("a choice does not continue the previous one");
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
  for_costs(episode, paths, with_root, [&](Var<T> loss, const std::vector<int>& index) { accumulate<T>(loss, index, total); });
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
  for_choices(episode, paths, [&](Var<T> log_p, const std::vector<int>& index) { accumulate<T>(log_p, index, total); });
  return total;
}

#define HARDGRAD_INSTANTIATE(T)                                                         \
  template Paths paths_to(const Episode<T>&, int);                                      \
  template Paths paths_side_by_side(const Episode<T>&, int);                            \
  template void accumulate(Var<T>, const std::vector<int>&, std::span<double>, double); \
  template Var<T> path_cost(const Episode<T>&, const Paths&, bool);                     \
  template std::vector<double> path_cost_values(const Episode<T>&, const Paths&, bool); \
  template Var<T> path_log_probability(Episode<T>&, const Paths&);                      \
  template std::vector<double> path_log_probability_values(Episode<T>&, const Paths&);
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)
#undef HARDGRAD_INSTANTIATE

}  // namespace hardgrad
