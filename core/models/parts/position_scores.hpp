// Scores e_ti of source positions i for a state s_t [H], from which a network chooses where to attend. a_i [C] are annotations.
//
//   score        e_ti, with q_t = W_q s_t and k_i = W_k a_i       source
//   additive     v . tanh(q_t + k_i + b_k)                        Bahdanau, Cho & Bengio 2015
//   general      s_t . k_i                                        Luong, Pham & Manning 2015
//   dot          s_t . k_i                                        the same, with W_k because a_i is wider than s_t
//   plain_dot    s_t . a_i, for C = H                             the same, as published
//   concat       v . tanh(q_t + k_i)                              the same: their W_a [s_t; a_i] is W_q s_t + W_k a_i
//   location     (W_l s_t)_i                                      the same (eq. 8): row i of W_l for position i
//   scaled_dot   q_t . k_i / sqrt(D)                              Vaswani et al. 2017
//
// With M heads, each has its own scores, from the h-th D = H / M of the H numbers of q, k, v and b_k (dot: of s as well), as in
// Vaswani et al.; with score=general from a matrix W^h_k [H, C] of its own.
//
// Parameters: attention.key.weight [H, C] (general: [M H, C]; plain_dot, location: none), attention.key.bias [H] (additive),
//   attention.query.weight [H, H] (additive, concat, scaled_dot), attention.score.weight [1, H] (v; additive, concat),
//   attention.position.weight [M S, H] (W_l^h of S positions, location)
#pragma once

#include <cmath>

#include "core/autodiff/attention.hpp"
#include "core/autodiff/elementwise.hpp"
#include "core/models/parts/heads.hpp"
#include "core/nn/layers.hpp"
#include "core/registry/fields.hpp"

namespace hardgrad {

enum class Score { additive, dot, general, scaled_dot, plain_dot, concat, location };
inline constexpr Named<Score> all_scores[] = {
    {"additive", Score::additive},   {"dot", Score::dot},       {"general", Score::general},  {"scaled_dot", Score::scaled_dot},
    {"plain_dot", Score::plain_dot}, {"concat", Score::concat}, {"location", Score::location}};

template <class T>
class PositionScores {
 public:
  PositionScores() = default;
  /// For annotations of C numbers, states of H, sources of at most `positions`, and M heads. plain_dot: C = H.
  PositionScores(ParameterSet<T>& set, Score score, std::size_t C, std::size_t H, std::size_t positions, std::size_t M,
                 Key init)
      : score_(score) {
    const bool mixes = score == Score::additive || score == Score::concat;
    if (score == Score::location)
      position_ = {set, "attention.position", H, M * positions, init, false};
    else if (score != Score::plain_dot)
      key_ = {set, "attention.key", C, score == Score::general ? M * H : H, init, score == Score::additive};
    if (mixes || score == Score::scaled_dot) query_ = {set, "attention.query", H, H, init, false};
    if (mixes) vector_ = &uniform_vector(set, "attention.score.weight", H, init);
  }

  /// k_i of the heads' items, from the annotations [items, C]; nothing for score=location.
  Var<T> keys(const Heads& heads, Var<T> a) const {
    if (score_ == Score::location) return {};
    return heads.keys(key_.weight ? key_(a) : a);
  }
  /// e_t [N M, S] of states s [N, H], which belong to `example` [N].
  Var<T> operator()(const Heads& heads, Var<T> keys, std::span<const int> example, Var<T> s) const {
    if (score_ == Score::location) return slice_columns(heads.queries(position_(s)), 0, heads.items().most());
    const auto head = heads.of(example);
    const std::span<const int> of(head);
    if (vector_) {  // additive, concat
      const auto v = heads.queries(s.tape->parameter(*vector_));
      return additive_scores(heads.queries(query_(s)), keys, v, of, heads.items());
    }
    if (score_ == Score::general) return dot_scores(heads.same_query(s), keys, of, heads.items());
    if (score_ == Score::dot || score_ == Score::plain_dot) return dot_scores(heads.queries(s), keys, of, heads.items());
    const auto q = heads.queries(query_(s));
    const auto scale = static_cast<T>(1 / std::sqrt(static_cast<double>(q.cols())));
    return dot_scores(affine(q, scale), keys, of, heads.items());
  }

 private:
  Score score_ = Score::additive;
  Linear<T> key_, query_, position_;
  const Parameter<T>* vector_ = nullptr;
};

}  // namespace hardgrad
