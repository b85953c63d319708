// Numbers of a run's choices: one per choice (PerChoice), or one per logit (AtLogits), and the formulas that combine them.
//
// With f and a as PerChoice and score and slope as AtLogits, a paper's
//   g = (f - a) grad log p(z) + eta grad c
// is written `(f - a) * score + eta * slope`, for all samples, steps and columns at once. It is computed in one pass, when it becomes
// AtLogits. Every operation rounds as if its result had been stored, so that it does not matter how a formula is divided.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/support/views.hpp"

namespace hardgrad {

/// The choices of N samples (or groups) in a run. A choice is one column of one sample at one step. Choices are ordered by step,
/// then by sample, then by column.
struct ChoiceLayout {
  struct Step {
    std::size_t columns, options;  ///< D, and S, the largest number of options of a choice
    std::size_t choice, logit;     ///< the step's first choice, and the first logit of that choice
  };
  std::size_t samples = 0;
  std::vector<Step> steps;
  std::vector<int> options;         ///< [choices]; 1 means no choice
  std::vector<std::size_t> logit;   ///< [choices + 1] first logit of each choice; S entries each, zero beyond its options
  std::vector<std::size_t> sample;  ///< [choices] the sample that the choice belongs to

  std::size_t choices() const { return options.size(); }
  std::span<const int> options_of(std::size_t step) const {
    return std::span(options).subspan(steps[step].choice, samples * steps[step].columns);
  }
  std::size_t logits() const { return logit.back(); }
  /// True if every choice has two options and two logits: choice c those numbered 2 c and 2 c + 1.
  bool all_pairs() const { return logits() == 2 * options.size() && all_are(options, 2); }
};

struct OfChoices;
struct OfLogits;

/// Numbers, or a formula of them.
template <class X>
concept Term = requires {
  std::remove_cvref_t<X>::has_factors;
};
template <class X>
using OfTerm = typename std::remove_cvref_t<X>::Of;

/// f(x...), not computed yet. Terms that have a name are referred to, as in xtensor; others move into the formula.
template <class F, class... X>
struct Formula {
  using Of = OfTerm<std::tuple_element_t<sizeof...(X) - 1, std::tuple<X...>>>;
  /// It has factors per choice, and is per logit.
  static constexpr bool has_factors = (std::remove_cvref_t<X>::has_factors || ...) || (!std::is_same_v<Of, OfTerm<X>> || ...);
  F f;
  std::tuple<X...> terms;

  const std::shared_ptr<const ChoiceLayout>& layout() const { return std::get<0>(terms).layout(); }
  auto reader() const {
    return std::apply([&](const auto&... term) { return formula(f, term.reader()...); }, terms);
  }
  /// The value at choice c, or at logit i, which is one of choice c.
  double at(std::size_t c, std::size_t i) const {
    return std::apply([&](const auto&... term) { return f(term.at(c, i)...); }, terms);
  }
};
template <class F, class... X>
Formula<F, X...> formula(F f, X&&... terms) {  // X of a term with a name is a reference
  return {f, {std::forward<X>(terms)...}};
}

/// A formula's terms while it is computed.
template <class Tag>
struct Reader {
  using Of = Tag;
  static constexpr bool has_factors = false;
  const double* value;
  double at(std::size_t c, std::size_t i) const { return value[std::is_same_v<Of, OfChoices> ? c : i]; }
};

template <class F>
void compute(const ChoiceLayout& layout, const F formula, std::size_t size, double* __restrict to) {
  if constexpr (!F::has_factors) {
    for (std::size_t i = 0; i < size; ++i) to[i] = formula.at(i, i);
  } else if (layout.all_pairs()) {
    for (std::size_t c = 0, n = size / 2; c < n; ++c) {
      to[2 * c] = formula.at(c, 2 * c);
      to[2 * c + 1] = formula.at(c, 2 * c + 1);
    }
  } else {
    for (std::size_t c = 0; c < layout.choices(); ++c)
      for (std::size_t i = layout.logit[c], end = i + static_cast<std::size_t>(layout.options[c]); i < end; ++i)
        to[i] = formula.at(c, i);
  }
}

/// The values of a layout. The tag says whether there is one per choice or one per logit.
template <class Tag>
struct Numbers {
  using Of = Tag;
  static constexpr bool has_factors = false;
  std::shared_ptr<const ChoiceLayout> of;
  std::vector<double> value;

  Numbers() = default;
  Numbers(std::shared_ptr<const ChoiceLayout> of, std::vector<double> value) : of(std::move(of)), value(std::move(value)) {}
  template <class F, class... X>
  requires std::is_same_v<Tag, typename Formula<F, X...>::Of> Numbers(const Formula<F, X...>& formula) : of(formula.layout()) {
    value.resize(std::is_same_v<Of, OfLogits> ? of->logits() : of->choices());
    compute(*of, formula.reader(), value.size(), value.data());
  }

  const std::shared_ptr<const ChoiceLayout>& layout() const { return of; }
  Reader<Of> reader() const { return {value.data()}; }

  Numbers& operator+=(const Numbers& other) { return add(other, 1); }
  Numbers& operator-=(const Numbers& other) { return add(other, -1); }
  /// += factor other
  Numbers& add(const Numbers& other, double factor) {
    for (std::size_t i = 0; i < value.size(); ++i) value[i] += factor * other.value[i];
    return *this;
  }
};
using PerChoice = Numbers<OfChoices>;  ///< [choices]
using AtLogits = Numbers<OfLogits>;    ///< [logits]

/// A product that is rounded, not fused with an addition.
struct RoundedProduct {
  double operator()(double a, double b) const {
#if defined(__GNUC__) && !defined(__clang__)  // clang fuses only within a statement
    return __builtin_assoc_barrier(a * b);
#else
    return a * b;
#endif
  }
};
struct Scaled {
  double factor;
  double operator()(double x) const { return RoundedProduct()(factor, x); }
};

template <Term A, Term B>
requires std::is_same_v<OfTerm<A>, OfTerm<B>>
auto operator+(A&& a, B&& b) { return formula(std::plus<double>(), std::forward<A>(a), std::forward<B>(b)); }
template <Term A, Term B>
requires std::is_same_v<OfTerm<A>, OfTerm<B>>
auto operator-(A&& a, B&& b) { return formula(std::minus<double>(), std::forward<A>(a), std::forward<B>(b)); }
template <Term A>
auto operator*(double factor, A&& a) {
  return formula(Scaled{factor}, std::forward<A>(a));
}
/// Each choice's factor times the numbers at its logits.
template <Term A, Term B>
requires(std::is_same_v<OfTerm<A>, OfChoices>&& std::is_same_v<OfTerm<B>, OfLogits>) auto operator*(A&& factor, B&& x) {
  return formula(RoundedProduct(), std::forward<A>(factor), std::forward<B>(x));
}
/// Elementwise product.
template <Term A, Term B>
requires std::is_same_v<OfTerm<A>, OfTerm<B>>
auto times(A&& a, B&& b) { return formula(RoundedProduct(), std::forward<A>(a), std::forward<B>(b)); }

/// For each choice, sum_i a_i b_i.
PerChoice dot(const AtLogits& a, const AtLogits& b);
double total(const PerChoice& x);
/// (diag(p) - p p') x for each choice: the gradient of p . x at the logits.
AtLogits through_softmax(const AtLogits& p, const AtLogits& x);
/// The same of choices among S options or fewer: p, x and result [choices, S].
void through_softmax(std::size_t S, std::span<const int> options, std::span<const double> p, std::span<const double> x,
                     std::span<double> result);
/// result [choices, S] becomes onehot(b) - p of each choice b [choices], with the entry at b summed from the others, so that it
/// does not cancel; 0 where there is no choice.
void scores(std::size_t S, std::span<const int> options, std::span<const double> p, std::span<const int> option,
            std::span<double> result);

/// Which choices of a sample a sum includes, relative to one of them.
enum class Along {
  all,       ///< all choices
  own_step,  ///< the choices of its step
  so_far,    ///< the choices of its step and of earlier steps
  from_here  ///< the choices of its step and of later steps
};
/// For each choice, the sum over the choices of its sample.
PerChoice sum(const PerChoice& x, Along which);
/// [N] number of choices of each sample.
std::vector<double> choices_of_samples(const ChoiceLayout& layout);
/// Copies one value per sample [N] to each of the sample's choices.
PerChoice spread(const std::shared_ptr<const ChoiceLayout>& layout, const std::vector<double>& of_samples);

/// For each value, the mean of the corresponding values of the example's other samples. The K samples of an example are
/// adjacent.
PerChoice mean_of_others(const PerChoice& x, int samples);
/// The same at the logits; zero beyond the options of a choice.
AtLogits mean_of_others(const AtLogits& x, int samples);
/// Values [B K] or [B K, columns]: subtracts from each sample's the mean of the example's other samples. Exactly 0 where all
/// are equal.
void leave_one_out(std::span<double> x, int samples, int columns = 1);
/// The same for every step.
PerChoice leave_one_out(PerChoice x, int samples);

}  // namespace hardgrad
