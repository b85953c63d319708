#include "core/choice/relaxed.hpp"

#include <algorithm>
#include <functional>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/softmax.hpp"
#include "core/kernels/pairs.hpp"
#include "core/support/views.hpp"

namespace hardgrad {

template <class T>
std::vector<int> RelaxationContext<T>::options() const {
  const auto& all = question.categories().options();
  if (!all.empty() && all_are(all, all[0])) return std::vector<int>(from.size(), all[0]);
  std::vector<int> result(from.size());
  for (std::size_t r = 0; r < result.size(); ++r) result[r] = all[from[r]];
  return result;
}

template <class T>
std::vector<double> RelaxationContext<T>::log_p() const {
  std::vector<double> result(size() * width());
  const auto all = question.categories().log_p().value();
  for (std::size_t r = 0; r < size(); ++r)
    if (count[r] > 1) std::copy_n(all.row(from[r]), count[r], result.begin() + static_cast<std::ptrdiff_t>(r * width()));
  return result;
}

template <class T>
std::vector<Draw> RelaxationContext<T>::where(std::uint32_t index) const {
  const Noise noise{random, id, question.step};
  std::vector<Draw> result(rows.size());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    result[r] = noise.at(rows, r);
    result[r].index = index;
  }
  return result;
}

template <class T>
Var<T> RelaxationContext<T>::constant(const std::vector<double>& numbers) const {
  const auto all = tape.constant(size(), width());
  std::copy(numbers.begin(), numbers.end(), tape.mutable_value(all).data);
  return all;
}

template <class T>
Var<T> RelaxationContext<T>::softmax(Var<T> shift, double temperature) const {
  return softmax_of(add(gather_rows(question.categories().logits(), std::span<const int>(from)), shift), temperature);
}

namespace {

/// True if row r continues row r, for each row.
bool one_to_one(const Rows& rows) {
  if (rows.origin->size() != rows.size()) return false;
  for (std::size_t r = 0; r < rows.size(); ++r)
    if (rows.parent[r] != static_cast<int>(r)) return false;
  return true;
}

/// 1 at the option of each of n pairs, 0 at the other.
template <class T>
void put_bits(const int* option, std::size_t n, T* weights) {
  constexpr std::size_t at_once = 256;
  T zero[at_once], one[at_once];
  for (std::size_t from = 0; from < n; from += at_once) {
    const std::size_t count = std::min(at_once, n - from);
    for (std::size_t i = 0; i < count; ++i) {
      zero[i] = static_cast<T>(option[from + i] == 0);
      one[i] = static_cast<T>(option[from + i] == 1);
    }
    kernels::join_pairs(zero, one, count, weights + 2 * from);
  }
}

}  // namespace

template <class T>
Var<T> RelaxationContext<T>::softmax(double temperature) const {
  if (temperature == 1) {
    const auto p = probabilities(question.categories().log_p());
    return one_to_one(rows) ? p : gather_rows(p, std::span<const int>(from));
  }
  return softmax_of(gather_rows(question.categories().logits(), std::span<const int>(from)), temperature);
}

template <class T>
Var<T> RelaxationContext<T>::softmax_of(Var<T> logits, double temperature) const {
  const auto scaled = affine(logits, static_cast<T>(1 / temperature));
  return probabilities(log_softmax(scaled, std::span<const int>(count)));
}

template <class T>
std::vector<int> RelaxationContext<T>::draw(double temperature) const {
  if (temperature == 1) return draw_options(question, rows, random, id);
  const auto z = log_p();
  std::vector<double> p(z.size());
  relaxed<double>(width(), count, z, temperature, p);
  const std::size_t D = question.site.columns, S = width();
  std::vector<int> option(size());
  std::size_t c = 0;
  for (const auto& place : where()) {
    random.categorical(std::span(p).subspan(c * S, D * S), S, std::span(count).subspan(c, D), place,
                       std::span(option).subspan(c, D));
    c += D;
  }
  return option;
}

template <class T>
Var<T> RelaxationContext<T>::gumbels(std::vector<int>* option) const {
  const auto p = log_p();
  std::vector<int> made(size());
  std::vector<double> z(p.size());
  perturb({width(), count, p}, where(), random, made, z);
  std::transform(z.begin(), z.end(), p.begin(), z.begin(), std::minus<>());
  if (option) *option = std::move(made);
  return constant(z);
}

template <class T>
Var<T> RelaxationContext<T>::gumbels_given(const std::vector<int>& option, std::uint32_t index,
                                           std::span<const double> of) const {
  const auto p = log_p();
  std::vector<double> z(p.size());
  perturb_given({width(), count, of.empty() ? std::span<const double>(p) : of}, option, where(index), random, z);
  std::transform(z.begin(), z.end(), p.begin(), z.begin(), std::minus<>());
  return constant(z);
}

template <class T>
Relaxed<T> straight_through(Tape<T>& tape, const Choice<T>& hard, Var<T> soft) {
  const auto weights = tape.output(soft.rows(), soft.cols(), {soft});
  const auto value = tape.mutable_value(weights);
  if (value.cols == 2 && hard.subset_size() == 1) {
    put_bits(hard.picked().data(), value.rows, value.data);
  } else {
    std::fill_n(value.data, value.size(), T{0});
    hard.put_ones(value);
  }
  tape.on_backward({weights}, [weights, soft](Tape<T>& back) { back.pass_on(weights, soft); });
  return {hard.picked(), weights, hard.subset_size()};
}

template <class T>
Relaxed<T> straight_through(const RelaxationContext<T>& context, std::vector<int> option, Var<T> soft) {
  return straight_through(context.tape, Choice<T>{{}, ChosenOptions{std::move(option)}}, soft);
}

template <class T>
Choice<T> RelaxedHandler<T>::choose(Tape<T>& tape, const Question<T>& question) {
  auto rows = fan_out(question, question.site.rows->is_root() ? samples_ : 1);
  return {rows, relax_({tape, question, *rows, random_, id_, rao_samples_})};
}

#define HARDGRAD_INSTANTIATE(T)                                                                \
  template struct RelaxationContext<T>;                                                        \
  template Relaxed<T> straight_through(Tape<T>&, const Choice<T>&, Var<T>);                    \
  template Relaxed<T> straight_through(const RelaxationContext<T>&, std::vector<int>, Var<T>); \
  template class RelaxedHandler<T>;
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)
#undef HARDGRAD_INSTANTIATE

}  // namespace hardgrad
