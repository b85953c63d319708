// Layer normalisation with its parameters. The equation is in core/autodiff/layer_norm.hpp.
#pragma once

#include <algorithm>
#include <string>

#include "core/autodiff/layer_norm.hpp"
#include "core/autodiff/parameter.hpp"

namespace hardgrad {

/// Parameters: <name>.gain [C], initially 1, and <name>.bias [C], initially 0.
template <class T>
struct LayerNorm {
  const Parameter<T>* gain = nullptr;
  const Parameter<T>* bias = nullptr;
  LayerNorm() = default;
  LayerNorm(ParameterSet<T>& set, const std::string& name, std::size_t width) {
    auto& one = set.add(name + ".gain", {width});
    std::fill(one.value.begin(), one.value.end(), T{1});
    gain = &one;
    bias = &set.add(name + ".bias", {width});
  }
  Var<T> operator()(Var<T> x) const { return layer_norm(x, x.tape->parameter(*gain), x.tape->parameter(*bias)); }
};

}  // namespace hardgrad
