// Layers: parameters with a name, an initialisation and a formula.
#pragma once

#include <string>
#include <vector>

#include "core/autodiff/lstm.hpp"
#include "core/autodiff/parameter.hpp"
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

}  // namespace hardgrad
