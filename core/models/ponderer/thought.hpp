// The inner steps of the ponderer at one outer step: its states, its halting units and the laws of the halting step. Equations,
// names and shapes: ponderer.cpp.
#pragma once

#include <optional>
#include <vector>

#include "core/autodiff/attention.hpp"
#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/product.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/models/model.hpp"
#include "core/models/parts/halting.hpp"
#include "core/models/parts/indices.hpp"
#include "core/nn/layers.hpp"

namespace hardgrad::models::ponderer {

/// Row m N + n is row place[n][m] of block n = 0..N-1.
template <class T>
Var<T> in_turn(const std::vector<Var<T>>& blocks, const std::vector<std::vector<int>>& place) {
  const std::size_t N = blocks.size();
  std::vector<int> index(N * place[0].size());
  for (std::size_t n = 0, before = 0; n < N; before += blocks[n++].rows())
    for (std::size_t m = 0; m < place[n].size(); ++m) index[m * N + n] = static_cast<int>(before) + place[n][m];
  return gather_rows(std::span<const Var<T>>(blocks), std::span<const int>(index));
}

/// The inner steps of the M states in which an outer step begins.
template <class T>
struct Thought {
  std::vector<Var<T>> h;         // h of s_1..s_N, each [M, H]
  LstmState<T> all;              // all s_n [M N, H], those of each state together; no cells if no outer step follows
  HaltingLaw<T> law, posterior;  // posterior: if asked for

  /// sum_n w_n s_n of the states `from` [K]: w [K, N]
  LstmState<T> mean(Var<T> w, const std::vector<int>& from) const {
    const Items steps(all.h.rows() / w.cols(), w.cols());
    const auto of = [&](Var<T> x) { return x ? mix(w, x, std::span<const int>(from), steps) : Var<T>{}; };
    return {of(all.h), of(all.c)};
  }
};

template <class T>
class Thinker {
 public:
  Thinker() = default;
  Thinker(ParameterSet<T>& set, const Blueprint& b)
      : most_(b.settings.integer("steps")),
        first_flag_(b.settings.flag("first_flag")),
        keeps_cells_(b.dimensions.contains("puzzle_steps") && b.dimensions.at("puzzle_steps") > 1) {
    const std::size_t H = b.settings.integer("hidden"), I = b.dimensions.at("puzzle_width");
    if (b.settings.text("law") == "act") epsilon_ = b.settings.real("epsilon");
    core_ = {set, "core", I + first_flag_, H, b.init};
    halt_ = {set, "halt", H, 1, b.init};
  }
  /// Adds a posterior that sees the one-hot labels, of this width.
  void add_posterior(ParameterSet<T>& set, std::size_t labels, Key init) {
    posterior_ = {set, "posterior.halt", core_.hidden + labels, 1, init};
  }

  LstmState<T> zero(Tape<T>& tape, std::size_t states) const { return core_.zero(tape, states); }
  /// From the inputs x [M, I] and s_0; `labels` [M, P C], one-hot, if there is a posterior.
  Thought<T> operator()(Var<T> x, LstmState<T> s, Var<T> labels) const {
    auto& tape = *x.tape;
    Thought<T> thought;
    const auto recurrent = tape.parameter(*core_.recurrent);
    const auto projected = [&](T flag) {
      return core_.project(first_flag_ ? concat_columns({x, tape.constant(x.rows(), 1, flag)}) : x);
    };
    const auto later = projected(T{0}), first = first_flag_ ? projected(T{1}) : later;
    std::vector<Var<T>> c, u, v;
    for (int n = 0; n < most_; ++n) {
      s = lstm_cell(add(n == 0 ? first : later, linear(s.h, recurrent)), s.c);  // s_n
      thought.h.push_back(s.h);
      c.push_back(s.c);
      if (labels) v.push_back(posterior_(concat_columns({s.h, labels})));
    }
    const std::vector<std::vector<int>> every(most_, range(x.rows()));
    thought.all.h = in_turn(thought.h, every);
    if (keeps_cells_) thought.all.c = in_turn(c, every);
    const auto halting = reshape(halt_(thought.all.h), most_);
    for (int n = 0; n < most_; ++n) u.push_back(slice_columns(halting, n, 1));  // u_n
    thought.law = {u, epsilon_};
    if (labels) thought.posterior = {v, epsilon_, &thought.law};
    return thought;
  }

 private:
  int most_ = 0;  // N
  bool first_flag_ = false, keeps_cells_ = false;
  std::optional<double> epsilon_;  // law=act
  Lstm<T> core_;
  Linear<T> halt_, posterior_;
};

}  // namespace hardgrad::models::ponderer
