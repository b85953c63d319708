#include "core/nn/gru.hpp"

#include <cmath>

namespace hardgrad {

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
