// Scores of a learned posterior q(i_t | x, y) over the places i where a network may attend while it writes y:
//   v_q . tanh(W_qs s_t + W_qy r_t + W_qk a_i + b_qk)          r_t [.]: target_reading.hpp; a_i [C] annotations, s_t [H]
// With several heads the H numbers are divided among them (heads.hpp).
//
// Parameters: posterior.<key>.{weight [H, C], bias [H]} (W_qk, b_qk), posterior.state.weight [H, H] (W_qs),
//   posterior.{embedding.weight, word.weight (W_qy)} and, for the whole sentence, posterior.sentence.* (target_reading.hpp),
//   posterior.score.weight [1, H] (v_q)
#pragma once

#include <string>

#include "core/models/parts/heads.hpp"
#include "core/models/parts/states.hpp"
#include "core/models/parts/target_reading.hpp"

namespace hardgrad {

template <class T>
class PosteriorScores {
 public:
  PosteriorScores() = default;
  /// V target words, embedded by E numbers. `part`: what r_t reads of the target.
  PosteriorScores(ParameterSet<T>& set, const std::string& key, std::size_t C, std::size_t V, std::size_t E, std::size_t H,
                  Key init, TargetPart part)
      : key_(set, "posterior." + key, C, H, init),
        state_(set, "posterior.state", H, H, init, false),
        target_(set, "posterior", V, E, H, init, part),
        vector_(&uniform_vector(set, "posterior.score.weight", H, init)) {}

  /// Values of a batch that do not depend on choices.
  struct Read {
    Heads heads;
    Var<T> keys;                             ///< W_qk a_i + b_qk of the heads' places
    typename TargetReading<T>::Read target;  ///< W_qy r_t
  };
  Read read(const Heads& heads, Var<T> annotations, const Batch& data) const {
    const auto keys = heads.keys(key_(annotations));
    return {heads, keys, target_(*annotations.tape, data)};
  }
  /// [N M, places] of states s [N, H] at step t = 0 ..
  Var<T> operator()(const Read& x, const States<T>& states, Var<T> s, int t) const {
    const Sum<T> target(x.target.rows, states.each([&](int b) { return x.target.row(b, t); }));
    const Var<T> query = Sum<T>(state_(s)) + target;
    const auto v = x.heads.queries(s.tape->parameter(*vector_));
    return additive_scores(x.heads.queries(query), x.keys, v, std::span<const int>(x.heads.of(states.example())),
                           x.heads.items());
  }

 private:
  Linear<T> key_, state_;
  TargetReading<T> target_;
  const Parameter<T>* vector_ = nullptr;
};

}  // namespace hardgrad
