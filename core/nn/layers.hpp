// Layers: parameters with a name, an initialisation and a formula.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "core/autodiff/parameter.hpp"
#include "core/autodiff/recurrent_cells.hpp"
#include "core/autodiff/regularisation.hpp"
#include "core/autodiff/tape.hpp"
#include "core/random/key.hpp"

namespace hardgrad {

/// Adds a parameter, uniform on [-bound, bound], drawn from the stream init / name.
template <class T>
const Parameter<T>& uniform_parameter(ParameterSet<T>& set, std::string name, std::vector<std::size_t> shape, double bound,
                                      Key init);
/// A row [1, width], the weights of additive scores; bound 1 / sqrt(width).
template <class T>
const Parameter<T>& uniform_vector(ParameterSet<T>& set, std::string name, std::size_t width, Key init);
/// As `uniform_parameter`, but normal with mean 0.
template <class T>
const Parameter<T>& normal_parameter(ParameterSet<T>& set, std::string name, std::vector<std::size_t> shape, double deviation,
                                     Key init);

/// y = x W' + b. Parameters: <name>.weight [O, I], <name>.bias [O]; uniform in +-1/sqrt(I), as PyTorch's Linear.
template <class T>
struct Linear {
  const Parameter<T>* weight = nullptr;
  const Parameter<T>* bias = nullptr;
  Linear() = default;
  Linear(ParameterSet<T>& set, const std::string& name, std::size_t in, std::size_t out, Key init, bool with_bias = true);
  Var<T> operator()(Var<T> x) const;
};

/// Rows of a table. Parameter: <name>.weight [V, D], normal with standard deviation `deviation`.
template <class T>
struct Embedding {
  const Parameter<T>* weight = nullptr;
  Embedding() = default;
  Embedding(ParameterSet<T>& set, const std::string& name, std::size_t count, std::size_t width, Key init,
            double deviation = 0.1);
  /// index [R] -> [R, D]
  Var<T> operator()(Tape<T>& tape, std::span<const int> index) const;
};

/// An LSTM, gates in the order i, f, g, o. Parameters: <name>.input.weight [4H, I], <name>.recurrent.weight [4H, H],
/// <name>.bias [4H]; uniform in +-1/sqrt(H), except that the forget gate's bias is 1.
template <class T>
struct Lstm {
  const Parameter<T>* input = nullptr;
  const Parameter<T>* recurrent = nullptr;
  const Parameter<T>* bias = nullptr;
  std::size_t hidden = 0;
  Lstm() = default;
  Lstm(ParameterSet<T>& set, const std::string& name, std::size_t in, std::size_t hidden, Key init);
  /// x W_input' + b: [R, 4H]. It may be computed for many steps at once.
  Var<T> project(Var<T> x) const;
  /// One step from projected input [R, 4H].
  LstmState<T> step(Var<T> projected, const LstmState<T>& state) const;
  LstmState<T> zero(Tape<T>& tape, std::size_t rows) const;
};

/// A GRU (core/autodiff/recurrent_cells.hpp), gates in the order r, z, n. Parameters as in PyTorch's GRU:
/// <name>.input.weight [3H, I], <name>.input.bias [3H], <name>.recurrent.weight [3H, H], <name>.recurrent.bias [3H]; uniform in
/// +-1/sqrt(H).
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

/// Layer normalisation (core/autodiff/regularisation.hpp). Parameters: <name>.gain [C], initially 1, and <name>.bias [C],
/// initially 0.
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
