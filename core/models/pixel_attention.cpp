// Pixel attention: finds a digit among all places of a canvas, and autoencodes the window around the chosen place.
//
// Canvas y [H, W] of bits. Each place c of a G x G grid has a window of P x P pixels around it, zero outside the canvas. The
// sensor places the windows (parts/glimpses.hpp; G = H = W: at every pixel, first row i + 1 - P/2 for even P).
//   a      = K_n * relu(.. relu(K_1 * y + k_1) ..) + k_n     n convolutions, 3 x 3 pixels, no padding; the last: one channel
//   e      = W_e a + b_e                                     a score for every place [G G]
//   c      ~ softmax(e)                                      the choice, site `place`
//   x      = the window of y around c                        relaxed weights w: sum_c w_c (window around c)
//   (m, s) = W_2 tanh(W_1 x + b_1) + b_2                     mean and log scale of the code
//   z      = m + exp(s) n                                    n ~ Normal(0, 1), the example's field "noise"; without it z = m
//   l      = W_4 tanh(W_3 z + b_3) + b_4                     log odds of the window's pixels
//   loss   = - log p(y | c, z) + KL(Normal(m, exp s) || Normal(0, 1)) + beta KL(softmax(e) || uniform)
// The loss is the negative evidence lower bound of the canvas. Pixels in the window are Bernoulli(sig(l)), those outside are
// Bernoulli(background): each pixel of ink outside the window costs -log(background), each empty one -log(1 - background). A
// window that extends beyond the canvas has empty pixels there, whose cost under the decoder counts as well; outside are the
// pixels of the canvas that the window does not cover. Without noise the code has no divergence: a plain autoencoder.
//
// As the noise is part of the data, the loss is a function of the place, and its exact gradient can be enumerated. Its mean
// over the noise is the bound, as with one reparameterised draw (Kingma & Welling 2014).
// Posterior: none beside softmax(e), which already is q(c | y), with its divergence in the loss. Targets that draw from a
// learned posterior are rejected, and targets that need a likelihood: an average of p(y | c) over c drawn knowing y is none.
//
// Parameters (C channels, h = hidden, D = code, N = (H - 2n)(W - 2n)):
//   attention.1.{weight [C, 3 3 1] (K_1), bias [C] (k_1)}, attention.2.{weight [C, 3 3 C], bias [C]} ..,
//   attention.n.{weight [1, 3 3 C], bias [1]}, attention.place.{weight [G G, N] (W_e), bias [G G] (b_e)}
//   encoder.1.{weight [h, P P], bias [h]}, encoder.2.{weight [2D, h], bias [2D]}
//   decoder.1.{weight [h, D], bias [h]}, decoder.2.{weight [P P, h], bias [P P]}
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/images.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/models/model.hpp"
#include "core/models/parts/fields.hpp"
#include "core/models/parts/glimpses.hpp"
#include "core/models/parts/states.hpp"

namespace hardgrad::models::pixel_attention {
namespace {

/// The scores e of canvases: convolutions, then a linear layer.
template <class T>
class Scorer {
 public:
  Scorer() = default;
  Scorer(ParameterSet<T>& set, const std::string& name, std::size_t layers, std::size_t channels, const Sensor& canvas,
         Key init)
      : height_(canvas.height), width_(canvas.width) {
    for (std::size_t k = 1; k <= layers; ++k)
      convolutions_.emplace_back(set, fmt::format("{}.{}", name, k), side * side * (k == 1 ? 1 : channels),
                                 k == layers ? 1 : channels, init);
    place_ = {set, name + ".place", values(), canvas.cells(), init};
  }
  /// N: every convolution removes one pixel at each edge.
  std::size_t values() const { return (height_ - 2 * convolutions_.size()) * (width_ - 2 * convolutions_.size()); }
  struct Scores {
    Var<T> a, e;
  };
  /// y [B, H W] -> a [B, N], e [B, G G].
  Scores operator()(Var<T> y) const {
    auto a = reshape(y, 1);
    for (std::size_t k = 0; k < convolutions_.size(); ++k) {
      const auto& [weight, bias] = convolutions_[k];
      a = convolution(k == 0 ? a : relu(a), {height_ - 2 * k, width_ - 2 * k, side}, y.tape->parameter(*weight),
                      y.tape->parameter(*bias));
    }
    a = reshape(a, values());
    return {a, place_(a)};
  }

 private:
  static constexpr std::size_t side = 3;
  std::size_t height_ = 0, width_ = 0;
  std::vector<Linear<T>> convolutions_;
  Linear<T> place_;
};

struct Config {
  int grid = 0, layers = 4, channels = 7, hidden = 256, code = 5;
  double beta = 1, background = 1e-8;

  void declare(Fields& field) {
    field(grid, "grid", 0, 256, "places per side; 0: every pixel of the canvas");
    field(layers, "layers", 1, 16, "convolutions before the scores");
    field(channels, "channels", 1, 1024, "channels of all convolutions but the last");
    field(hidden, "hidden", 1, 4096, "hidden units of the encoder and of the decoder");
    field(code, "code", 1, 1024, "width of the code");
    field(beta, "beta", 0, 1e6, "weight of the divergence of the places from the uniform distribution");
    field(background, "background", 0, 1, "probability of ink outside the window").above().below();
  }
};

template <class T>
class PixelAttention final : public Model<T> {
 public:
  PixelAttention(const Config& config, const Blueprint& b)
      : beta_(static_cast<T>(config.beta)), background_(config.background) {
    auto& set = this->parameters_;
    const auto& dimensions = b.dimensions;
    const Key init = b.init;
    const int height = dimensions.at("height"), width = dimensions.at("width"), window = dimensions.at("window");
    const int every = config.grid, layers = config.layers;
    code_ = config.code;
    noise_ = dimensions.at("noise");
    if (height != width) throw UsageError(fmt::format("pixel_attention: the canvas must be square, got {}x{}", height, width));
    if (height <= 2 * layers)
      throw UsageError(fmt::format(
          "pixel_attention: a canvas of {1}x{2} pixels is too small for layers={0} convolutions; give layers={3} or fewer",
          layers, height, width, (height - 1) / 2));
    if (noise_ > 0 && noise_ < code_)
      throw UsageError(
          fmt::format("pixel_attention: a code of {} numbers needs as many noise numbers, the task has {}; give code={} or "
                      "the task noise={} (noise=0: a code without noise)",
                      code_, noise_, noise_, code_));
    sensor_ = {every ? every : height, window, 1, height, width};
    const std::size_t C = config.channels, h = config.hidden;
    attention_ = {set, "attention", static_cast<std::size_t>(layers), C, sensor_, init};
    encoder_[0] = {set, "encoder.1", sensor_.values(), h, init};
    encoder_[1] = {set, "encoder.2", h, 2 * code_, init};
    decoder_[0] = {set, "decoder.1", code_, h, init};
    decoder_[1] = {set, "decoder.2", h, sensor_.values(), init};
    structure_.sites = {{.name = "place",
                         .options = static_cast<int>(sensor_.cells()),
                         .state_width = static_cast<int>(attention_.values()),
                         .scope = DependenceScope::own_costs}};
    structure_.no_posterior = "its attention already is q(c | y), and its loss has the divergence";
    structure_.no_likelihood = "attention that sees the answer";
  }

  const Structure& structure() const override { return structure_; }

  void run(const Batch& batch, Episode<T>& episode) const override {
    auto& tape = episode.tape();
    const Distinct distinct(batch);
    const Batch& data = distinct.batch();
    const Canvas& canvas = seen(tape, data);  // y, a, e
    const auto& [a, e] = canvas.scores;
    const States<T> states(episode, distinct);

    // beta KL(softmax(e) || uniform)
    const auto places = static_cast<T>(sensor_.cells());
    if (beta_ != 0)
      states.cost(affine(entropy(log_softmax(e, std::span<const int>(canvas.options))), -beta_, beta_ * std::log(places)));

    const auto c = states.choose({.name = "place", .logits = e, .items = canvas.places, .state = a});

    const auto x = c.hard() ? sensor_.patches(tape, data.numbers("image"), c.example(), c.options())
                            : mean_window(sensor_, canvas.y, c.example(), c.weights());
    const auto code = encoder_[1](tanh(encoder_[0](x)));
    auto z = slice_columns(code, 0, code_);  // m
    Var<T> loss = missed(c.after(canvas.ink), row_sums(x), c.of_table(canvas.covered));
    if (noise_ > 0) {  // z = m + exp(s) n, KL(Normal(m, exp s) || Normal(0, 1)) = sum (m^2 + exp(2 s) - 1) / 2 - s
      const auto m = z, s = slice_columns(code, code_, code_), scale = exp(s);
      z = add(m, multiply(scale, Var<T>(c.after(slice_columns(constant_of(tape, data, "noise"), 0, code_)))));
      const auto squares = affine(add(square(m), square(scale)), T{0.5}, T{-0.5});
      loss = add(loss, row_sums(subtract(squares, s)));
    }
    const auto l = decoder_[1](tanh(decoder_[0](z)));
    c.cost(add(loss, row_sums(subtract(softplus(l), multiply(l, x)))));  // - log p(x | z)
    c.predict(looked_at(c));
  }

 private:
  struct Canvas {
    std::vector<double> of;
    Items places;
    std::vector<int> options;  // [D] the number of places
    Var<T> y, ink;             // [D, H W], [D, 1] its sum
    Var<T> covered;            // [G G, 1] pixels of the canvas in the window of each place
    typename Scorer<T>::Scores scores;
  };
  // Values that depend on no choice: computed once for all runs on the tape over equal canvases.
  const Canvas& seen(Tape<T>& tape, const Batch& data) const {
    const auto& image = data.numbers("image").storage();
    return tape.template shared<Canvas>(
        this, [&](const Canvas& known) { return known.of == image; },
        [&] {
          const auto y = constant_of(tape, data, "image");
          const std::vector<int> options(y.rows(), static_cast<int>(sensor_.cells()));
          return Canvas{image, Items(options), options, y, row_sums(y), covered(tape), attention_(y)};
        });
  }

  Var<T> covered(Tape<T>& tape) const {
    const auto along = [&](int i, int extent) {
      const int first = sensor_.first(i, extent, sensor_.patch);
      return std::max(0, std::min(extent, first + sensor_.patch) - std::max(0, first));
    };
    const auto pixels = tape.constant(sensor_.cells(), 1);
    for (int c = 0; c < static_cast<int>(sensor_.cells()); ++c)
      tape.mutable_value(pixels).data[c] =
          static_cast<T>(along(c / sensor_.grid, sensor_.height) * along(c % sensor_.grid, sensor_.width));
    return pixels;
  }

  // - log p of the pixels outside the window, from the ink of the canvas and of the window, and the pixels that it covers.
  Var<T> missed(Var<T> ink, Var<T> in_window, Var<T> covered) const {
    const auto all = static_cast<double>(sensor_.height * sensor_.width);
    const double empty = -std::log1p(-background_), inked = -std::log(background_);
    return add(affine(subtract(ink, in_window), static_cast<T>(inked - empty)),
               affine(covered, static_cast<T>(-empty), static_cast<T>(all * empty)));
  }

  // [N] the pixel above and left of the middle of the chosen window (relaxed: the likeliest), as row W + column.
  std::vector<int> looked_at(const States<T>& c) const {
    auto cell = c.options();
    const auto weights = c.hard() ? Var<T>{} : c.weights();
    for (std::size_t n = 0; weights && n < c.size(); ++n) {
      const T* w = weights.value().row(n);
      cell.push_back(static_cast<int>(std::max_element(w, w + sensor_.cells()) - w));
    }
    const int P = sensor_.patch, G = sensor_.grid;
    for (int& place : cell)
      place = (sensor_.first(place / G, sensor_.height, P) + (P - 1) / 2) * sensor_.width +
              sensor_.first(place % G, sensor_.width, P) + (P - 1) / 2;
    return cell;
  }

  Structure structure_;
  Sensor sensor_{};
  T beta_;
  double background_;
  std::size_t code_ = 0, noise_ = 0;
  Scorer<T> attention_;
  std::array<Linear<T>, 2> encoder_, decoder_;
};

const ModelEntry entry = {
    .name = "pixel_attention",
    .summary = "finds a digit among all places of a canvas, and autoencodes the window there",
    .paper =
        "Liu, Regier, Tripuraneni, Jordan & McAuliffe 2019, Rao-Blackwellized stochastic gradients for discrete distributions",
    .dependence = "one choice",
    .kinds = "categorical",
    .parameters = declared<Config>(),
    .needs = {"height", "width", "window", "noise"},
};
HARDGRAD_MODEL(PixelAttention, entry)

}  // namespace
}  // namespace hardgrad::models::pixel_attention
