// The place of a glimpse without a grid: a Normal place in the image.
//
//   l_t ~ N(tanh(W_l h_{t-1} + b_l), scale^2) in each of its two columns (row, column); the image is [-1, 1]^2
//   posterior: N(tanh(W_q relu(U h_{t-1} + F[label]) + b_q), scale_q^2), log scale_q a learned row
//
// Mnih, Heess, Graves & Kavukcuoglu 2014, Recurrent models of visual attention, sec. 3: the location policy with a fixed
// deviation. The sensor is bilinear (core/autodiff/bilinear.hpp); the image is zero outside its border.
#pragma once

#include <cmath>
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
  Linear<T> locator = {}, where = {}, posterior_state = {}, posterior_mean = {};
  Embedding<T> posterior_label = {};
  const Parameter<T>* posterior_log_scale = nullptr;

  /// Parameters of a network of `hidden` units: locator.{weight [2, H], bias [2]}, glimpse.where.weight [H, 2]; of the
  /// posterior posterior.state.weight [D, H], posterior.label.weight [classes, D], posterior.mean.{weight [2, D], bias [2]},
  /// posterior.log_scale [1, 2].
  void add_where(ParameterSet<T>& set, std::size_t hidden, Key init) { where = {set, "glimpse.where", 2, hidden, init, false}; }
  void add_locator(ParameterSet<T>& set, std::size_t hidden, Key init) { locator = {set, "locator", hidden, 2, init}; }
  void add_posterior(ParameterSet<T>& set, std::size_t hidden, std::size_t features, std::size_t classes, Key init) {
    posterior_state = {set, "posterior.state", hidden, features, init, false};
    posterior_label = {set, "posterior.label", classes, features, init};
    posterior_mean = {set, "posterior.mean", features, 2, init};
    auto& log_scale_q = set.add("posterior.log_scale", {1, 2});
    for (T& value : log_scale_q.value.data) value = static_cast<T>(std::log(scale));
    posterior_log_scale = &log_scale_q;
  }

  /// The question for the next place of the states with h [N, H]; with `posterior`, also the posterior given the labels
  /// next(example).
  template <class F>
  NumberSite<T> site(const States<T>& states, Var<T> h, bool posterior, F next) const {
    const auto mean = tanh(locator(h));
    NumberSite<T> site{
        .name = "place", .law = {mean, h.tape->constant(mean.rows(), 2, static_cast<T>(std::log(scale)))}, .state = h};
    if (posterior)
      site.posterior = [=, this] {
        auto& tape = *h.tape;
        const auto by_example = states.by_example();
        const auto hints = posterior_label(tape, std::span<const int>(by_example.each(next)));
        const auto seen = relu(Var<T>(by_example.after(posterior_state(h)) + hints));
        const std::vector<int> same(by_example.size(), 0);
        return typename NumberSite<T>::Law{tanh(posterior_mean(seen)),
                                           gather_rows(tape.parameter(*posterior_log_scale), std::span<const int>(same))};
      };
    return site;
  }
  /// The patches of the images at the chosen places.
  Var<T> look(const Array<double>& images, const States<T>& place) const {
    return bilinear_patches(images, place.example(), place.numbers(), patch, scales);
  }
};

}  // namespace hardgrad
