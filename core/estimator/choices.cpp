#include "core/estimator/choices.hpp"

#include <algorithm>
#include <utility>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/kernels/functions.hpp"

namespace hardgrad {
namespace {

/// True if the choices of a step are subsets, also of one option.
template <class T>
bool several(const Episode<T>& episode, std::size_t t) {
  return episode.steps()[t].question.distribution->kind().several;
}

}  // namespace

template <class T>
Choices<T>::Choices(Episode<T>& episode, const std::vector<std::vector<int>>& asking,
                    const std::vector<std::vector<int>>& option)
    : episode_(episode), asking_(asking), option_(option) {
  auto layout = std::make_shared<ChoiceLayout>();
  layout->samples = asking.empty() ? 0 : asking[0].size();
  std::size_t logit = 0, choices = 0;
  for (std::size_t t = 0; t < asking.size(); ++t) choices += layout->samples * episode.steps()[t].question.site.columns;
  layout->options.reserve(choices);
  layout->logit.reserve(choices + 1);
  layout->sample.reserve(choices);
  for (std::size_t t = 0; t < asking.size(); ++t) {
    const auto& question = episode.steps()[t].question;
    const auto& distribution = *question.distribution;
    const std::size_t D = question.site.columns, S = distribution.logits().cols();
    const auto& options = distribution.options();
    layout->steps.push_back({D, S, layout->choices(), logit});
    for (std::size_t n = 0; n < layout->samples; ++n) {
      const std::size_t first = asking[t][n] * D;
      if (several(episode, t))
        for (std::size_t c = first; c < first + D; ++c)
          layout->options.push_back(options[c] > distribution.subset_size_of(c) ? options[c] : 1);
      else
        layout->options.insert(layout->options.end(), &options[first], &options[first] + D);
      layout->sample.insert(layout->sample.end(), D, n);
    }
    layout->logit.resize(layout->choices());
    for (std::size_t c = layout->steps[t].choice; c < layout->choices(); ++c, logit += S) layout->logit[c] = logit;
  }
  layout->logit.push_back(logit);
  layout_ = layout;
}

template <class T>
const AtLogits& Choices<T>::one_hot() const {
  if (one_hot_.of) return one_hot_;
  auto result = zeros();
  for (std::size_t t = 0; t < option_.size(); ++t)
    for (std::size_t i = 0; i < option_[t].size(); ++i)
      if (const auto c = layout_->steps[t].choice + i / subset_size(t); layout_->options[c] > 1 && option_[t][i] >= 0)
        result.value[layout_->logit[c] + option_[t][i]] = 1;
  return one_hot_ = std::move(result);
}

template <class T>
const AtLogits& Choices<T>::p() const {
  if (p_.of) return p_;
  AtLogits result{layout_, {}};
  result.value.reserve(layout_->logits());
  for (std::size_t t = 0; t < asking_.size(); ++t) {
    const std::size_t of_row = layout_->steps[t].columns * layout_->steps[t].options;
    if (several(episode_, t)) {
      result.value.resize(result.value.size() + layout_->samples * of_row);
      continue;
    }
    const auto log_p = episode_.steps()[t].question.categories().log_p().value();
    for (int asking : asking_[t]) {
      const T* from = log_p.row(asking * layout_->steps[t].columns);
      result.value.insert(result.value.end(), from, from + of_row);
    }
  }
  kernels::exp_all(result.value.data(), result.value.data(), result.value.size());
  const bool pairs = layout_->all_pairs();
  for (std::size_t c = 0; !pairs && c < layout_->choices(); ++c)  // 0 beyond the options, and where there is no choice
    for (std::size_t i = layout_->logit[c] + (layout_->options[c] > 1 ? layout_->options[c] : 0); i < layout_->logit[c + 1];
         ++i)
      result.value[i] = 0;
  for (std::size_t t = 0; t < asking_.size(); ++t) {
    if (!several(episode_, t)) continue;
    const std::size_t D = layout_->steps[t].columns;
    for (std::size_t c = 0; c < layout_->samples * D; ++c) {
      const std::size_t choice = layout_->steps[t].choice + c;
      if (layout_->options[choice] == 1) continue;
      const auto marginals = episode_.steps()[t].question.distribution->parameters_at(asking_[t][c / D], c % D);
      std::copy(marginals.begin(), marginals.end(), result.value.begin() + static_cast<std::ptrdiff_t>(layout_->logit[choice]));
    }
  }
  return p_ = std::move(result);
}

template <class T>
const AtLogits& Choices<T>::score() const {
  if (score_.of) return score_;
  const auto& p = this->p();
  auto result = zeros();
  for (std::size_t t = 0; t < option_.size(); ++t) {
    const auto& step = layout_->steps[t];
    if (several(episode_, t)) {
      const std::size_t D = step.columns, k = subset_size(t);
      for (std::size_t i = 0, c = step.choice; i < layout_->samples * D; ++i, ++c) {
        if (layout_->options[c] == 1) continue;
        const auto of_choice = episode_.steps()[t].question.distribution->score(asking_[t][i / D] * D + i % D,
                                                                                std::span(option_[t]).subspan(i * k, k));
        std::copy(of_choice.begin(), of_choice.end(), result.value.begin() + static_cast<std::ptrdiff_t>(layout_->logit[c]));
      }
      continue;
    }
    const std::size_t n = option_[t].size() * step.options;
    scores(step.options, layout_->options_of(t), std::span(p.value).subspan(step.logit, n), option_[t],
           std::span(result.value).subspan(step.logit, n));
  }
  return score_ = std::move(result);
}

template <class T>
AtLogits Choices<T>::gathered(const std::vector<MatrixView<const T>>& of_steps) const {
  auto result = zeros();
  for (std::size_t t = 0; t < of_steps.size(); ++t) {
    const auto& step = layout_->steps[t];
    for (std::size_t i = 0; i < layout_->samples * step.columns; ++i)
      for (int o = 0; layout_->options[step.choice + i] > 1 && o < layout_->options[step.choice + i]; ++o)
        result.value[step.logit + i * step.options + o] = static_cast<double>(of_steps[t](i, o));
  }
  return result;
}

template <class T>
AtLogits Choices<T>::flat(std::vector<std::vector<double>> of_steps) const {
  if (of_steps.size() == 1) return {layout_, std::move(of_steps[0])};
  AtLogits result{layout_, {}};
  for (const auto& step : of_steps) result.value.insert(result.value.end(), step.begin(), step.end());
  return result;
}

template <class T>
Var<T> Choices<T>::surrogate(const AtLogits& g) const {
  auto total = episode_.tape().constant(1, 1);
  const double share = 1 / static_cast<double>(layout_->samples);
  for (std::size_t t = 0; t < asking_.size(); ++t) {
    const auto logits = episode_.steps()[t].question.distribution->logits();
    const auto& step = layout_->steps[t];
    const std::size_t of_row = step.columns * step.options;
    std::vector<double> weight(logits.value().size());
    for (std::size_t n = 0; n < layout_->samples; ++n)
      for (std::size_t i = 0; i < of_row; ++i)
        weight[asking_[t][n] * of_row + i] += share * g.value[step.logit + n * of_row + i];
    total = add(total, weighted_sum(logits, std::span<const double>(weight)));
  }
  return total;
}

template <class T>
AtLogits Choices<T>::summed_by_logits(const AtLogits& g) const {
  auto result = zeros();
  for (std::size_t t = 0; t < asking_.size(); ++t) {
    const auto& step = layout_->steps[t];
    const std::size_t of_row = step.columns * step.options;
    std::vector<double> sum(episode_.steps()[t].question.distribution->logits().value().size());
    for (std::size_t n = 0; n < layout_->samples; ++n)
      for (std::size_t i = 0; i < of_row; ++i) sum[asking_[t][n] * of_row + i] += g.value[step.logit + n * of_row + i];
    for (std::size_t n = 0; n < layout_->samples; ++n)
      for (std::size_t i = 0; i < of_row; ++i) result.value[step.logit + n * of_row + i] = sum[asking_[t][n] * of_row + i];
  }
  return result;
}

template class Choices<float>;
template class Choices<double>;

}  // namespace hardgrad
