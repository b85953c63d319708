// The readout of the translator: u_t [H], from which the word y_t is predicted by softmax(W_o u_t + b_o).
//
//   u_t = f(W_s s_t + b_s + W_z z_t + W_y E_y y_{t-1}), where a readout may lack a term; without that of s_t: W_z z_t + b_z
#pragma once

#include <utility>
#include <vector>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/models/parts/sum.hpp"
#include "core/nn/layers.hpp"

namespace hardgrad::models::translator {

/// f of a readout, for float and double.
class Activation {
 public:
  template <class F>
  constexpr Activation(F f) : of_float_(f), of_double_(f) {}
  Var<float> operator()(Var<float> x) const { return of_float_(x); }
  Var<double> operator()(Var<double> x) const { return of_double_(x); }

 private:
  Var<float> (*of_float_)(Var<float>);
  Var<double> (*of_double_)(Var<double>);
};

inline constexpr Activation squashed = [](auto sum) { return tanh(sum); };
/// The larger of each two neighbours.
inline constexpr Activation maxout = [](auto sum) {
  const auto pairs = reshape(sum, 2);
  const auto a = slice_columns(pairs, 0, 1), b = slice_columns(pairs, 1, 1);
  return reshape(add(b, relu(subtract(a, b))), sum.cols() / 2);
};

enum class ReadState { none, newest, scored };  // scored: the one that e_t reads, s_{t-1} with order=context_first

struct ReadoutKind {
  const char* name;
  ReadState state;
  bool word;
  Activation f;
  std::size_t pooled = 1;  // numbers of the sum for each of u_t
};
/// context: a word depends on the chosen position only, as in the IBM models (Brown et al. 1993), whose translation table this
/// network and whose distortion the attention replaces.
inline constexpr ReadoutKind readouts[] = {{"all", ReadState::newest, true, squashed},
                                           {"context", ReadState::none, false, squashed},
                                           {"state", ReadState::newest, false, squashed},
                                           {"maxout", ReadState::scored, true, maxout, 2}};

template <class T>
class Readout {
 public:
  Readout() = default;
  /// For states of H numbers, contexts of C, words of E, and an output of V.
  Readout(ParameterSet<T>& set, const ReadoutKind& kind, std::size_t H, std::size_t C, std::size_t E, std::size_t V, Key init)
      : kind_(&kind) {
    const bool of_state = kind.state != ReadState::none;
    if (of_state) state_ = {set, "readout.state", H, H, init};
    context_ = {set, "readout.context", C, H, init, !of_state};
    if (kind.word) word_ = {set, "readout.word", E, H, init, false};
    output_ = {set, "output", H / kind.pooled, V, init};
  }

  bool reads_scored() const { return kind_->state == ReadState::scored; }
  const Linear<T>& context() const { return context_; }  ///< W_z, without its bias in `operator()`
  const Linear<T>& output() const { return output_; }    ///< W_o, b_o
  /// W_y y of embedded words; nothing if no word is read.
  Var<T> project(Var<T> y) const { return word_.weight ? word_(y) : Var<T>{}; }

  /// u_t of N rows: `z` is W_z z_t, `state(W_s, b_s)` and `word()` are the other terms, asked for if there are such terms.
  template <class State, class Word>
  Var<T> operator()(Tape<T>& tape, std::size_t N, Sum<T> z, State state, Word word) const {
    const auto rest = [&] {
      if (!state_.weight) return Sum<T>(tape.parameter(*context_.bias), std::vector<int>(N, 0));
      const Sum<T> of_state = state(state_);
      return word_.weight ? of_state + word() : of_state;
    };
    return kind_->f(Var<T>(rest() + std::move(z)));
  }

 private:
  const ReadoutKind* kind_ = nullptr;
  Linear<T> state_, context_, word_, output_;
};

}  // namespace hardgrad::models::translator
