// A belief network: layers of stochastic units above a binary image. It is also an autoencoder with a discrete code.
//
// Layers l = 1..L of D units with S options each, from the top down. y are the pixels; N_l, N_y and Q_l are maps (below).
//   z^1 ~ softmax(b)                       learned logits b; all units at once, independent: the site's columns
//   z^l ~ softmax(N_l(x^{l-1}))            l = 2..L
//   y   ~ Bernoulli(sig(N_y(x^L)))         loss = -log p(y | z^L), summed over the pixels, in nats
//   x^l = 2 z^l - 1 in {-1, 1}^D           bits (S = 2), whose logits are (0, phi)
//   x^l = onehot(z^l) in {0, 1}^{D S}      categories
// Relaxed weights: x^l is its mean under them.
// conditional=true predicts the lower half y of an image from the upper half c, its rows 0 .. height/2 - 1:
//   z^1 ~ softmax(N_1(2c - 1)); no other part sees c
// Posterior (if asked for): q(z^l | y, x^{l-1}) = softmax(Q_l(2y - 1, x^{l-1})). With conditional=true it sees (c, y).
// A map is N(x) = W_n a(.. a(W_1 x + b_1) ..) + b_n with a(v) = max(v, 0.3 v) and n - 1 = `hidden_layers`; without hidden
// layers it is linear. Q_l begins with W_1 (2y - 1) + V x^{l-1} + b_1.
//
// Posteriors run from the top down as well (Soenderby et al. 2016), so every prior is known when its site is asked. The
// networks of several layers in Mnih & Gregor 2014 and Tucker et al. 2017 infer from the pixels up. With one layer both agree.
//
// Parameters (U = D, or D S where S > 2; W and b of a map F are F.1.weight [out, in], F.1.bias [out], F.2 ...):
//   prior.logits [1, U] (b, zeros at first), or prior.layer1 (N_1) if conditional; prior.layer<l> (N_l), decoder (N_y);
//   posterior.layer<l> (Q_l), posterior.layer<l>.below.weight (V) [rows of W_1, U]
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/autodiff/cross_entropy.hpp"
#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/multi_hot.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/models/parts/answer_sampler.hpp"
#include "core/models/parts/fields.hpp"
#include "core/models/parts/replicates.hpp"
#include "core/models/parts/sum.hpp"
#include "core/nn/layers.hpp"

namespace hardgrad::models::belief_network {
namespace {

/// x^l: a matrix, or of hard categories the places of its ones.
template <class T>
struct Shown {
  Tape<T>* tape = nullptr;  // null: there is no such layer
  Var<T> matrix = {};
  std::optional<MultiHot> ones = {};
  /// W x + b, if the layer has a bias
  Var<T> through(const Linear<T>& layer) const {
    if (!ones) return layer(matrix);
    return linear(*ones, tape->parameter(*layer.weight), layer.bias ? tape->parameter(*layer.bias) : Var<T>{});
  }
};

/// N(x), layer by layer.
template <class T>
class Map {
 public:
  struct Hidden {
    std::size_t layers, units;
    std::size_t first(std::size_t out) const { return layers > 0 ? units : out; }  ///< width of W_1 x
  };
  Map() = default;
  Map(ParameterSet<T>& set, const std::string& name, std::size_t in, Hidden hidden, std::size_t out, Key init) {
    for (std::size_t k = 0; k <= hidden.layers; ++k)
      layers_.emplace_back(set, fmt::format("{}.{}", name, k + 1), k == 0 ? in : hidden.units,
                           k == hidden.layers ? out : hidden.units, init);
  }
  Var<T> operator()(const auto& x) const { return after(first(x)); }
  /// W_1 x + b_1
  Var<T> first(Var<T> x) const { return layers_[0](x); }
  Var<T> first(const Shown<T>& x) const { return x.through(layers_[0]); }
  /// N(x) from v = W_1 x + b_1.
  Var<T> after(Var<T> v) const {
    for (std::size_t k = 1; k < layers_.size(); ++k) v = layers_[k](leaky_relu(v, T{0.3}));
    return v;
  }
  /// -log p(y) of bits with log odds N(x); `index`: the row of y for each row.
  Var<T> loss_of_bits(const Shown<T>& x, Var<T> y, std::span<const int> index) const {
    if (layers_.size() == 1 && x.ones) return binary_cross_entropy(first(x), y, index);
    auto h = x.matrix;
    for (std::size_t k = 0; k + 1 < layers_.size(); ++k) h = leaky_relu(k == 0 ? first(x) : layers_[k](h), T{0.3});
    const auto& last = layers_.back();
    return linear_binary_cross_entropy(h, x.tape->parameter(*last.weight), x.tape->parameter(*last.bias), y, index);
  }

 private:
  std::vector<Linear<T>> layers_;
};

struct Config {
  int layers = 1, units = 200, options = 2;
  std::size_t hidden_layers = 0, hidden = 200;
  bool conditional = false;

  void declare(Fields& field) {
    field(layers, "layers", 1, 3, "layers L of choices");
    field(units, "units", 1, 10000, "choices D of a layer, made at once");
    field(options, "options", 2, 1000, "options S of each choice; 2: bits");
    field(hidden_layers, "hidden_layers", 0, 4, "deterministic layers in each map; 0: linear");
    field(hidden, "hidden", 1, 10000, "leaky rectified units in each hidden layer");
    field(conditional, "conditional", "predict the lower half of an image from the upper half");
  }
};

template <class T>
class BeliefNetwork final : public Model<T>, public AnswerSampler {
 public:
  BeliefNetwork(const Config& config, const Blueprint& b)
      : units_(config.units),
        options_(config.options),
        pixels_(static_cast<std::size_t>(b.dimensions.at("height")) * b.dimensions.at("width")),
        prior_(config.layers) {
    auto& set = this->parameters_;
    const auto& dimensions = b.dimensions;
    const auto& init = b.init;
    const bool posterior = b.posterior;
    const std::size_t L = prior_.size(), U = shown_width();
    const typename Map<T>::Hidden hidden{config.hidden_layers, config.hidden};
    if (config.conditional) {
      given_ = static_cast<std::size_t>(dimensions.at("height") / 2) * dimensions.at("width");
      if (given_ == 0) throw UsageError("belief_network: conditional=true needs images of at least two rows of pixels");
      prior_[0] = {set, "prior.layer1", given_, hidden, U, init};
    } else {
      top_ = &set.add("prior.logits", {1, U});
    }
    for (std::size_t l = 1; l < L; ++l) prior_[l] = {set, "prior." + site(l), U, hidden, U, init};
    decoder_ = {set, "decoder", U, hidden, pixels_ - given_, init};
    for (std::size_t l = 0; l < L; ++l)
      structure_.sites.push_back({.name = site(l),
                                  .options = options_,
                                  .state_width = static_cast<int>(L == 1 ? pixels_ : pixels_ + U),
                                  .scope = l + 1 == L ? DependenceScope::own_costs : DependenceScope::later_choices,
                                  .columns = units_});
    structure_.posterior = posterior;
    structure_.answer_sampler = this;
    labels = 2;
    places = static_cast<int>(pixels_ - given_);
    if (!posterior) return;
    posterior_.resize(L), below_.resize(L);
    for (std::size_t l = 0; l < L; ++l) {
      posterior_[l] = {set, "posterior." + site(l), pixels_, hidden, U, init};
      if (l > 0) below_[l] = {set, "posterior." + site(l) + ".below", U, hidden.first(U), init, false};
    }
  }

  const Structure& structure() const override { return structure_; }

  void run(const Batch& batch, Episode<T>& episode) const override {
    auto& tape = episode.tape();
    const Distinct distinct(batch);
    const auto image = constant_of(tape, distinct.batch(), "image");  // (c, y)
    const auto signs = affine(image, T{2}, T{-1});
    auto rows = episode.root();
    auto whose = distinct.index;  // [R] the image of each row
    Shown<T> x;  // x^{l-1}, none at first (zeros in the state: learned baselines share one network for all layers)
    for (std::size_t l = 0; l < prior_.size(); ++l) {
      const auto seen = l == 0 && distinct.all() ? signs : gather_rows(signs, std::span<const int>(whose));
      Site<T> site{.name = structure_.sites[l].name,
                   .rows = rows,
                   .prior = distribution(l == 0 ? top(signs, whose) : prior_[l](x)),
                   .state = prior_.size() == 1
                                ? seen
                                : concat_columns({seen, l > 0 ? x.matrix : tape.constant(seen.rows(), shown_width())})};
      if (structure_.posterior)
        site.posterior = [&] {  // Q_l(2 (c, y) - 1, x^{l-1})
          const Sum<T> of_image(posterior_[l].first(signs), whose);
          return distribution(posterior_[l].after(l > 0 ? of_image + Sum<T>(x.through(below_[l])) : of_image));
        };
      const auto z = episode.choose(std::move(site));
      x = shown(tape, z, l + 1 < prior_.size());
      rows = z.rows;
      whose.clear();
      for (int example : rows->example) whose.push_back(distinct.index[example]);
    }
    if (auto* observer = episode.observer()) {
      const auto logits = decoder_(x);
      for (int p = 0; p < places; ++p)
        observer->observe(rows->example, concat_columns({tape.constant(rows->size(), 1), slice_columns(logits, p, 1)}), p);
    } else {
      const auto y = given_ == 0 ? image : slice_columns(image, given_, pixels_ - given_);
      episode.cost(rows, decoder_.loss_of_bits(x, y, whose));
    }
  }

  Batch with_observations(const Batch& batch, const std::vector<std::vector<int>>& drawn) const override {
    auto result = batch;
    for (std::size_t p = 0; p < drawn.size(); ++p)
      for (std::size_t b = 0; b < drawn[p].size(); ++b) row_of(result.reals.at("image"), b)[given_ + p] = drawn[p][b];
    return result;
  }

 private:
  static std::string site(std::size_t l) { return fmt::format("layer{}", l + 1); }

  /// U
  std::size_t shown_width() const { return options_ == 2 ? units_ : static_cast<std::size_t>(units_) * options_; }
  /// Logits of z^1 [R, U]: b, or N_1(2c - 1).
  Var<T> top(Var<T> signs, std::span<const int> whose) const {
    if (given_ > 0) return gather_rows(prior_[0](slice_columns(signs, 0, given_)), whose);
    return gather_rows(signs.tape->parameter(*top_), std::span<const int>(std::vector<int>(whose.size(), 0)));
  }
  /// The distribution of all units from their logits [R, U].
  DistributionPtr<T> distribution(Var<T> logits) const {
    if (options_ == 2) return bernoulli(logits);
    return categorical(reshape(logits, options_), std::vector<int>(logits.rows() * units_, options_), units_);
  }
  /// x [R, U] of the choices z. `whole`: as a matrix, too, for the state of the next question.
  Shown<T> shown(Tape<T>& tape, const Choice<T>& z, bool whole) const {
    if (options_ > 2) {
      const bool placed = z.hard() && options_ >= fewest_placed;
      Shown<T> x{&tape};
      if (whole || !placed) x.matrix = reshape(z.one_hot(tape, options_), shown_width());
      if (!placed) return x;
      const auto places = tape.template scratch<int>(z.option().size());
      for (std::size_t c = 0; c < places.size(); ++c)
        places[c] = static_cast<int>(c % static_cast<std::size_t>(units_)) * options_ + z.option()[c];
      x.ones = MultiHot{places, static_cast<std::size_t>(units_)};
      return x;
    }
    if (!z.hard()) return {&tape, affine_column(z.weights(), 1, static_cast<std::size_t>(units_), T{2}, T{-1})};
    const auto x = tape.constant(z.rows->size(), units_);
    std::transform(z.option().begin(), z.option().end(), tape.mutable_value(x).data,
                   [](int b) { return static_cast<T>(2 * b - 1); });
    return {&tape, x};
  }

  static constexpr int fewest_placed = 6;  // options from which sums of columns are faster than a product
  int units_, options_;
  std::size_t pixels_, given_ = 0;  // pixels of the image; of its upper half if conditional
  Structure structure_;
  const Parameter<T>* top_ = nullptr;      // b
  std::vector<Map<T>> prior_, posterior_;  // N_l, Q_l
  std::vector<Linear<T>> below_;           // V of Q_l
  Map<T> decoder_;                         // N_y
};

const ModelEntry entry = {
    .name = "belief_network",
    .summary = "layers of bits or categories above a binary image: sigmoid belief network, discrete autoencoder",
    .paper =
        "Neal 1992, Connectionist learning of belief networks; Mnih & Gregor 2014, Neural variational inference and "
        "learning in belief networks",
    .dependence = "joint cost (layers=1), sequential (layers>1)",
    .kinds = "binary (options=2), categorical",
    .parameters = declared<Config>(),
    .needs = {"height", "width", "levels"},
};
HARDGRAD_MODEL(BeliefNetwork, entry)

}  // namespace
}  // namespace hardgrad::models::belief_network
