// Glimpses of an image: patches around the cells of a grid, their mean under weights, and a gaze at a place without a grid.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>
#include <string>
#include <vector>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/images.hpp"
#include "core/autodiff/require.hpp"
#include "core/autodiff/tape.hpp"
#include "core/models/parts/states.hpp"
#include "core/nn/layers.hpp"

namespace hardgrad {

// The glimpse sensor: patches of an image around the cells of a grid, at several scales.
//
// At cell (i, j) of a G x G grid and scale s, the window has side w = P 2^s. Its first row is
// floor(((2i + 1) height - w G + G) / (2 G)), its first column likewise. It is zero outside the image, and averaged over blocks
// of 2^s x 2^s pixels to P x P numbers.

struct Sensor {
  int grid, patch, scales, height, width;

  std::size_t cells() const { return static_cast<std::size_t>(grid) * grid; }
  /// Numbers per glimpse.
  std::size_t values() const { return static_cast<std::size_t>(scales) * patch * patch; }

  /// images [B, height, width] -> constant [R, values()]: the glimpse of image example[r] at cell[r].
  template <class T>
  Var<T> patches(Tape<T>& tape, const Array<double>& images, std::span<const int> example, std::span<const int> cell) const {
    auto out = tape.output(example.size(), values(), {});
    const auto to = tape.mutable_value(out);
    for (std::size_t r = 0; r < example.size(); ++r) glimpse(row_of(images, example[r]).data(), cell[r], to.row(r));
    return out;
  }

  /// The glimpses at all cells of all images: [B cells(), values()].
  template <class T>
  Var<T> every_patch(Tape<T>& tape, const Array<double>& images) const {
    std::vector<int> example(extent(images, 0) * cells()), cell(example.size());
    for (std::size_t n = 0; n < example.size(); ++n) {
      example[n] = static_cast<int>(n / cells());
      cell[n] = static_cast<int>(n % cells());
    }
    return patches(tape, images, example, cell);
  }

  /// First pixel of the window of side `window` at place i of an axis of `extent` pixels.
  int first(int i, int extent, int window) const {
    const int above = (2 * i + 1) * extent - window * grid + grid, below = 2 * grid;
    return above >= 0 ? above / below : -((-above + below - 1) / below);
  }

 private:
  template <class T>
  void glimpse(const double* image, int cell, T* out) const {
    for (int s = 0; s < scales; ++s, out += patch * patch) {
      const int block = 1 << s;
      const int top = first(cell / grid, height, patch * block), left = first(cell % grid, width, patch * block);
      const int begin = std::max(0, -left), end = std::max(begin, std::min(patch * block, width - left));  // within the image
      std::fill_n(out, patch * patch, T{0});
      for (int i = 0; i < patch; ++i) {
        T* row = out + i * patch;
        const int y0 = std::max(0, top + i * block), y1 = std::min(height, top + (i + 1) * block);
        if (block == 1) {
          for (int j = begin; j < end && y0 < y1; ++j) row[j] = static_cast<T>(image[y0 * width + left + j]);
          continue;
        }
        for (int j = begin / block; j * block < end; ++j) {
          double sum = 0;
          for (int y = y0; y < y1; ++y)
            for (int x = std::max(begin, j * block); x < std::min(end, (j + 1) * block); ++x)
              sum += image[y * width + left + x];
          row[j] = static_cast<T>(sum / (block * block));
        }
      }
    }
  }
};

/// x[r] = sum_c weights[r, c] (the sensor's window at cell c of image example[r]): images [B, height width], constant;
/// weights [R, cells] -> [R, P P]. The sensor must have one scale.
template <class T>
Var<T> mean_window(const Sensor& sensor, Var<T> images, std::span<const int> example, Var<T> weights) {
  require_shapes(sensor.scales == 1 && weights.cols() == sensor.cells() && weights.rows() == example.size(), "mean_window",
                 {images, weights});
  // f(first pixel in the window, first pixel in the image, count) for each line of cell c's window within the image.
  const auto lines = [sensor](int c, auto f) {
    const int top = sensor.first(c / sensor.grid, sensor.height, sensor.patch);
    const int left = sensor.first(c % sensor.grid, sensor.width, sensor.patch);
    const int from = std::max(0, -left), to = std::min(sensor.patch, sensor.width - left);
    for (int i = std::max(0, -top); i < std::min(sensor.patch, sensor.height - top); ++i)
      f(i * sensor.patch + from, (top + i) * sensor.width + left + from, to - from);
  };
  auto& tape = *weights.tape;
  const auto x = tape.output(example.size(), sensor.values(), {weights});
  const auto out = tape.mutable_value(x);
  std::fill_n(out.data, out.size(), T{0});
  for (std::size_t r = 0; r < example.size(); ++r)
    for (std::size_t c = 0; c < sensor.cells(); ++c) {
      const T w = weights.value()(r, c);
      if (w == 0) continue;  // a NaN weight is not skipped
      lines(static_cast<int>(c), [&, image = images.value().row(example[r])](int pixel, int of_image, int count) {
        for (int j = 0; j < count; ++j) out(r, pixel + j) += w * image[of_image + j];
      });
    }
  tape.on_backward({x}, [=, whose = tape.keep(example)](Tape<T>& tape) {
    const auto g = tape.cotangent(x);
    const auto pixels = images.value();
    tape.sink(weights).accumulate([&](std::size_t i) {
      const std::size_t r = i / sensor.cells();
      T sum = 0;
      lines(static_cast<int>(i % sensor.cells()), [&, image = pixels.row(whose[r])](int pixel, int of_image, int count) {
        for (int j = 0; j < count; ++j) sum += g(r, pixel + j) * image[of_image + j];
      });
      return sum;
    });
  });
  return x;
}

// The place of a glimpse without a grid: a Normal place in the image.
//
//   l_t ~ N(tanh(W_l h_{t-1} + b_l), scale^2) in each of its two columns (row, column); the image is [-1, 1]^2
//   posterior: N(tanh(W_q relu(U h_{t-1} + F[label]) + b_q), scale_q^2), log scale_q a learned row
//
// first=random: l_1 = 2 Phi(n) - 1 with n ~ N(0, 1), uniform in the image; clamped=true: l_t is clamped to it when it is seen.
// Glimpse network: E = W_e l; place_units=U: E = W_e relu(W_v l + b_v), U units.
//
// Mnih, Heess, Graves & Kavukcuoglu 2014, Recurrent models of visual attention, sec. 3: the location policy with a fixed
// deviation. The sensor is bilinear (core/autodiff/images.hpp); the image is zero outside its border.

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
      return typename NumberSite<T>::NormalParameters{h.tape->constant(n, 2), h.tape->constant(n, 2)};
    };
    NumberSite<T> site{.name = "place", .prior = standard(h.rows()), .state = h};
    if (posterior) site.posterior = [law = standard(states.by_example().size())] { return law; };
    return site;
  }
  /// The question for the next place of the states with h [N, H], after the locator's last layer [N, 2]; with `posterior`, also
  /// the posterior given the labels next(example).
  template <class F>
  NumberSite<T> site(const States<T>& states, Var<T> h, Var<T> located, bool posterior, F next) const {
    const auto mean = tanh(located);
    NumberSite<T> site{
        .name = "place", .prior = {mean, h.tape->constant(mean.rows(), 2, static_cast<T>(std::log(scale)))}, .state = h};
    if (posterior)
      site.posterior = [=, this] {
        auto& tape = *h.tape;
        const auto by_example = states.by_example();
        const auto hints = posterior_label(tape, std::span<const int>(by_example.each(next)));
        const auto seen = relu(by_example.after(posterior_state(h)) + hints);
        const std::vector<int> same(by_example.size(), 0);
        return typename NumberSite<T>::NormalParameters{
            tanh(posterior_mean(seen)), gather_rows(tape.parameter(*posterior_log_scale), std::span<const int>(same))};
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
