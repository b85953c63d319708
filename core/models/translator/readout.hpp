// The readout of the translator: u_t [H], from which the word y_t is predicted by softmax(W_o u_t + b_o).
//
//   readout   u_t
//   all       tanh(W_s s_t + b_s + W_z z_t + W_y E_y y_{t-1})
//   state     tanh(W_s s_t + b_s + W_z z_t)
//   context   tanh(W_z z_t + b_z)
//   maxout    the larger of each two neighbours of the sum in `all`: H / 2 numbers
#pragma once

#include <utility>
#include <vector>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/models/parts/sum.hpp"
#include "core/models/translator/setup.hpp"
#include "core/nn/layers.hpp"

namespace hardgrad::models::translator {

template <class T>
class Readout {
 public:
  Readout() = default;
  Readout(ParameterSet<T>& set, const Setup& is, Key init) : maxout_(is.readout == "maxout") {
    const bool of_context = is.readout == "context";
    if (!of_context) state_ = {set, "readout.state", is.H, is.H, init};
    context_ = {set, "readout.context", is.heads * is.C, is.H, init, of_context};
    if (is.readout == "all" || maxout_) word_ = {set, "readout.word", is.E, is.H, init, false};
    output_ = {set, "output", is.read, is.target_vocabulary, init};
  }

  /// Takes the state that scores read, in place of the newest.
  bool maxout() const { return maxout_; }
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
    const Var<T> sum = rest() + std::move(z);
    if (!maxout_) return tanh(sum);
    const auto pairs = reshape(sum, 2);
    const auto a = slice_columns(pairs, 0, 1), b = slice_columns(pairs, 1, 1);
    return reshape(add(b, relu(subtract(a, b))), sum.cols() / 2);
  }

 private:
  bool maxout_ = false;
  Linear<T> state_, context_, word_, output_;
};

}  // namespace hardgrad::models::translator
