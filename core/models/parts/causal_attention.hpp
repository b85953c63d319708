// A causal layer of attention: every token reads itself and the tokens before it. One head, one layer.
//
//   q = Q u_t;  k_j = K u_j;  v_j = V u_j;  a = softmax_j(q . k_j / sqrt(H)) over j <= t
//   c = u_t + sum_j a_j v_j;  s_t = c + O tanh(I c + b) + d                      Vaswani et al. 2017, without normalisation
#pragma once

#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "core/autodiff/attention.hpp"
#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/product.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/softmax.hpp"
#include "core/nn/layers.hpp"

namespace hardgrad {

/// Its weights on a tape. The tokens so far of N states are one matrix [N, H + 2 S H]: u_t, then k and v of S tokens, the
/// newest first. So it moves with the states, and a state has its own number of tokens: those after them are never read.
template <class T>
struct CausalAttention {
  Var<T> query, key, value, inner, inner_bias, outer, outer_bias;

  /// Parameters: <name>.{query,key,value}.weight [H, H], <name>.{inner,outer}.{weight [H, H],bias [H]}.
  static void add_parameters(ParameterSet<T>& set, const std::string& name, std::size_t H, Key init) {
    for (const char* of : {".query", ".key", ".value"}) Linear<T>(set, name + of, H, H, init, false);
    for (const char* of : {".inner", ".outer"}) Linear<T>(set, name + of, H, H, init);
  }
  std::size_t width() const { return query.rows(); }

  /// No tokens: [N, H], only read by `with`.
  Var<T> nothing(Tape<T>& tape, std::size_t states) const { return tape.constant(states, width()); }
  /// One more token u [N, H].
  Var<T> with(Var<T> tokens, Var<T> u) const {
    const std::size_t H = width(), S = count(tokens);
    const auto k = linear(u, key), v = linear(u, value);
    if (S == 0) return concat_columns({u, k, v});
    return concat_columns({u, k, slice_columns(tokens, H, S * H), v, slice_columns(tokens, H + S * H, S * H)});
  }
  /// s_t [N, H] of the newest token, which reads the `newest` [N] tokens.
  Var<T> read(Var<T> tokens, std::span<const int> newest) const {
    const std::size_t H = width(), S = count(tokens), N = tokens.rows();
    const auto u = slice_columns(tokens, 0, H);
    std::vector<int> own(N);
    std::iota(own.begin(), own.end(), 0);
    const Items items(N, S);
    const auto scores = dot_scores(linear(u, query), reshape(slice_columns(tokens, H, S * H), H), own, items);
    const auto a = probabilities(log_softmax(affine(scores, static_cast<T>(1 / std::sqrt(static_cast<double>(H)))), newest));
    const auto c = add(u, mix(a, reshape(slice_columns(tokens, H + S * H, S * H), H), own, items));
    return add(c, linear(tanh(linear(c, inner, inner_bias)), outer, outer_bias));
  }

 private:
  std::size_t count(Var<T> tokens) const { return (tokens.cols() / width() - 1) / 2; }
};

/// The place t = 0 .. of a token, to be added to its embedding: [1, width], sin(t / 10000^(i / width)) in columns i = 0, 2 ..,
/// and the cosine of the same angle beside it (Vaswani et al. 2017, sec. 3.5).
template <class T>
Var<T> place_row(Tape<T>& tape, std::size_t t, std::size_t width) {
  const auto row = tape.constant(1, width);
  for (std::size_t i = 0; i < width; ++i) {
    const double angle =
        static_cast<double>(t) * std::pow(10000.0, -static_cast<double>(i - i % 2) / static_cast<double>(width));
    tape.mutable_value(row)(0, i) = static_cast<T>(i % 2 == 0 ? std::sin(angle) : std::cos(angle));
  }
  return row;
}

}  // namespace hardgrad
