// The unit of a recurrent encoder or decoder, from the state h [H] and the input's contribution a to its gates.
//
//   lstm    core/nn/layers.hpp: a has the 4H numbers of i, f, g, o
//   gated   Cho et al. 2014, Learning phrase representations; Bahdanau, Cho & Bengio 2015, app. A.1: a has the 3H of r, z, n
//             r = sig(a_r + U_r h), z = sig(a_z + U_z h), n = tanh(a_n + U (r (.) h)), h' = (1 - z) h + z n
//           The reset gate r acts before the product; in PyTorch's GRU (core/nn/layers.hpp) after it.
//
// Parameters of gated: <name>.input.{weight [3H, I], bias [3H]}, <name>.gates.weight [2H, H] (U_r, U_z),
//   <name>.recurrent.weight [H, H] (U); uniform in +-1/sqrt(H).
#pragma once

#include <cmath>
#include <string>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/product.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/models/parts/states.hpp"
#include "core/nn/layers.hpp"
#include "core/registry/fields.hpp"

namespace hardgrad {

enum class UnitKind { lstm, gated };
inline constexpr Named<UnitKind> unit_kinds[] = {{"lstm", UnitKind::lstm}, {"gated", UnitKind::gated}};

/// States are those of an LSTM; gated units leave c empty.
template <class T>
class RecurrentUnit {
 public:
  RecurrentUnit() = default;
  RecurrentUnit(ParameterSet<T>& set, const std::string& name, std::size_t in, std::size_t hidden, Key init, UnitKind kind)
      : hidden_(hidden) {
    if (kind == UnitKind::lstm) {
      lstm_ = {set, name, in, hidden, init};
      return;
    }
    const auto add = [&](const std::string& of, std::vector<std::size_t> shape) {
      return &uniform_parameter(set, name + "." + of, std::move(shape), 1 / std::sqrt(static_cast<double>(hidden)), init);
    };
    input_.weight = add("input.weight", {3 * hidden, in});
    input_.bias = add("input.bias", {3 * hidden});
    gates_ = add("gates.weight", {2 * hidden, hidden});
    recurrent_ = add("recurrent.weight", {hidden, hidden});
  }

  explicit operator bool() const { return hidden_ > 0; }
  /// Numbers of a.
  std::size_t gates() const { return (gates_ ? 3 : 4) * hidden_; }
  /// x [R, I] -> a [R, gates]. It may be computed for many steps at once.
  Var<T> project(Var<T> x) const { return gates_ ? input_(x) : lstm_.project(x); }
  /// The state with this h [R, H].
  LstmState<T> start(Var<T> h) const { return {h, gates_ ? Var<T>{} : h.tape->constant(h.rows(), hidden_)}; }
  /// One step from a [R, gates] and the state before, or from zeros without one.
  LstmState<T> step(Var<T> a, const LstmState<T>& s) const {
    if (gates_) return {gated(a, s.h ? s.h : a.tape->constant(a.rows(), hidden_)), {}};
    if (!s.h) return lstm_cell(a, a.tape->constant(a.rows(), hidden_));
    return lstm_cell(add_linear(a, s.h, a.tape->parameter(*lstm_.recurrent)), s.c);
  }
  /// One step of `states`, from the state s before their choice.
  LstmState<T> step(const States<T>& states, Sum<T> a, const LstmState<T>& s) const {
    if (gates_) return step(Var<T>(std::move(a)), after(states, s));
    return lstm_step(lstm_, states, std::move(a), s);
  }
  static LstmState<T> after(const States<T>& states, const LstmState<T>& s) {
    return {states.after(s.h), s.c ? Var<T>(states.after(s.c)) : Var<T>{}};
  }

 private:
  Var<T> gated(Var<T> a, Var<T> h) const {
    const auto part = [&](Var<T> x, std::size_t k, std::size_t count) {
      return slice_columns(x, k * hidden_, count * hidden_);
    };
    const auto rz = sigmoid(add_linear(part(a, 0, 2), h, a.tape->parameter(*gates_)));
    const auto n = tanh(add_linear(part(a, 2, 1), multiply(part(rz, 0, 1), h), a.tape->parameter(*recurrent_)));
    return add(h, multiply(part(rz, 1, 1), subtract(n, h)));
  }

  std::size_t hidden_ = 0;
  Lstm<T> lstm_;
  Linear<T> input_;
  const Parameter<T>*gates_ = nullptr, *recurrent_ = nullptr;
};

}  // namespace hardgrad
