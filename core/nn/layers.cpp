// Layers; the arithmetic is in core/autodiff.
#include "core/nn/layers.hpp"

#include <cmath>

#include "core/autodiff/product.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/random/randomness.hpp"

namespace hardgrad {
namespace {

/// A parameter whose i-th entry is draw(randomness, place i) of the stream init / name.
template <class T, class F>
Parameter<T>& drawn(ParameterSet<T>& set, std::string name, std::vector<std::size_t> shape, Key init, F draw) {
  KeyedRandomness randomness(init / name);
  auto& parameter = set.add(std::move(name), std::move(shape));
  std::uint32_t index = 0;
  for (T& x : parameter.value) x = static_cast<T>(draw(randomness, Draw{.index = index++}));
  return parameter;
}

template <class T>
Parameter<T>& uniform(ParameterSet<T>& set, std::string name, std::vector<std::size_t> shape, double bound, Key init) {
  return drawn(set, std::move(name), std::move(shape), init,
               [bound](KeyedRandomness& randomness, Draw where) { return bound * (2 * randomness.uniform(where) - 1); });
}

double fan_bound(std::size_t n) { return 1 / std::sqrt(static_cast<double>(n)); }

}  // namespace

template <class T>
const Parameter<T>& uniform_parameter(ParameterSet<T>& set, std::string name, std::vector<std::size_t> shape, double bound,
                                      Key init) {
  return uniform(set, std::move(name), std::move(shape), bound, init);
}

template <class T>
const Parameter<T>& uniform_vector(ParameterSet<T>& set, std::string name, std::size_t width, Key init) {
  return uniform(set, std::move(name), {1, width}, 1 / std::sqrt(static_cast<double>(width)), init);
}

template <class T>
const Parameter<T>& normal_parameter(ParameterSet<T>& set, std::string name, std::vector<std::size_t> shape, double deviation,
                                     Key init) {
  return drawn(set, std::move(name), std::move(shape), init,
               [deviation](KeyedRandomness& randomness, Draw where) { return deviation * randomness.normal(where); });
}

template <class T>
Linear<T>::Linear(ParameterSet<T>& set, const std::string& name, std::size_t in, std::size_t out, Key init, bool with_bias) {
  weight = &uniform(set, name + ".weight", {out, in}, fan_bound(in), init);
  if (with_bias) bias = &uniform(set, name + ".bias", {out}, fan_bound(in), init);
}

template <class T>
Var<T> Linear<T>::operator()(Var<T> x) const {
  return linear(x, x.tape->parameter(*weight), bias ? x.tape->parameter(*bias) : Var<T>{});
}

template <class T>
Embedding<T>::Embedding(ParameterSet<T>& set, const std::string& name, std::size_t count, std::size_t width, Key init,
                        double deviation) {
  weight = &normal_parameter(set, name + ".weight", {count, width}, deviation, init);
}

template <class T>
Var<T> Embedding<T>::operator()(Tape<T>& tape, std::span<const int> index) const {
  return gather_rows(tape.parameter(*weight), index);
}

template <class T>
Lstm<T>::Lstm(ParameterSet<T>& set, const std::string& name, std::size_t in, std::size_t hidden, Key init) : hidden(hidden) {
  const double bound = fan_bound(hidden);
  input = &uniform(set, name + ".input.weight", {4 * hidden, in}, bound, init);
  recurrent = &uniform(set, name + ".recurrent.weight", {4 * hidden, hidden}, bound, init);
  auto& b = uniform(set, name + ".bias", {4 * hidden}, bound, init);
  std::fill_n(b.value.begin() + static_cast<std::ptrdiff_t>(hidden), hidden, T{1});  // initially keep the cell state
  bias = &b;
}

template <class T>
Var<T> Lstm<T>::project(Var<T> x) const {
  return linear(x, x.tape->parameter(*input), x.tape->parameter(*bias));
}

template <class T>
LstmState<T> Lstm<T>::step(Var<T> projected, const LstmState<T>& state) const {
  return lstm_cell(add_linear(projected, state.h, projected.tape->parameter(*recurrent)), state.c);
}

template <class T>
LstmState<T> Lstm<T>::zero(Tape<T>& tape, std::size_t rows) const {
  return {tape.constant(rows, hidden), tape.constant(rows, hidden)};
}

#define HARDGRAD_INSTANTIATE(T)                                                                                         \
  template const Parameter<T>& uniform_parameter(ParameterSet<T>&, std::string, std::vector<std::size_t>, double, Key); \
  template const Parameter<T>& uniform_vector(ParameterSet<T>&, std::string, std::size_t, Key);                         \
  template const Parameter<T>& normal_parameter(ParameterSet<T>&, std::string, std::vector<std::size_t>, double, Key);  \
  template struct Linear<T>;                                                                                            \
  template struct Embedding<T>;                                                                                         \
  template struct Lstm<T>;
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)
#undef HARDGRAD_INSTANTIATE

template <class T>
Gru<T>::Gru(ParameterSet<T>& set, const std::string& name, std::size_t in, std::size_t hidden, Key init) {
  const double bound = 1 / std::sqrt(static_cast<double>(hidden));
  input.weight = &uniform_parameter(set, name + ".input.weight", {3 * hidden, in}, bound, init);
  input.bias = &uniform_parameter(set, name + ".input.bias", {3 * hidden}, bound, init);
  recurrent.weight = &uniform_parameter(set, name + ".recurrent.weight", {3 * hidden, hidden}, bound, init);
  recurrent.bias = &uniform_parameter(set, name + ".recurrent.bias", {3 * hidden}, bound, init);
}

template struct Gru<float>;
template struct Gru<double>;

}  // namespace hardgrad
