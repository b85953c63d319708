#include "core/choice/categorical.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/autodiff/softmax.hpp"
#include "core/choice/distribution.hpp"
#include "core/random/column_draws.hpp"
#include "core/support/error.hpp"

namespace hardgrad {

std::vector<int> parent_choices_of(const Rows& rows, int columns) {
  if (columns == 1) return rows.parent;
  std::vector<int> parent(rows.size() * columns);
  auto to = parent.begin();
  for (int parent : rows.parent)
    for (int d = 0; d < columns; ++d) *to++ = parent * columns + d;
  return parent;
}

namespace {

template <class T>
const Categorical<T>& same_kind(const Distribution<T>& other) {
  const auto* categories = dynamic_cast<const Categorical<T>*>(&other);
  if (!categories) throw Bug("a categorical distribution is compared with a distribution of another kind");
  return *categories;
}

}  // namespace

template <class T>
Categorical<T>::Categorical(Var<T> logits, std::vector<int> options, int columns)
    : Distribution<T>(options.size() / columns, columns), logits_(logits), options_(std::move(options)) {
  if (options_.size() % columns != 0 || logits.rows() != options_.size())
    throw Bug("a site's logits and options must have one row per column of each asking row");
}

template <class T>
Var<T> Categorical<T>::log_p() const {
  if (!log_p_) log_p_ = log_softmax(logits_, std::span<const int>(options_));
  return log_p_;
}

template <class T>
DistributionPtr<T> Categorical<T>::with(Var<T> logits) const {
  return categorical(logits, options_, this->columns());
}

template <class T>
bool Categorical<T>::chooses(std::size_t row) const {
  const auto first = options_.begin() + static_cast<std::ptrdiff_t>(row * this->columns());
  return std::any_of(first, first + this->columns(), [](int n) { return n > 1; });
}

template <class T>
std::vector<double> Categorical<T>::parameters_at(std::size_t row, std::size_t column) const {
  const std::size_t choice = row * this->columns() + column;
  const T* first = log_p().value().row(choice);
  return {first, first + options_[choice]};
}

template <class T>
std::vector<int> Categorical<T>::parent_choices(const Rows& rows) const {
  return parent_choices_of(rows, this->columns());
}

template <class T>
Var<T> Categorical<T>::over_columns(Var<T> of_cells) const {
  return group_sums(of_cells, this->columns());
}

template <class T>
std::vector<int> Categorical<T>::draw(const Rows& rows, const Noise& noise, const std::vector<bool>* skip) const {
  const std::size_t D = this->columns();
  std::vector<int> option(rows.size() * D);
  const auto log_p = this->log_p().value();
  const std::size_t S = log_p.cols;
  std::span<double> p;  // of all asking rows, unless columns are drawn together
  if (D < fewest_columns || S > most_options) {
    p = logits_.tape->template scratch<double>(log_p.size());
    probabilities(std::span(log_p.data, log_p.size()), p);
  }
  std::vector<Draw> where;
  where.reserve(rows.size());
  for (std::size_t r = 0, next; r < rows.size(); r = next) {
    const int parent = rows.parent[r];
    where.assign(1, noise.at(rows, r));
    for (next = r + 1; next < rows.size() && rows.parent[next] == parent; ++next) where.push_back(noise.at(rows, next));
    if (skip && (*skip)[rows.example[r]]) continue;
    const std::size_t choice = parent * D, n = next - r;
    const auto options = std::span(options_).subspan(choice, D);
    const auto to = std::span(option).subspan(r * D, n * D);
    if (p.empty())
      draw_categories(std::span<const T>(log_p.row(choice), D * S), S, options, noise.random, where, to);
    else
      for (std::size_t i = 0; i < n; ++i)
        noise.random.categorical(p.subspan(choice * S, D * S), S, options, where[i], to.subspan(i * D, D));
  }
  return option;
}

template <class T>
Choice<T> Categorical<T>::sample(Tape<T>&, const RowsPtr& rows, const Noise& noise) const {
  return {rows, ChosenOptions{draw(*rows, noise)}};
}

template <class T>
Choice<T> Categorical<T>::mode(Tape<T>&, const RowsPtr& rows) const {
  const auto p = log_p().value();
  auto option = parent_choices(*rows);
  for (int& o : option) {
    const T* first = p.row(o);
    o = static_cast<int>(std::max_element(first, first + options_[o]) - first);
  }
  return {rows, ChosenOptions{std::move(option)}};
}

template <class T>
Choice<T> Categorical<T>::mean(const RowsPtr& rows) const {
  auto weights = probabilities(log_p());
  if (rows->size() != this->rows()) weights = gather_rows(weights, std::span<const int>(parent_choices(*rows)));
  return {rows, Relaxed<T>{{}, weights}};
}

template <class T>
Choice<T> Categorical<T>::enumerate(Tape<T>&, const RowsPtr& asking, int step, const Visits& visits) const {
  const std::size_t D = this->columns(), asks = asking->size();
  std::vector<int> visited;  // the visited options of all choices, concatenated
  std::vector<std::size_t> first(asks * D + 1);
  visited.reserve(std::accumulate(options_.begin(), options_.end(), std::size_t{0}));
  for (std::size_t c = 0; c < asks * D; ++c) {
    visits.options(static_cast<int>(c), visited);
    first[c + 1] = visited.size();
  }
  auto sets = enumerated_sets(
      asks, D, [&](std::size_t choice) { return static_cast<double>(first[choice + 1] - first[choice]); }, step, visits);
  for (std::size_t i = 0; i < sets.answer.size(); ++i)
    sets.answer[i] = visited[first[sets.parent[i / D] * D + i % D] + sets.answer[i]];
  return {.rows = Rows::after(asking, std::move(sets.parent), step),
          .answer = ChosenOptions{std::move(sets.answer)},
          .side_by_side = visits.side_by_side,
          .padding_mask = std::move(sets.padding_mask)};
}

template <class T>
Var<T> Categorical<T>::log_probability(const Choice<T>& choice) const {
  return pick_in_groups(log_p(), this->columns(), std::span<const int>(choice.rows->parent),
                        std::span<const int>(choice.option()));
}

template <class T>
Var<T> Categorical<T>::log_probability_of_rows(const Choice<T>& choice) const {
  return sums_in_groups(log_p(), this->columns(), std::span<const int>(choice.rows->parent),
                        std::span<const int>(choice.option()));
}

template <class T>
std::vector<double> Categorical<T>::squared_scores(const Choice<T>& choice) const {  // |onehot(z) - p|^2
  const auto log_p = this->log_p().value();
  const auto from = parent_choices(*choice.rows);
  const auto& option = choice.option();
  std::vector<double> result(from.size());
  for (std::size_t c = 0; c < from.size(); ++c) {
    double others = 0;  // 1 - p of the chosen option, summed from the others so that it does not cancel
    for (int i = 0; i < options_[from[c]]; ++i) {
      if (i == option[c]) continue;
      const double p = std::exp(static_cast<double>(log_p(from[c], i)));
      result[c] += p * p;
      others += p;
    }
    result[c] += others * others;
  }
  return result;
}

template <class T>
Var<T> Categorical<T>::entropy() const {
  return over_columns(hardgrad::entropy(log_p()));
}

template <class T>
Var<T> Categorical<T>::divergence(const Distribution<T>& other) const {
  return over_columns(kl_divergence(log_p(), same_kind(other).log_p()));
}

template <class T>
Var<T> Categorical<T>::log_ratio(const Choice<T>& choice, const Distribution<T>& other) const {
  const auto from = parent_choices(*choice.rows);
  return reshape(hardgrad::log_ratio(choice.weights(), log_p(), same_kind(other).log_p(), std::span<const int>(from)),
                 this->columns());
}

template <class T>
std::shared_ptr<const Categorical<T>> normalised(Var<T> log_p, const std::vector<int>& options) {
  for (std::size_t r = 0; r < options.size(); ++r) {
    double mass = 0;
    for (int i = 0; i < options[r]; ++i) mass += std::exp(static_cast<double>(log_p.value()(r, i)));
    if (std::abs(mass - 1) > 1e-3)
      throw Bug(fmt::format("the probabilities of a choice sum to {:.6g}, not to 1", mass));  // the loss reports a NaN
  }
  return categorical(log_p, options);
}

template <class T>
std::shared_ptr<const Categorical<T>> bernoulli(Var<T> phi) {
  const auto logits = beside_zero(phi);
  return categorical(logits, std::vector<int>(logits.rows(), 2), static_cast<int>(phi.cols()));
}

template std::shared_ptr<const Categorical<float>> normalised(Var<float>, const std::vector<int>&);
template std::shared_ptr<const Categorical<double>> normalised(Var<double>, const std::vector<int>&);
template std::shared_ptr<const Categorical<float>> bernoulli(Var<float>);
template std::shared_ptr<const Categorical<double>> bernoulli(Var<double>);
template class Categorical<float>;
template class Categorical<double>;

}  // namespace hardgrad
