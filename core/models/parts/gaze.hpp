// The place of a glimpse without a grid: a Normal place in the image.
//
//   l_t ~ N(tanh(W_l h_{t-1} + b_l), scale^2) in each of its two columns (row, column); the image is [-1, 1]^2
//   posterior: N(tanh(W_q relu(U h_{t-1} + F[label]) + b_q), scale_q^2), log scale_q a learned row
//
// first=random: l_1 = 2 Phi(n) - 1 with n ~ N(0, 1), uniform in the image; clamped=true: l_t is clamped to it when it is seen.
// Glimpse network: E = W_e l; place_units=U: E = W_e relu(W_v l + b_v), U units.
//
// Mnih, Heess, Graves & Kavukcuoglu 2014, Recurrent models of visual attention, sec. 3: the location policy with a fixed
// deviation. The sensor is bilinear (core/autodiff/bilinear.hpp); the image is zero outside its border.
#pragma once

#include <cmath>
#include <numbers>
#include <string>

#include "core/autodiff/bilinear.hpp"
#include "core/autodiff/elementwise.hpp"
#include "core/models/parts/states.hpp"
#include "core/nn/layers.hpp"

namespace hardgrad {

template <class T>
struct Gaze {
  int patch, scales;
  double scale;
  bool clamped;
  std::size_t place_units;  // 0: E is linear
  Linear<T> place = {}, where = {}, posterior_state = {}, posterior_mean = {};
  Embedding<T> posterior_label = {};
  const Parameter<T>* posterior_log_scale = nullptr;

  /// Parameters of a network of `hidden` units: glimpse.where.weight [H, 2] (place_units=U: [H, U], and glimpse.place.{weight
  /// [U, 2], bias [U]}); of the posterior posterior.state.weight [D, H], posterior.label.weight [classes, D],
  /// posterior.mean.{weight [2, D], bias [2]}, posterior.log_scale [1, 2].
  void add_where(ParameterSet<T>& set, std::size_t hidden, Key init) {
    if (place_units > 0) place = {set, "glimpse.place", 2, place_units, init};
    where = {set, "glimpse.where", place_units > 0 ? place_units : 2, hidden, init, false};
  }
  void add_posterior(ParameterSet<T>& set, std::size_t hidden, std::size_t features, std::size_t classes, Key init) {
    posterior_state = {set, "posterior.state", hidden, features, init, false};
    posterior_label = {set, "posterior.label", classes, features, init};
    posterior_mean = {set, "posterior.mean", features, 2, init};
    auto& log_scale_q = set.add("posterior.log_scale", {1, 2});
    for (T& value : log_scale_q.value) value = static_cast<T>(std::log(scale));
    posterior_log_scale = &log_scale_q;
  }

  /// The question for a random first place of the states with h [N, H]. Nothing is learned: a posterior is the prior.
  NumberSite<T> random_site(const States<T>& states, Var<T> h, bool posterior) const {
    const auto standard = [&](std::size_t n) {
      return typename NumberSite<T>::Law{h.tape->constant(n, 2), h.tape->constant(n, 2)};
    };
    NumberSite<T> site{.name = "place", .law = standard(h.rows()), .state = h};
    if (posterior) site.posterior = [law = standard(states.by_example().size())] { return law; };
    return site;
  }
  /// The question for the next place of the states with h [N, H], after the locator's last layer [N, 2]; with `posterior`, also
  /// the posterior given the labels next(example).
  template <class F>
  NumberSite<T> site(const States<T>& states, Var<T> h, Var<T> located, bool posterior, F next) const {
    const auto mean = tanh(located);
    NumberSite<T> site{
        .name = "place", .law = {mean, h.tape->constant(mean.rows(), 2, static_cast<T>(std::log(scale)))}, .state = h};
    if (posterior)
      site.posterior = [=, this] {
        auto& tape = *h.tape;
        const auto by_example = states.by_example();
        const auto hints = posterior_label(tape, std::span<const int>(by_example.each(next)));
        const auto seen = relu(by_example.after(posterior_state(h)) + hints);
        const std::vector<int> same(by_example.size(), 0);
        return typename NumberSite<T>::Law{tanh(posterior_mean(seen)),
                                           gather_rows(tape.parameter(*posterior_log_scale), std::span<const int>(same))};
      };
    return site;
  }
  /// The places l [N, 2] of the chosen numbers; of a random first place without a derivative.
  Var<T> at(const States<T>& chosen, bool random) const {
    const auto l = chosen.numbers();
    if (!random) return clamped ? affine(subtract(relu(affine(l, T{1}, T{1})), relu(affine(l, T{1}, T{-1}))), T{1}, T{-1}) : l;
    const auto uniform = l.tape->constant(l.rows(), 2);
    const auto to = l.tape->mutable_value(uniform);
    for (std::size_t i = 0; i < l.value().size(); ++i) to.data[i] = std::erf(l.value().data[i] / std::numbers::sqrt2_v<T>);
    return uniform;
  }
  /// The patches of the images at the places l of the chosen states.
  Var<T> look(const Array<double>& images, const States<T>& chosen, Var<T> l) const {
    return bilinear_patches(images, chosen.example(), l, patch, scales);
  }
  /// E [N, H] of the places l.
  Var<T> placed(Var<T> l) const { return where(place_units > 0 ? relu(place(l)) : l); }
};

}  // namespace hardgrad
