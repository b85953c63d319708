// A GRU: parameters and steps. The equations are in core/autodiff/gru.hpp.
#pragma once

#include <string>

#include "core/autodiff/gru.hpp"
#include "core/nn/layers.hpp"

namespace hardgrad {

/// Gates in the order r, z, n. Parameters as in PyTorch's GRU: <name>.input.weight [3H, I], <name>.input.bias [3H],
/// <name>.recurrent.weight [3H, H], <name>.recurrent.bias [3H]; uniform in +-1/sqrt(H).
template <class T>
struct Gru {
  Linear<T> input, recurrent;
  Gru() = default;
  Gru(ParameterSet<T>& set, const std::string& name, std::size_t in, std::size_t hidden, Key init);
  /// x W_input' + b: [R, 3H]. It may be computed for many steps at once.
  Var<T> project(Var<T> x) const { return input(x); }
  /// h' [R, H] from projected input [R, 3H] and h [R, H].
  Var<T> step(Var<T> projected, Var<T> h) const { return gru_cell(projected, recurrent(h), h); }
};

}  // namespace hardgrad
