#include "core/choice/episode.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/support/error.hpp"

namespace hardgrad {
namespace {

template <class T>
void require_alike(const Site<T>& site, const DistributionPtr<T>& other) {
  const auto& prior = *site.prior;
  if (other && (other->kind() != prior.kind() || other->rows() != prior.rows() || other->columns() != prior.columns()))
    throw Bug("the distributions of a site must have its prior's kind and size");
}

}  // namespace

template <class T>
void Episode<T>::cost(RowsPtr rows, Var<T> loss) {
  if (loss.cols() == 1) {
    costs_.push_back({std::move(rows), loss});
    return;
  }
  if (rows->is_root() || static_cast<int>(loss.cols()) != steps_.at(rows->step).question.site.columns)
    throw Bug("a cost by column must have as many columns as the choice that made its rows");
  costs_.push_back({std::move(rows), row_sums(loss), loss});
}

template <class T>
void Episode<T>::diverge(const RowsPtr& rows, Var<T> value, double weight) {
  cost(rows, weight == 1 ? value : affine(value, static_cast<T>(weight)));
  costs_.back().divergence = true;
}

template <class T>
void Episode<T>::refer_to(std::shared_ptr<const Episode> other) {
  for (std::size_t t = 0; t < steps_.size(); ++t) {
    auto& site = steps_[t].question.site;
    site.reference = other->steps().at(t).question.site.prior;
    require_alike(site, site.reference);
  }
  refers_to_ = std::move(other);
}

template <class T>
void Episode<T>::add_divergence_from_reference() {
  if (terms_.to_reference == 0) return;
  for (const auto& [question, choice] : steps_)
    diverge(question.site.rows, question.site.prior->divergence(*question.of(DrawnFrom::reference)), terms_.to_reference);
}

template <class T>
Choice<T> Episode<T>::choose(Site<T> site) {
  using enum TargetTerms::Divergence;
  if (!site.prior || site.prior->rows() != site.rows->size()) throw Bug("a site's prior must have one row per asking row");
  Question<T> question;
  question.step = static_cast<int>(steps_.size());
  if (behaves_as_) site.behaviour = behaves_as_->steps().at(steps_.size()).question.site.prior;
  question.nodes = nodes_;
  question.distribution = site.prior;
  if (terms_.drawn_from == DrawnFrom::posterior) {
    if (!site.posterior) throw Bug("a posterior is needed, but the model was built without one");
    question.distribution = site.posterior();
  } else if (terms_.drawn_from == DrawnFrom::behaviour && site.behaviour) {
    question.distribution = site.behaviour;
  }
  for (const auto* other : {&question.distribution, &site.behaviour, &site.reference}) require_alike(site, *other);
  if (tape_.logits_only()) {
    const auto watch = [&](const Distribution<T>& distribution) {
      for (const auto& [name, parameter] : distribution.parameters()) tape_.watch(parameter);
    };
    watch(*site.prior);
    if (terms_.drawn_from == DrawnFrom::posterior) watch(*question.distribution);
  }
  site.columns = site.prior->columns();
  question.site = std::move(site);
  for (const auto* distribution : {question.site.prior.get(), question.distribution.get()}) distribution->prepare();
  if (terms_.divergence == analytic)
    diverge(question.site.rows, question.distribution->divergence(*question.site.prior), terms_.divergence_weight);
  auto choice = handler_.choose(tape_, question);
  choice.unshared = unshared_;
  steps_.push_back({std::move(question), choice});
  if (terms_.divergence == sampled) {
    const auto& asked = steps_.back().question;
    diverge(choice.rows,
            choice.has_probability() && choice.hard() ? subtract(log_probability_by_column(asked.step, DrawnFrom::posterior),
                                                                 log_probability_by_column(asked.step, DrawnFrom::prior))
                                                      : asked.distribution->log_ratio(choice, *asked.site.prior),
            terms_.divergence_weight);
  }
  return choice;
}

template <class T>
const Distribution<T>& Episode<T>::with_probability(int step, DrawnFrom of) const {
  const auto& [question, choice] = steps_.at(step);
  if (!choice.has_probability()) throw Bug("an expected choice has no log probability");
  if (of == DrawnFrom::posterior && terms_.drawn_from != DrawnFrom::posterior) throw Bug("this run has no posterior");
  return *question.of(of);
}

template <class T>
Var<T> Episode<T>::log_probability(int step, DrawnFrom of) {
  const auto& [question, choice] = steps_.at(step);
  for (const auto& made : picked_)
    if (made.rows == choice.rows.get() && made.of == of) return made.value;
  const bool joint = !choice.side_by_side && question.site.columns > 1;
  const auto same = [&, &choice = choice](const CachedLogProb& made) {
    return made.rows == choice.rows.get() && made.of == of;
  };
  auto value = joint && std::none_of(picked_by_column_.begin(), picked_by_column_.end(), same)
                   ? with_probability(step, of).log_probability_of_rows(choice)
                   : log_probability_by_column(step, of);
  if (joint && value.cols() > 1) value = row_sums(value);
  if (const auto* numbers = choice.numbers(); numbers && numbers->log_volume) value = add(value, numbers->log_volume);
  if (!choice.padding_mask.empty()) {  // spare entries have probability 0
    auto nothing = tape_.constant(value.rows(), value.cols());
    for (std::size_t c = 0; c < choice.padding_mask.size(); ++c)
      if (choice.padding_mask[c]) tape_.mutable_value(nothing).data[c] = -std::numeric_limits<T>::infinity();
    value = add(value, nothing);
  }
  picked_.push_back({choice.rows.get(), of, value});
  return value;
}

template <class T>
Var<T> Episode<T>::log_probability_by_column(int step, DrawnFrom of) {
  const auto& [question, choice] = steps_.at(step);
  for (const auto& made : picked_by_column_)
    if (made.rows == choice.rows.get() && made.of == of) return made.value;
  const auto value = with_probability(step, of).log_probability(choice);
  picked_by_column_.push_back({choice.rows.get(), of, value});
  return value;
}

template <class T>
Var<T> Episode<T>::path_log_probability(const RowsPtr& rows, DrawnFrom of) {
  if (rows->is_root()) return tape_.constant(rows->size(), 1);
  for (const auto& made : paths_)
    if (made.rows == rows.get() && made.of == of) return made.value;
  auto value = log_probability(rows->step, of);
  if (!rows->origin->is_root()) {
    if (value.cols() > 1) throw Bug("columns side by side must be asked from the root");
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
  for (const auto& other : {behaves_as_, refers_to_}) rows += other ? other->rows_evaluated() : 0;
  return rows;
}

template <class T>
std::size_t Episode<T>::attention_values() const {
  std::size_t values = 0;
  for (const auto& step : steps_) {
    const auto& question = step.question;
    if (question.has_options())
      for (int options : question.distribution->options()) values += options;
    else
      values += question.site.rows->size() * question.site.columns;
  }
  for (const auto& other : {behaves_as_, refers_to_}) values += other ? other->attention_values() : 0;
  return values;
}

template class Episode<float>;
template class Episode<double>;

}  // namespace hardgrad
