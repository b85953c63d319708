// The layers of the transformer: vectors that a token computes from its state, and the tokens before it, which it reads.
#pragma once

#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/autodiff/attention.hpp"
#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/product.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/models/parts/histories.hpp"
#include "core/models/parts/sum.hpp"
#include "core/models/transformer/config.hpp"
#include "core/nn/layers.hpp"

namespace hardgrad::models::transformer {

/// The angle by which place t = 0, 1, .. turns pair i of a vector of n numbers: t / 10000^(2 i / n). (Vaswani et al. 2017, sec.
/// 3.5, has its sine and cosine; Su et al. 2021, RoFormer, turns by it.)
inline double angle(int t, std::size_t pair, std::size_t n) {
  return t * std::pow(10000.0, -2 * static_cast<double>(pair) / static_cast<double>(n));
}

/// x [R, ..] in vectors of n numbers: each pair (x_2i, x_2i+1) of row r is turned by the angle of place[r] (Su et al. 2021).
template <class T>
Var<T> rotated(Var<T> x, std::span<const int> place, std::size_t n) {
  auto& tape = *x.tape;
  const std::size_t cols = x.cols();
  const auto cosine = tape.constant(x.rows(), cols), sine = tape.constant(x.rows(), cols), other = tape.constant(cols, cols);
  for (std::size_t r = 0; r < x.rows(); ++r)
    for (std::size_t i = 0; i < cols; ++i) {
      const double by = angle(place[r], i % n / 2, n);
      tape.mutable_value(cosine)(r, i) = static_cast<T>(std::cos(by));
      tape.mutable_value(sine)(r, i) = static_cast<T>(std::sin(by));
    }
  for (std::size_t i = 0; i < cols; i += 2) {  // (x_0, x_1) -> (-x_1, x_0)
    tape.mutable_value(other)(i, i + 1) = T{-1};
    tape.mutable_value(other)(i + 1, i) = T{1};
  }
  return add(multiply(x, cosine), multiply(linear(x, other), sine));
}

/// The vectors that tokens compute from their states h [N, H] in a layer, before they read.
template <class T>
struct Token {
  Var<T> u;                        ///< [N, H] LN(h)
  Var<T> query, key, value;        ///< [N, H]
  Var<T> index_query, index_gain;  ///< [N, D J C_I], [N, D J]; empty without an indexer
  Var<T> index_key;                ///< [N, C_I]
  /// Those of some rows.
  Token at(std::span<const int> rows) const {
    const auto some = [&](Var<T> x) { return x ? gather_rows(x, rows) : x; };
    return {some(u), some(query), some(key), some(value), some(index_query), some(index_gain), some(index_key)};
  }
};

/// The parameters of a layer.
template <class T>
class Layer {
 public:
  Layer(ParameterSet<T>& set, const std::string& name, const Sizes& sizes, Key init)
      : sizes_(sizes),
        before_(set, name + ".attention.norm", sizes.width),
        query_(set, name + ".attention.query", sizes.width, sizes.width, init, false),
        key_(set, name + ".attention.key", sizes.width, sizes.width, init, false),
        value_(set, name + ".attention.value", sizes.width, sizes.width, init, false),
        output_(set, name + ".attention.output", sizes.width, sizes.width, init) {
    const std::size_t H = sizes.width;
    if (sizes.inner > 0) {
      between_ = LayerNorm<T>(set, name + ".forward.norm", H);
      inner_ = {set, name + ".forward.inner", H, sizes.inner, init};
      outer_ = {set, name + ".forward.outer", sizes.inner, H, init};
    }
    if (sizes.scorer != Scorer::indexer) return;
    const std::size_t scores = static_cast<std::size_t>(sizes.choices) * sizes.index_heads;
    index_query_ = {set, "index." + name + ".query", H, scores * sizes.index_width, init, false};
    index_key_ = {set, "index." + name + ".key", H, sizes.index_width, init, false};
    index_gain_ = {set, "index." + name + ".gain", H, scores, init, false};
  }

  /// Of tokens with states h [N, H] at these places [N].
  Token<T> token(Var<T> h, std::span<const int> place) const {
    const bool turned = sizes_.places == Places::rotary;
    const auto at_place = [&](Var<T> x, std::size_t n) { return turned ? rotated(x, place, n) : x; };
    Token<T> token;
    token.u = before_(h);
    token.query = at_place(query_(token.u), sizes_.head);
    token.key = at_place(key_(token.u), sizes_.head);
    token.value = value_(token.u);
    if (!index_key_.weight) return token;
    const auto seen = sizes_.imitation > 0 ? h.tape->detach(token.u) : token.u;
    token.index_query = at_place(index_query_(seen), sizes_.index_width);
    token.index_key = at_place(index_key_(seen), sizes_.index_width);
    token.index_gain = index_gain_(seen);
    return token;
  }
  /// h + W_o c + b_o, then the feed-forward part.
  Var<T> after(Var<T> h, Var<T> read) const {
    h = add(h, output_(read));
    return sizes_.inner > 0 ? add(h, outer_(relu(inner_(between_(h))))) : h;
  }

 private:
  const Sizes& sizes_;
  LayerNorm<T> before_, between_;
  Linear<T> query_, key_, value_, output_, inner_, outer_, index_query_, index_key_, index_gain_;
};

/// The tokens so far of the run's states in a layer. A token stays in the block of tokens with which it was computed; a state
/// knows the rows of its history, so that nothing is copied when states branch.
template <class T>
class Past {
 public:
  explicit Past(const Sizes& sizes) : sizes_(&sizes) {}

  /// Adds a block of tokens, which are in no history yet; -> the row of its first token.
  int add(const Token<T>& block) {
    const int first = rows_;
    rows_ += static_cast<int>(block.key.rows());
    key_.push_back(reshape(block.key, sizes_->head));
    value_.push_back(reshape(block.value, sizes_->head));
    if (block.index_key) index_key_.push_back(block.index_key);
    return first;
  }
  /// [keys][N] the rows of the histories of N states.
  void set(std::vector<std::vector<int>> of_states) { of_ = std::move(of_states); }
  /// The states have one more token [N].
  void grow(std::vector<int> rows) { of_.push_back(std::move(rows)); }
  /// The states continue from these [N] of the states before.
  void move(const std::vector<int>& parent) {
    for (auto& rows : of_) rows = taken(rows, parent);
  }

  int keys() const { return static_cast<int>(of_.size()); }
  std::size_t states() const { return of_.empty() ? 0 : of_.back().size(); }
  /// The head of the token at place t of state n, an index of `values`.
  int head(std::size_t n, int t, std::size_t m) const {
    return of_[static_cast<std::size_t>(t)][n] * sizes_->heads + static_cast<int>(m);
  }
  /// [index, C] of heads; -1: zeros
  Var<T> values(const std::vector<int>& heads) const { return gather_rows(std::span<const Var<T>>(value_), std::span(heads)); }

  /// [N M keys] the heads of all tokens of each head of each state.
  std::vector<int> all() const {
    std::vector<int> heads;
    heads.reserve(states() * of_.size() * static_cast<std::size_t>(sizes_->heads));
    for (std::size_t n = 0; n < states(); ++n)
      for (int m = 0; m < sizes_->heads; ++m)
        for (const auto& rows : of_) heads.push_back(rows[n] * sizes_->heads + m);
    return heads;
  }
  /// s [N M, keys] of the queries [N, H].
  Var<T> scores(Var<T> query) const {
    const std::size_t rows = states() * static_cast<std::size_t>(sizes_->heads);
    const auto heads = all();
    const auto keys = gather_rows(std::span<const Var<T>>(key_), std::span<const int>(heads));
    const auto s = dot_scores(reshape(query, sizes_->head), keys, std::span<const int>(range(rows)), Items(rows, of_.size()));
    return affine(s, static_cast<T>(1 / std::sqrt(static_cast<double>(sizes_->head))));
  }
  /// I [N D, keys] of the indexer: sum_j w_j relu(q_j . k_s), scaled.
  Var<T> index_scores(const Token<T>& token) const {
    const std::size_t N = states(), each = token.index_gain.cols(), J = sizes_->index_heads;
    std::vector<int> rows;
    rows.reserve(N * of_.size());
    for (std::size_t n = 0; n < N; ++n)
      for (const auto& of : of_) rows.push_back(of[n]);
    const auto keys = gather_rows(std::span<const Var<T>>(index_key_), std::span<const int>(rows));
    const auto dots = dot_scores(reshape(token.index_query, sizes_->index_width), keys,
                                 std::span<const int>(each_line_of(N, each)), Items(N, of_.size()));
    const Var<T> sums = sum_of_rows(scale_rows(relu(dots), reshape(token.index_gain, 1)), range(N * each), J);
    return affine(sums, static_cast<T>(1 / std::sqrt(static_cast<double>(J * sizes_->index_width))));
  }

 private:
  /// [N lines] n of each of the lines of each of N states
  static std::vector<int> each_line_of(std::size_t N, std::size_t lines) {
    std::vector<int> state(N * lines);
    for (std::size_t i = 0; i < state.size(); ++i) state[i] = static_cast<int>(i / lines);
    return state;
  }

  const Sizes* sizes_;
  std::vector<Var<T>> key_, value_, index_key_;  // by block, in rows of one head
  int rows_ = 0;
  std::vector<std::vector<int>> of_;
};

}  // namespace hardgrad::models::transformer
