#include "core/choice/relaxed.hpp"

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/softmax.hpp"

namespace hardgrad {

template <class T>
std::vector<double> Relaxing<T>::log_p(std::size_t cell) const {
  const T* first = question.log_p.value().row(from[cell]);
  return {first, first + options(cell)};
}

template <class T>
Draw Relaxing<T>::where(std::size_t cell, std::uint32_t index) const {
  const std::size_t D = question.site.columns;
  auto draw = Noise{random, id, question.step}.at(rows, cell / D, cell % D);
  draw.index = index;
  return draw;
}

template <class T>
Var<T> Relaxing<T>::softmax(Var<T> shift, double temperature) const {
  std::vector<int> count(size());
  for (std::size_t r = 0; r < size(); ++r) count[r] = options(r);
  const auto logits = gather_rows(question.logits, std::span<const int>(from));
  const auto scaled = affine(add(logits, shift), static_cast<T>(1 / temperature));
  return probabilities(log_softmax(scaled, std::span<const int>(count)));
}

template <class T>
Var<T> Relaxing<T>::softmax() const {
  return gather_rows(probabilities(question.log_p), std::span<const int>(from));
}

namespace {

// What must be added to the logits to have z, up to a constant.
std::vector<double> beyond(const std::vector<double>& log_p, const Perturbed& noise) {
  auto shift = noise.z;
  for (std::size_t i = 0; i < shift.size(); ++i) shift[i] -= log_p[i];
  return shift;
}

}  // namespace

template <class T>
Var<T> Relaxing<T>::gumbels(std::vector<int>* option) const {
  if (option) option->assign(size(), 0);
  return constants([&](std::size_t r) {
    const auto p = log_p(r);
    const auto noise = perturb(p, random, where(r));
    if (option) (*option)[r] = noise.option;
    return beyond(p, noise);
  });
}

template <class T>
Var<T> Relaxing<T>::gumbels_given(const std::vector<int>& option, std::uint32_t index) const {
  return constants([&](std::size_t r) {
    const auto p = log_p(r);
    return beyond(p, perturb_given(p, option[r], random, where(r, index)));
  });
}

template <class T>
Relaxed<T> straight_through(const Relaxing<T>& asked, std::vector<int> option, Var<T> soft) {
  auto hard = asked.tape.constant(soft.rows(), soft.cols());
  for (std::size_t r = 0; r < option.size(); ++r) asked.tape.mutable_value(hard)(r, option[r]) = 1;
  auto weights = add(hard, subtract(soft, asked.tape.detach(soft)));
  return {std::move(option), weights};
}

template <class T>
Choice<T> RelaxedChooser<T>::choose(Tape<T>& tape, const Question<T>& question) {
  question.require_options();
  auto rows = fan_out(question, question.site.rows->is_root() ? samples_ : 1);
  auto made = relax_({tape, question, *rows, random_, id_});
  return {rows, std::move(made.option), made.weights};
}

#define HARDGRAD_INSTANTIATE(T)                                                       \
  template struct Relaxing<T>;                                                        \
  template Relaxed<T> straight_through(const Relaxing<T>&, std::vector<int>, Var<T>); \
  template class RelaxedChooser<T>;
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)

}  // namespace hardgrad
