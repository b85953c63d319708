#include "core/choice/episode.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/autodiff/softmax.hpp"
#include "core/support/error.hpp"

namespace hardgrad {

template <class T>
std::vector<int> Question<T>::cells(const Rows& rows) const {
  const int D = site.columns;
  if (D == 1) return rows.parent;
  std::vector<int> cell(rows.size() * D);
  for (std::size_t c = 0; c < cell.size(); ++c) cell[c] = rows.parent[c / D] * D + static_cast<int>(c) % D;
  return cell;
}

template <class T>
bool Question<T>::chooses(std::size_t row) const {
  const auto first = site.options.begin() + static_cast<std::ptrdiff_t>(row * site.columns);
  return std::any_of(first, first + site.columns, [](int n) { return n > 1; });
}

template <class T>
void Episode<T>::cost(RowsPtr rows, Var<T> loss) {
  if (loss.cols() == 1) {
    costs_.push_back({std::move(rows), loss});
    return;
  }
  if (rows->is_root() || static_cast<int>(loss.cols()) != steps_.at(rows->step).question.site.columns)
    throw Bug("a cost by column has one column for each of the choice that made its rows");
  costs_.push_back({std::move(rows), row_sums(loss), loss});
}

template <class T>
Choice<T> Episode<T>::choose(Site<T> site) {
  using enum TargetTerms::Divergence;
  const auto cells = site.rows->size() * site.columns;
  if (site.options.size() != cells || site.logits.rows() != cells)
    throw Bug("a site's logits and options must have one row per column of each asking row");
  if (tape_.logits_only()) tape_.watch(site.logits);
  Question<T> question;
  question.step = static_cast<int>(steps_.size());
  const std::span<const int> options(site.options);
  question.logits = site.logits;
  question.log_p = question.log_prior = log_softmax(site.logits, options);
  if (terms_.drawn_from == Distribution::posterior) {
    if (!site.posterior) throw Bug("a posterior is wanted of a model built without one");
    question.logits = site.posterior();
    question.log_p = log_softmax(question.logits, options);
  }
  question.site = std::move(site);
  if (terms_.divergence == analytic)
    cost(question.site.rows, group_sums(kl_divergence(question.log_p, question.log_prior), question.site.columns));
  auto choice = chooser_.choose(tape_, question);
  choice.apart = apart_;
  steps_.push_back({std::move(question), choice});
  if (terms_.divergence == sampled) {
    const auto& asked = steps_.back().question;
    const auto from = asked.cells(*choice.rows);
    cost(choice.rows, choice.hard()
                          ? subtract(log_probability_by_column(asked.step, Distribution::posterior),
                                     log_probability_by_column(asked.step, Distribution::prior))
                          : reshape(log_ratio(choice.weights, asked.log_p, asked.log_prior, std::span<const int>(from)),
                                    asked.site.columns));
  }
  return choice;
}

template <class T>
Var<T> Episode<T>::log_probability(int step, Distribution of) {
  const auto& [question, choice] = steps_.at(step);
  for (const auto& made : picked_)
    if (made.rows == choice.rows.get() && made.of == of) return made.value;
  auto value = log_probability_by_column(step, of);
  if (!choice.side_by_side && question.site.columns > 1) value = row_sums(value);
  if (!choice.spare.empty()) {  // what a column has no answer for has no probability
    auto nothing = tape_.constant(value.rows(), value.cols());
    for (std::size_t c = 0; c < choice.spare.size(); ++c)
      if (choice.spare[c]) tape_.mutable_value(nothing).data[c] = -std::numeric_limits<T>::infinity();
    value = add(value, nothing);
  }
  picked_.push_back({choice.rows.get(), of, value});
  return value;
}

template <class T>
Var<T> Episode<T>::log_probability_by_column(int step, Distribution of) {
  const auto& [question, choice] = steps_.at(step);
  for (const auto& made : picked_by_column_)
    if (made.rows == choice.rows.get() && made.of == of) return made.value;
  if (choice.option.empty()) throw Bug("a relaxed choice has no log probability");
  if (of == Distribution::posterior && terms_.drawn_from == Distribution::prior) throw Bug("this run has no posterior");
  const auto log_p = of == terms_.drawn_from ? question.log_p : question.log_prior;
  const std::span<const int> option(choice.option);
  auto value = question.site.columns == 1 ? pick(log_p, std::span<const int>(choice.rows->parent), option)
                                          : pick(log_p, std::span<const int>(question.cells(*choice.rows)), option);
  value = reshape(value, question.site.columns);
  picked_by_column_.push_back({choice.rows.get(), of, value});
  return value;
}

template <class T>
Var<T> Episode<T>::path_log_probability(const RowsPtr& rows, Distribution of) {
  if (rows->is_root()) return tape_.constant(rows->size(), 1);
  for (const auto& made : paths_)
    if (made.rows == rows.get() && made.of == of) return made.value;
  auto value = log_probability(rows->step, of);
  if (!rows->origin->is_root()) {
    if (value.cols() > 1) throw Bug("columns side by side must be asked for from the root");
    value = add(value, gather_rows(path_log_probability(rows->origin, of), std::span<const int>(rows->parent)));
  }
  paths_.push_back({rows.get(), of, value});
  return value;
}

template <class T>
std::vector<double> Episode<T>::cost_weights(const RowsPtr& rows) {
  std::vector<double> weights;
  if (cost_weights_ == CostWeights::unknown) return weights;
  weights.assign(rows->size(), 1.0 / static_cast<double>(rows->size()));
  if (cost_weights_ == CostWeights::equal) return weights;
  const auto log_p = path_log_probability(rows).value();
  for (std::size_t r = 0; r < weights.size(); ++r) weights[r] = std::exp(static_cast<double>(log_p.data[r]));
  return weights;
}

template <class T>
std::size_t Episode<T>::rows_evaluated() const {
  std::size_t rows = steps_.empty() ? root_->size() : 0;
  for (const auto& step : steps_) rows += step.choice.rows->size();
  return rows;
}

template <class T>
std::size_t Episode<T>::attention_values() const {
  std::size_t values = 0;
  for (const auto& step : steps_) {
    const auto& options = step.question.site.options;
    values += std::accumulate(options.begin(), options.end(), std::size_t{0});
  }
  return values;
}

template struct Question<float>;
template struct Question<double>;
template class Episode<float>;
template class Episode<double>;

}  // namespace hardgrad
