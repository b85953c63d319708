#include "core/choice/top_k.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/softmax.hpp"
#include "core/choice/gumbel.hpp"

namespace hardgrad {

template <class T>
std::vector<int> options_of(const Question<T>& question, const Rows& rows) {
  auto result = question.parent_choices(rows);
  for (int& c : result) c = question.distribution->options()[c];
  return result;
}

template <class T>
std::vector<int> subset_size_of(const Question<T>& question, const Rows& rows) {
  auto result = question.parent_choices(rows);
  for (int& c : result) c = question.distribution->subset_size_of(c);
  return result;
}

template <class T>
Var<T> perturbed_logits(Tape<T>& tape, const Question<T>& question, const Rows& rows, Randomness& random,
                        const std::vector<std::uint32_t>& id) {
  const auto from = question.parent_choices(rows);
  const auto options = options_of(question, rows);
  const auto x = gather_rows(question.distribution->logits(), std::span<const int>(from));
  const std::size_t D = question.site.columns, S = x.cols();
  const auto log_p = log_softmax(tape.detach(x), std::span<const int>(options)).value();
  std::vector<double> p(log_p.data, log_p.data + log_p.size()), z(p.size());
  std::vector<int> option(options.size());
  std::vector<Draw> where(options.size());
  const Noise noise{random, id, question.step};
  for (std::size_t c = 0; c < where.size(); ++c) where[c] = noise.at(rows, c / D, c % D);
  perturb({S, options, p}, where, random, option, z);
  const auto shift = tape.constant(options.size(), S);
  for (std::size_t c = 0; c < options.size(); ++c)
    for (int i = 0; options[c] > 1 && i < options[c]; ++i)
      if (std::isfinite(p[c * S + i])) tape.mutable_value(shift)(c, i) = static_cast<T>(z[c * S + i] - p[c * S + i]);
  return add(x, shift);
}

template <class Number>
void write_largest(std::span<const Number> x, std::span<int> to) {
  std::vector<int> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  if (to.size() < order.size()) {
    std::nth_element(order.begin(), order.begin() + to.size(), order.end(),
                     [&](int i, int j) { return x[i] > x[j] || (x[i] == x[j] && i < j); });
    order.resize(to.size());
  }
  std::sort(order.begin(), order.end());
  std::fill(std::copy(order.begin(), order.end(), to.begin()), to.end(), -1);
}

template <class T>
ChosenOptions largest(Var<T> r, std::span<const int> options, std::span<const int> subset_size, int most) {
  std::vector<int> option(options.size() * most, -1);
  for (std::size_t c = 0; c < options.size(); ++c)
    write_largest(std::span<const T>(r.value().row(c), options[c]), std::span(option).subspan(c * most, subset_size[c]));
  return {std::move(option), most};
}

template <class T>
Choice<T> TopKHandler<T>::choose(Tape<T>& tape, const Question<T>& question) {
  const auto rows = fan_out(question, question.site.rows->is_root() ? samples_ : 1);
  perturbed_.push_back(perturbed_logits(tape, question, *rows, random_, id_));
  return {rows, largest(perturbed_.back(), options_of(question, *rows), subset_size_of(question, *rows),
                        question.distribution->subset_size())};
}

#define HARDGRAD_INSTANTIATE(T)                                                                                                \
  template Var<T> perturbed_logits(Tape<T>&, const Question<T>&, const Rows&, Randomness&, const std::vector<std::uint32_t>&); \
  template std::vector<int> options_of(const Question<T>&, const Rows&);                                                       \
  template std::vector<int> subset_size_of(const Question<T>&, const Rows&);                                                   \
  template void write_largest(std::span<const T>, std::span<int>);                                                             \
  template ChosenOptions largest(Var<T>, std::span<const int>, std::span<const int>, int);                                     \
  template class TopKHandler<T>;
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)
#undef HARDGRAD_INSTANTIATE

}  // namespace hardgrad
