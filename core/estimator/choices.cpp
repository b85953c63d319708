#include "core/estimator/choices.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>
#include <utility>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/kernels/functions.hpp"
#include "core/support/array.hpp"

namespace hardgrad {
namespace {

/// True if every choice has two options and two logits: choice c those numbered 2 c and 2 c + 1.
bool all_pairs(std::span<const int> options, std::size_t logits) { return logits == 2 * options.size() && all_are(options, 2); }

/// Calls each(choice, first logit, options) for every choice. If all choices have two options, `options` is a compile-time constant.
template <class F>
void for_choices(const ChoiceLayout& layout, F each) {
  if (all_pairs(layout.options, layout.logits())) {
    for (std::size_t c = 0; c < layout.choices(); ++c) each(c, 2 * c, std::integral_constant<std::size_t, 2>{});
    return;
  }
  for (std::size_t c = 0; c < layout.choices(); ++c) each(c, layout.logit[c], static_cast<std::size_t>(layout.options[c]));
}

/// Calls each(first, stride) once per entry of a sample: the K samples of an example have their values at first,
/// first + stride, ... `width`: entries per sample at this step; `first`: start of the step.
template <class F>
void for_examples(std::size_t first, std::size_t samples, std::size_t width, std::size_t K, F each) {
  for (std::size_t n = 0; n < samples; n += K)
    for (std::size_t i = 0; i < width; ++i) each(first + n * width + i, width);
}

/// True if the choices of a step are subsets, also of one option.
template <class T>
bool several(const Episode<T>& episode, std::size_t t) {
  return episode.steps()[t].question.distribution->kind().several;
}

}  // namespace

AtLogits operator*(const PerChoice& factor, AtLogits x) {
  for_choices(*x.of, [by = factor.value.data(), to = x.value.data()](std::size_t c, std::size_t first, auto options) {
    for (std::size_t i = 0; i < options; ++i) to[first + i] *= by[c];
  });
  return x;
}

AtLogits times(AtLogits a, const AtLogits& b) {
  for (std::size_t i = 0; i < a.value.size(); ++i) a.value[i] *= b.value[i];
  return a;
}

PerChoice dot(const AtLogits& a, const AtLogits& b) {
  PerChoice result{a.of, std::vector<double>(a.of->choices())};
  for_choices(*a.of, [x = a.value.data(), y = b.value.data(), to = result.value.data()](std::size_t c, std::size_t first,
                                                                                        auto options) {
    double sum = 0;
    for (std::size_t i = 0; i < options; ++i) sum += x[first + i] * y[first + i];
    to[c] = sum;
  });
  return result;
}

double total(const PerChoice& x) { return std::accumulate(x.value.begin(), x.value.end(), 0.0); }

// p_i (x_i - sum_j p_j x_j), with x measured from its value at the most probable option. The mean is then as small as the other
// options' probability, so nothing cancels where one option is nearly certain. For two options it is p_0 p_1 (x_1 - x_0).
void through_softmax(std::size_t S, std::span<const int> options, std::span<const double> p, std::span<const double> x,
                     std::span<double> result) {
  if (all_pairs(options, S * options.size())) {
    const double *of = p.data(), *from = x.data();
    double* __restrict to = result.data();
    for (std::size_t i = 0; i < result.size(); i += 2) {
      const double h = of[i] * of[i + 1] * (from[i + 1] - from[i]);
      to[i] = -h;
      to[i + 1] = h;
    }
    return;
  }
  for (std::size_t c = 0, first = 0; c < options.size(); ++c, first += S) {
    const auto n = static_cast<std::size_t>(options[c]);
    const auto* const from = &p[first];
    const auto top = first + static_cast<std::size_t>(std::max_element(from, from + n) - from);
    double mean = 0;
    for (std::size_t i = first; i < first + n; ++i) mean += p[i] * (result[i] = x[i] - x[top]);
    for (std::size_t i = first; i < first + n; ++i) result[i] = p[i] * (result[i] - mean);
    for (std::size_t i = first + n; i < first + S; ++i) result[i] = 0;
  }
}

void scores(std::size_t S, std::span<const int> options, std::span<const double> p, std::span<const int> option,
            std::span<double> result) {
  if (all_pairs(options, S * options.size())) {
    for (std::size_t c = 0; c < options.size(); ++c) {
      const double of_zero = p[2 * c], of_one = p[2 * c + 1], h = option[c] == 1 ? of_zero : -of_one;
      result[2 * c] = -h;
      result[2 * c + 1] = h;
    }
    return;
  }
  std::fill(result.begin(), result.end(), 0.0);
  for (std::size_t c = 0, first = 0; c < options.size(); ++c, first += S) {
    if (options[c] == 1) continue;
    double others = 0;
    for (int o = 0; o < options[c]; ++o) {
      if (o != option[c]) others += p[first + o];
      result[first + o] = -p[first + o];
    }
    result[first + option[c]] = others;
  }
}

AtLogits through_softmax(const AtLogits& p, const AtLogits& x) {
  AtLogits result{x.of, std::vector<double>(x.value.size())};
  for (std::size_t t = 0; t < x.of->steps.size(); ++t) {
    const auto options = x.of->options_of(t);
    const std::size_t S = x.of->steps[t].options, first = x.of->steps[t].logit, n = options.size() * S;
    through_softmax(S, options, std::span(p.value).subspan(first, n), std::span(x.value).subspan(first, n),
                    std::span(result.value).subspan(first, n));
  }
  return result;
}

PerChoice sum(const PerChoice& x, Along which) {
  const auto& layout = *x.of;
  std::vector<double> so_far(layout.samples), whole(layout.samples);
  for (std::size_t c = 0; c < layout.choices(); ++c) whole[layout.sample[c]] += x.value[c];
  PerChoice result{x.of, std::vector<double>(layout.choices())};
  for (std::size_t t = 0; t < layout.steps.size(); ++t) {
    const auto& step = layout.steps[t];
    const std::size_t end = step.choice + layout.samples * step.columns;
    const auto before = so_far;
    for (std::size_t c = step.choice; c < end; ++c) so_far[layout.sample[c]] += x.value[c];
    for (std::size_t c = step.choice; c < end; ++c) {
      const auto n = layout.sample[c];
      switch (which) {
        case Along::all: result.value[c] = whole[n]; break;
        case Along::own_step: result.value[c] = so_far[n] - before[n]; break;
        case Along::so_far: result.value[c] = so_far[n]; break;
        case Along::from_here: result.value[c] = whole[n] - before[n]; break;
      }
    }
  }
  return result;
}

std::vector<double> choices_of_samples(const ChoiceLayout& layout) {
  std::vector<double> count(layout.samples);
  for (std::size_t c = 0; c < layout.choices(); ++c) count[layout.sample[c]] += layout.options[c] > 1;
  return count;
}

PerChoice spread(const std::shared_ptr<const ChoiceLayout>& layout, const std::vector<double>& of_samples) {
  PerChoice result{layout, std::vector<double>(layout->choices())};
  for (std::size_t c = 0; c < layout->choices(); ++c) result.value[c] = of_samples[layout->sample[c]];
  return result;
}

namespace {

template <class Of>
Numbers<Of> others(const Numbers<Of>& x, std::size_t K, bool logits) {
  Numbers<Of> result{x.of, std::vector<double>(x.value.size())};
  for (const auto& step : x.of->steps)
    for_examples(logits ? step.logit : step.choice, x.of->samples, step.columns * (logits ? step.options : 1), K,
                 [&](std::size_t first, std::size_t stride) {
                   for (std::size_t k = 0; k < K; ++k)
                     for (std::size_t j = 0; j < K; ++j)
                       if (j != k) result.value[first + k * stride] += x.value[first + j * stride] / static_cast<double>(K - 1);
                 });
  return result;
}

}  // namespace

PerChoice mean_of_others(const PerChoice& x, int samples) { return others(x, samples, false); }

AtLogits mean_of_others(const AtLogits& x, int samples) {
  auto result = others(x, samples, true);
  const auto& layout = *x.of;
  for (std::size_t c = 0; c < layout.choices(); ++c)  // the other samples may have had more options
    std::fill(result.value.begin() + static_cast<std::ptrdiff_t>(layout.logit[c] + layout.options[c]),
              result.value.begin() + static_cast<std::ptrdiff_t>(layout.logit[c + 1]), 0.0);
  return result;
}

void leave_one_out(std::span<double> x, int samples, int columns) {
  std::vector<double> f(samples);
  for_examples(0, x.size() / columns, columns, samples, [&](std::size_t first, std::size_t stride) {
    for (int k = 0; k < samples; ++k) f[k] = x[first + k * stride];
    for (int k = 0; k < samples; ++k) {
      double sum = 0;  // subtract before summing: equal losses give exactly 0
      for (double other : f) sum += f[k] - other;
      x[first + k * stride] = sum / (samples - 1);
    }
  });
}

PerChoice leave_one_out(PerChoice x, int samples) {
  for (const auto& step : x.of->steps)
    leave_one_out(std::span(x.value).subspan(step.choice, x.of->samples * step.columns), samples,
                  static_cast<int>(step.columns));
  return x;
}

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
          layout->options.push_back(options[c] > distribution.picks_of(c) ? options[c] : 1);
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
      if (const auto c = layout_->steps[t].choice + i / picks(t); layout_->options[c] > 1 && option_[t][i] >= 0)
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
  const bool pairs = all_pairs(layout_->options, layout_->logits());
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
      const auto marginals = episode_.steps()[t].question.distribution->law(asking_[t][c / D], c % D);
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
      const std::size_t D = step.columns, k = picks(t);
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
AtLogits Choices<T>::met(const AtLogits& g) const {
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
