// The layers of the translator: scores of source positions, local windows, and the readout.
#pragma once

#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "core/autodiff/attention.hpp"
#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/product.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/models/parts/heads.hpp"
#include "core/models/parts/sum.hpp"
#include "core/nn/layers.hpp"
#include "core/registry/fields.hpp"

namespace hardgrad {

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

// Local attention: a window around one place p_t of the source at each step (Luong, Pham & Manning 2015, Effective approaches to
// attention-based neural machine translation, sec. 3.2). Positions i count from 1 to the length L.
//
//   local=monotonic   p_t = min(t, L)                                 local-m; the same for all heads
//   local=predictive  p^h_t = L sigmoid(v^h_p . tanh(W_p s_t))        local-p (eq. 9), of each head h; s_t is the state that
//                                                                     e_t reads (order=context_first: s_{t-1})
//                     e_ti - (i - p_t)^2 / (2 sigma^2), sigma = window / 2, in place of e_ti (eq. 10)
//   both              positions with |i - p_t| > window have probability 0
// The scores of a learned posterior get the same Gaussian and the same window, from the same p_t.
//
// Parameters (local=predictive; M heads): attention.place.weight [H, H] (W_p), attention.place.score.weight [M, H] (v^h_p).
//
// Departures: the weights of a choice must sum to 1, so the Gaussian multiplies them before they are normalised, in the paper
// after. The window of local-m stays at the last position when t is beyond it.

enum class Local { none, monotonic, predictive };
inline constexpr Named<Local> locals[] = {
    {"none", Local::none}, {"monotonic", Local::monotonic}, {"predictive", Local::predictive}};

struct WindowConfig {
  Local local = Local::none;
  int window = 10;

  void declare(Fields& field) {
    field(local, "local", locals,
          "positions that have probability: all, a window that moves on with each word (local-m), or a "
          "window at a predicted place (local-p)");
    field(window, "window", 1, 1000, "local: positions on either side of the window's place");
  }
};

template <class T>
class LocalWindow {
 public:
  /// Everywhere.
  LocalWindow() = default;
  /// For `heads` heads of a network of `hidden` units. local=predictive: parameters attention.place.weight (W_p) [H, H],
  /// attention.place.score.weight (v_p of each head) [heads, H].
  LocalWindow(ParameterSet<T>& set, const WindowConfig& config, std::size_t hidden, int heads, Key init)
      : heads_(heads), window_(config.local == Local::none ? 0 : config.window) {
    if (config.local != Local::predictive) return;
    place_ = {set, "attention.place", hidden, hidden, init, false};
    score_ = {set, "attention.place.score", hidden, static_cast<std::size_t>(heads), init, false};
  }

  /// False: everywhere.
  explicit operator bool() const { return window_ > 0; }
  /// The scores e [N M, S] of all heads at step t = 1 .., of states s [N, H] whose sources have `length` [N] positions.
  Var<T> operator()(Var<T> e, Var<T> s, std::span<const int> length, int t) const {
    auto& tape = *e.tape;
    const auto place = tape.constant(e.rows(), 1);
    for (std::size_t r = 0; r < e.rows(); ++r) {
      const int L = length[r / heads_];
      tape.mutable_value(place)(r, 0) = static_cast<T>(score_.weight ? L : std::min(t, L));
    }
    Var<T> p = place;
    if (score_.weight) {
      p = multiply(sigmoid(reshape(score_(tanh(place_(s))), 1)), place);
      const auto across = tape.constant(e.cols(), 1);  // - (i - p)^2 / 2 is i p - i^2 / 2, but for a constant of the row
      for (std::size_t i = 0; i < e.cols(); ++i) tape.mutable_value(across)(i, 0) = static_cast<T>((i + 1) * precision());
      e = add(e, linear(p, across));
    }
    const auto lowered = tape.constant(e.rows(), e.cols());
    for (std::size_t r = 0; r < e.rows(); ++r)
      for (std::size_t i = 0; i < e.cols(); ++i) {
        const auto position = static_cast<double>(i + 1);
        double by = score_.weight ? position * position / 2 * precision() : 0;
        if (std::abs(position - p.value()(r, 0)) > window_) by += outside;
        tape.mutable_value(lowered)(r, i) = static_cast<T>(-by);
      }
    return add(e, lowered);
  }

 private:
  static constexpr double outside = 1e6;  // below all scores: probability 0, and EnumerateHandler leaves it out
  double precision() const { return 4.0 / (window_ * window_); }

  int heads_ = 1, window_ = 0;  // 0: everywhere
  Linear<T> place_, score_;
};

}  // namespace hardgrad

namespace hardgrad::models::translator {

// The readout of the translator: u_t [H], from which the word y_t is predicted by softmax(W_o u_t + b_o).
//
//   u_t = f(W_s s_t + b_s + W_z z_t + W_y E_y y_{t-1}), where a readout may lack a term; without that of s_t: W_z z_t + b_z

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
