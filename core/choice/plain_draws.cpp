#include "core/choice/plain_draws.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/choice/gumbel.hpp"
#include "core/random/column_draws.hpp"
#include "core/support/views.hpp"

namespace hardgrad {
namespace {

/// [E D, S] log probabilities of the options of choices; 0 elsewhere.
template <class T>
std::vector<double> log_p_of_choices(const PlainQuestion<T>& question) {
  const auto all = question.log_p.value();
  std::vector<double> result(all.size());
  for (std::size_t c = 0; c < all.rows; ++c)
    if (question.options[c] > 1) std::copy_n(all.row(c), question.options[c], &result[c * all.cols]);
  return result;
}

}  // namespace

template <class T>
void DrawnRows<T>::put(std::size_t r, std::size_t example, std::span<const int> chosen) const {
  const std::size_t D = columns, S = width;
  if (form == Form::none) return;
  const int* __restrict from = chosen.data();
  if (form == Form::bits) {
    T* __restrict to = weights + r * D;
    for (std::size_t d = 0; d < D; ++d) to[d] = static_cast<T>(from[d]);
    return;
  }
  const auto users = [&](std::size_t d) { return order.empty() ? from[d] : order[(example * D + d) * S + from[d]]; };
  if (form == Form::options) {
    std::int64_t* __restrict to = option + r * D;
    if (order.empty())
      for (std::size_t d = 0; d < D; ++d) to[d] = from[d];
    else
      for (std::size_t d = 0; d < D; ++d) to[d] = users(d);
    return;
  }
  T* __restrict to = weights + r * D * S;
  std::fill_n(to, D * S, T{0});
  for (std::size_t d = 0; d < D; ++d) to[d * S + users(d)] = T{1};
}

template <class T>
bool all_finite(const T* x, std::size_t n) {
  bool all = true;  // without an exit, so that the loop is vectorised
  for (std::size_t i = 0; i < n; ++i) all &= std::abs(x[i]) <= std::numeric_limits<T>::max();
  return all;
}

template <class T>
bool put_beside_zero(const T* x, std::size_t n, T* pairs) {
  for (std::size_t i = 0; i < n; ++i) {
    pairs[2 * i] = 0;
    pairs[2 * i + 1] = x[i];
  }
  return all_finite(x, n);
}

template <class T>
void draw_samples(const PlainQuestion<T>& question, int samples, double temperature, Randomness& random,
                  const DrawnRows<T>& to) {
  const auto log_p = question.log_p.value();
  const std::size_t D = question.columns, S = log_p.cols;
  std::vector<double> p;  // unless columns are drawn together
  if (temperature != 1) {
    p.resize(log_p.size());
    relaxed<double>(S, question.options, log_p_of_choices(question), temperature, p);
  } else if (D < fewest_columns || S > most_options) {
    p.resize(log_p.size());
    probabilities(std::span(log_p.data, log_p.size()), std::span(p));
  }
  std::vector<int> option(D);
  for (std::size_t e = 0, r = 0; e < question.id.size(); ++e) {
    const auto options = question.options.subspan(e * D, D);
    for (int k = 0; k < samples; ++k, ++r) {
      const Draw where{.example = question.id[e], .replica = static_cast<std::uint32_t>(k)};
      if (p.empty())
        draw_categories(std::span<const T>(log_p.row(e * D), D * S), S, options, random, {&where, 1}, option);
      else
        random.categorical(std::span<const double>(p).subspan(e * D * S, D * S), S, options, where, option);
      to.put(r, e, option);
    }
  }
}

namespace {

/// The same of two options everywhere.
template <class T>
void draw_logistics(const PlainQuestion<T>& question, int samples, Randomness& random, const DrawnRows<T>& to, T* noise) {
  const std::size_t D = question.columns;
  std::vector<int> option(D);
  std::vector<double> phi(D), logistic(D);
  const bool wants_options = to.form != DrawnRows<T>::Form::none;
  for (std::size_t e = 0, r = 0; e < question.id.size(); ++e) {
    const T* const log_p = question.log_p.value().row(e * D);
    for (std::size_t d = 0; d < D; ++d) phi[d] = static_cast<double>(log_p[2 * d + 1]) - static_cast<double>(log_p[2 * d]);
    for (int k = 0; k < samples; ++k, ++r) {
      const Draw where{.example = question.id[e], .replica = static_cast<std::uint32_t>(k)};
      random.logistic({&where, 1}, phi, logistic);
      for (std::size_t d = 0; d < D; ++d) noise[r * D + d] = static_cast<T>(logistic[d]);
      if (!wants_options) continue;
      for (std::size_t d = 0; d < D; ++d) option[d] = phi[d] + logistic[d] > 0;
      to.put(r, e, option);
    }
  }
}

}  // namespace

template <class T>
void draw_gumbels(const PlainQuestion<T>& question, int samples, Randomness& random, const DrawnRows<T>& to, T* noise) {
  const std::size_t D = question.columns, S = question.log_p.cols();
  if (S == 2 && all_are(question.options, 2)) return draw_logistics(question, samples, random, to, noise);
  const auto log_p = log_p_of_choices(question);
  std::vector<int> option(D);
  std::vector<double> z(D * S);
  for (std::size_t e = 0, r = 0; e < question.id.size(); ++e) {
    const auto options = question.options.subspan(e * D, D);
    const auto p = std::span<const double>(log_p).subspan(e * D * S, D * S);
    std::fill(option.begin(), option.end(), 0);
    for (int k = 0; k < samples; ++k, ++r) {
      const Draw where{.example = question.id[e], .replica = static_cast<std::uint32_t>(k)};
      std::copy(p.begin(), p.end(), z.begin());
      perturb({S, options, p}, {&where, 1}, random, option, z);
      to.put(r, e, option);
      if (S == 2) {
        T* const __restrict out = noise + r * D;
        for (std::size_t d = 0; d < D; ++d) out[d] = static_cast<T>((z[2 * d + 1] - z[2 * d]) - (p[2 * d + 1] - p[2 * d]));
        continue;
      }
      T* const out = noise + r * D * S;
      if (to.order.empty()) {
        for (std::size_t i = 0; i < D * S; ++i) out[i] = static_cast<T>(z[i] - p[i]);
        continue;
      }
      for (std::size_t i = 0; i < D * S; ++i) out[i / S * S + to.order[e * D * S + i]] = static_cast<T>(z[i] - p[i]);
    }
  }
}

template <class T>
void draw_pairs(const PlainQuestion<T>& question, int pairs, Randomness& random, const DrawnRows<T>& to, T* numbers) {
  const auto log_p = question.log_p.value();
  const std::size_t D = question.columns;
  std::vector<int> first(D), second(D);
  for (std::size_t e = 0, n = 0; e < question.id.size(); ++e) {
    const auto options = question.options.subspan(e * D, D);
    const bool all = all_are(options, 2);
    for (int g = 0; g < pairs; ++g, ++n) {
      const auto at = [&](std::size_t d, std::uint32_t index) -> Draw {
        return {.example = question.id[e],
                .replica = static_cast<std::uint32_t>(g),
                .index = index,
                .column = static_cast<std::uint32_t>(d)};
      };
      const auto of_one = [&](std::size_t d) { return std::span<int>(&first[d], 1); };
      if (all)
        antithetic_bits(std::span<const T>(log_p.row(e * D), 2 * D), random, at(0, 0), std::span(first), std::span(second));
      else
        for (std::size_t d = 0; d < D; ++d) {
          first[d] = second[d] = 0;
          if (options[d] > 1)
            antithetic_bits(std::span<const T>(log_p.row(e * D + d), 2), random, at(d, 0), of_one(d),
                            std::span<int>(&second[d], 1));
        }
      to.put(2 * n, e, first);
      to.put(2 * n + 1, e, second);
      if (!numbers) continue;
      centred_numbers(std::span<const T>(log_p.row(e * D), 2 * D), first, second, random, at(0, 1),
                      std::span(numbers + n * D, D));
      for (std::size_t d = 0; !all && d < D; ++d)
        if (options[d] == 1) numbers[n * D + d] = 0;
    }
  }
}

#define HARDGRAD_INSTANTIATE(T)                                                                       \
  template struct DrawnRows<T>;                                                                       \
  template bool all_finite(const T*, std::size_t);                                                    \
  template bool put_beside_zero(const T*, std::size_t, T*);                                           \
  template void draw_samples(const PlainQuestion<T>&, int, double, Randomness&, const DrawnRows<T>&); \
  template void draw_gumbels(const PlainQuestion<T>&, int, Randomness&, const DrawnRows<T>&, T*);     \
  template void draw_pairs(const PlainQuestion<T>&, int, Randomness&, const DrawnRows<T>&, T*);
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)
#undef HARDGRAD_INSTANTIATE

}  // namespace hardgrad
