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

enum class Law { geometric, act };
inline constexpr Named<Law> laws[] = {{"geometric", Law::geometric}, {"act", Law::act}};

enum class Ask { bits, step };
inline constexpr Named<Ask> asks[] = {{"bits", Ask::bits}, {"step", Ask::step}};

struct Config {
  int hidden = 64, steps = 10;
  Law law = Law::geometric;
  Ask ask = Ask::bits;
  bool first_flag = false;
  double epsilon = 0.01, prior = 0.2, beta = 0.01, tau = 0;

  void declare(Fields& field) {
    field(hidden, "hidden", 1, 4096, "units of the core");
    field(steps, "steps", 2, 1000, "largest number N of inner steps");
    field(law, "law", laws, "halting unit: probability of halting at a step once it is reached, or in total (act)");
    field(ask, "ask", asks, "choices: a bit after each step, or the last step at once");
    field(first_flag, "first_flag", "the input also tells whether the inner step is the first");
    field(epsilon, "epsilon", 0, 1, "law=act: it halts where at most this probability is left").above().below();
    field(prior, "prior", 0, 1, "rate of the geometric prior of the halting step (law=geometric)").above().below();
    field(beta, "beta", 0, 1e6, "weight of the divergence from this prior (law=geometric)");
    field(tau, "tau", 0, 1e6, "cost per step; law=act: weight of the ponder cost");
  }
};

/// The inner steps of the M states in which an outer step begins.
template <class T>
struct Thought {
  LstmState<T> s;                // s_1..s_N [M N, H], those of a state together
  HaltingLaw<T> law, posterior;  // posterior: if asked for
  int steps;                     // N

  /// The rows of step n = 0..N-1 of these states.
  std::vector<int> at(int n, const std::vector<int>& states) const {
    auto rows = states;
    for (int& row : rows) row = row * steps + n;
    return rows;
  }
  /// sum_n w_n x_n of the states `from` [K], with x = s.h or s.c: w [K, N]
  Var<T> mean(Var<T> w, const std::vector<int>& from, Var<T> x) const {
    return mix(w, x, std::span<const int>(from), Items(x.rows() / steps, steps));
  }
};

template <class T>
class Thinker {
 public:
  Thinker() = default;
  Thinker(ParameterSet<T>& set, const Config& config, const Blueprint& b)
      : most_(config.steps), first_flag_(config.first_flag) {
    const std::size_t H = config.hidden, I = b.dimensions.at("puzzle_width");
    if (config.law == Law::act) epsilon_ = config.epsilon;
    core_ = {set, "core", I + first_flag_, H, b.init};
    halt_ = {set, "halt", H, 1, b.init};
  }
  /// Adds a posterior that sees the one-hot labels, of this width.
  void add_posterior(ParameterSet<T>& set, std::size_t labels, Key init) {
    posterior_ = {set, "posterior.halt", core_.hidden + labels, 1, init};
  }

  /// From the inputs x [M, I] and s_0, if it is not 0; `labels` [M, P C], one-hot, if there is a posterior.
  Thought<T> operator()(Var<T> x, const LstmState<T>& before, Var<T> labels) const {
    auto& tape = *x.tape;
    const auto projected = [&](T flag) {
      return core_.project(first_flag_ ? concat_columns({x, tape.constant(x.rows(), 1, flag)}) : x);
    };
    const auto later = projected(T{0}), first = first_flag_ ? projected(T{1}) : later;
    const auto s = lstm_steps(first, later, tape.parameter(*core_.recurrent), before, most_);
    const auto each_step = [&](Var<T> units) { return reshape(units, most_); };
    Thought<T> thought{s, {each_step(halt_(s.h)), epsilon_}, {}, most_};  // u_n
    if (labels) {
      std::vector<int> whose;
      for (std::size_t row = 0; row < s.h.rows(); ++row) whose.push_back(static_cast<int>(row) / most_);
      const auto seen = concat_columns({s.h, gather_rows(labels, std::span<const int>(whose))});
      thought.posterior = {each_step(posterior_(seen)), epsilon_, &thought.law};  // v_n
    }
    return thought;
  }

 private:
  int most_ = 0;  // N
  bool first_flag_ = false;
  std::optional<double> epsilon_;  // law=act
  Lstm<T> core_;
  Linear<T> halt_, posterior_;
};

}  // namespace hardgrad::models::ponderer
