// The inner steps of the ponderer at one outer step: its states, its halting units and the laws of the halting step. Equations,
// names and shapes: ponderer.cpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "core/autodiff/attention.hpp"
#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/product.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/softmax.hpp"
#include "core/models/model.hpp"
#include "core/models/parts/histories.hpp"
#include "core/nn/layers.hpp"

namespace hardgrad {

// The distribution of the halting step over the inner steps of a recurrent network, from its halting units.
//
// The unit of step n = 1..N is u_n. The probability of halting at step n once it is reached is
//   geometric (Banino, Balaguer & Blundell 2021):  lambda_n = sig(u_n), lambda_N = 1
//   act (Graves 2016, sec. 2):                     lambda_n = sig(u_n) / r_{n-1} with r_n = 1 - sum_{m<=n} sig(u_m), and
//                                                  lambda_K = 1 at the first step K with r_K <= epsilon, or N
// and p_n = lambda_n prod_{m<n} (1 - lambda_m). With act p_n = sig(u_n) below K, and p_K is the rest.
//
// A posterior has the same lambda_n from other units, but the prior's last step. With act
//   lambda_n = sig(u_n) / (sig(u_n) + r_n) with r_n = max(r_{n-1} - sig(u_n), epsilon) before the prior's K, and lambda_K = 1.
// So its support is that of the prior, as wake-sleep and importance weights require.

/// The law of D examples. The class counts steps from 0.
template <class T>
class HaltingDistribution {
 public:
  HaltingDistribution() = default;
  /// From the units u [D, N]; act with this epsilon > 0, geometric without one. A posterior ends at the last step of its
  /// `prior`.
  HaltingDistribution(Var<T> u, std::optional<double> epsilon, const HaltingDistribution* prior = nullptr)
      : steps_(static_cast<int>(u.cols())), end_(prior ? prior->end_ : std::vector<int>(u.rows(), steps_ - 1)) {
    if (epsilon)
      logits_ = act(u, static_cast<T>(*epsilon), !prior);
    else  // odds sig(u_n) : 1 - sig(u_n)
      logits_ = concat_columns({reshape(u, 1), u.tape->constant(u.rows() * u.cols(), 1)});
    const std::vector<int> both(logits_.rows(), 2);
    log_lambda_ = log_softmax(logits_, std::span<const int>(both));
  }

  /// [D N, 2] logits of each step: halt, go on; those of an example together.
  Var<T> logits() const { return logits_; }
  /// [D N, 2] log lambda_n and log(1 - lambda_n) before the end.
  Var<T> log_lambda() const { return log_lambda_; }
  /// [D] the step at which halting is certain.
  const std::vector<int>& end() const { return end_; }
  /// [D, N] log p_n, 0 beyond the end.
  Var<T> log_p() const {
    const int D = static_cast<int>(end_.size());
    const auto halts = reshape(slice_columns(log_lambda_, 0, 1), steps_),
               goes_on = reshape(slice_columns(log_lambda_, 1, 1), steps_);
    std::vector<Var<T>> before{log_lambda_.tape->constant(D, 1)}, log_p;  // log prod_{m<n} (1 - lambda_m)
    for (int n = 0; n + 1 < steps_; ++n) {
      log_p.push_back(add(before[n], slice_columns(halts, n, 1)));
      before.push_back(add(before[n], slice_columns(goes_on, n, 1)));
    }
    const int first = D * static_cast<int>(log_p.size());  // row of `before`
    log_p.insert(log_p.end(), before.begin(), before.end());
    std::vector<int> row;
    for (int d = 0; d < D; ++d)
      for (int n = 0; n < steps_; ++n) row.push_back(n > end_[d] ? -1 : n * D + d + (n == end_[d] ? first : 0));
    return reshape(gather_rows(std::span<const Var<T>>(log_p), std::span<const int>(row)), steps_);
  }
  /// [D] sum_n n p_n, steps counted from 1.
  std::vector<double> mean_steps() const {
    std::vector<double> sums(end_.size());
    for (std::size_t d = 0; d < sums.size(); ++d) {
      double before = 0;
      for (int n = 0; n <= end_[d]; ++n) {
        const T* log_lambda = log_lambda_.value().row(d * steps_ + n);
        sums[d] += (n + 1) * std::exp(before + (n < end_[d] ? static_cast<double>(log_lambda[0]) : 0));
        before += static_cast<double>(log_lambda[1]);
      }
    }
    return sums;
  }
  /// [D, 1] K + p_K, steps counted from 1 (Graves 2016, sec. 2.1).
  Var<T> ponder_cost() const {
    const auto p = exp(log_p());
    const auto steps = p.tape->constant(p.rows(), 1);
    const auto each = range(p.rows());
    for (std::size_t d = 0; d < each.size(); ++d) p.tape->mutable_value(steps).data[d] = static_cast<T>(end_[d] + 1);
    return add(steps, pick(p, std::span<const int>(each), std::span<const int>(end_)));
  }

 private:
  /// Odds sig(u_n) : r_n. Beyond the end r_n is constant and not used. `ends`: finds the first step K with r_K <= epsilon.
  Var<T> act(Var<T> u, T epsilon, bool ends) {
    const std::size_t D = u.rows();
    auto left = u.tape->constant(D, 1, T{1});  // r_{n-1}
    const auto halts = sigmoid(u);
    std::vector<Var<T>> log_left;
    for (int n = 0; n < steps_; ++n) {
      left = affine(relu(affine(subtract(left, slice_columns(halts, n, 1)), T{1}, -epsilon)), T{1}, epsilon);
      for (std::size_t d = 0; ends && d < D; ++d)
        if (!(left.value().data[d] > epsilon)) end_[d] = std::min(end_[d], n);
      log_left.push_back(log(left));
    }
    std::vector<int> place;
    for (int d = 0; d < static_cast<int>(D); ++d)
      for (int n = 0; n < steps_; ++n) place.push_back(n * static_cast<int>(D) + d);
    return concat_columns({affine(softplus(affine(reshape(u, 1), T{-1})), T{-1}),
                           gather_rows(std::span<const Var<T>>(log_left), std::span<const int>(place))});
  }

  int steps_ = 0;  // N
  std::vector<int> end_;
  Var<T> logits_, log_lambda_;  // [D N, 2]
};

}  // namespace hardgrad

namespace hardgrad::models::ponderer {

enum class HaltingKind { geometric, act };
inline constexpr Named<HaltingKind> laws[] = {{"geometric", HaltingKind::geometric}, {"act", HaltingKind::act}};

enum class Ask { bits, step };
inline constexpr Named<Ask> asks[] = {{"bits", Ask::bits}, {"step", Ask::step}};

struct Config {
  int hidden = 64, steps = 10;
  HaltingKind law = HaltingKind::geometric;
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
  LstmState<T> s;                         // s_1..s_N [M N, H], those of a state together
  HaltingDistribution<T> law, posterior;  // posterior: if asked for
  int steps;                              // N

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
    if (config.law == HaltingKind::act) epsilon_ = config.epsilon;
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
