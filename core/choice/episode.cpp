#include "core/choice/episode.hpp"

#include <cmath>
#include <numeric>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/softmax.hpp"
#include "core/support/error.hpp"

namespace hardgrad {

template <class T>
int Chooser<T>::observe(std::span<const double>, int, int) {
  throw Bug("this chooser draws no observations");
}

template <class T>
Choice<T> Episode<T>::choose(Site<T> site) {
  if (site.options.size() != site.rows->size() || site.logits.rows() != site.rows->size())
    throw Bug("a site's logits and options must have one row per asking row");
  if (tape_.logits_only()) tape_.watch(site.logits);
  Question<T> question;
  question.step = static_cast<int>(steps_.size());
  question.log_prior = log_softmax(site.logits, std::span<const int>(site.options));
  if (chooser_.wants_proposal()) {
    if (!site.proposal) throw Bug("a proposal is wanted of a model built without a posterior");
    question.log_proposal = log_softmax(site.proposal(), std::span<const int>(site.options));
  }
  question.site = std::move(site);
  auto choice = chooser_.choose(tape_, question);
  choice.apart = apart_;
  steps_.push_back({std::move(question), choice});
  return choice;
}

template <class T>
std::vector<int> Episode<T>::observe(std::span<const int> example, Var<T> logits, int place) {
  const std::vector<int> labels(example.size(), static_cast<int>(logits.cols()));
  const auto log_p = log_softmax(logits, std::span<const int>(labels)).value();
  if (observed_.size() <= static_cast<std::size_t>(place)) observed_.resize(place + 1, std::vector<int>(examples(), -1));
  std::vector<int> drawn(example.size());
  std::vector<double> p(log_p.cols);
  for (std::size_t r = 0; r < drawn.size(); ++r) {
    for (std::size_t i = 0; i < p.size(); ++i) p[i] = std::exp(static_cast<double>(log_p(r, i)));
    observed_[place][example[r]] = drawn[r] = chooser_.observe(p, example[r], place);
  }
  return drawn;
}

template <class T>
Var<T> Episode<T>::log_probability(int step, Law law) {
  const auto& [question, choice] = steps_.at(step);
  for (const auto& made : picked_)
    if (made.rows == choice.rows.get() && made.law == law) return made.value;
  if (choice.option.empty()) throw Bug("a relaxed choice has no log probability");
  auto value = pick(question.log_law(law), std::span<const int>(choice.rows->parent),
                    std::span<const int>(choice.option));
  picked_.push_back({choice.rows.get(), law, value});
  return value;
}

template <class T>
Var<T> Episode<T>::path_log_probability(const RowsPtr& rows, Law law) {
  if (rows->is_root()) return tape_.constant(rows->size(), 1);
  for (const auto& made : paths_)
    if (made.rows == rows.get() && made.law == law) return made.value;
  auto value = log_probability(rows->step, law);
  if (!rows->origin->is_root())
    value = add(value, gather_rows(path_log_probability(rows->origin, law), std::span<const int>(rows->parent)));
  paths_.push_back({rows.get(), law, value});
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

template class Chooser<float>;
template class Chooser<double>;
template class Episode<float>;
template class Episode<double>;

}  // namespace hardgrad
