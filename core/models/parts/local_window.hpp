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
#pragma once

#include <cmath>
#include <span>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/product.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/nn/layers.hpp"
#include "core/registry/fields.hpp"

namespace hardgrad {

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
