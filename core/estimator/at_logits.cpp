#include "core/estimator/at_logits.hpp"

#include <algorithm>
#include <numeric>
#include <type_traits>
#include <utility>

namespace hardgrad {
namespace {

/// Calls each(choice, first logit, options) for every choice. If all choices have two options, `options` is a compile-time constant.
template <class F>
void for_choices(const ChoiceLayout& layout, F each) {
  if (layout.all_pairs()) {
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

}  // namespace

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
  if (S == 2 && all_are(options, 2)) {
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
  if (S == 2 && all_are(options, 2)) {
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

}  // namespace hardgrad
