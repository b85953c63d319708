// An autoencoder of binary images with a codebook: each of D vectors of the encoder is replaced by a code near it.
//
// y are the pixels, c_1..c_S the codes [d], shared by all vectors.
//   h_1..h_D = E_2 relu(E_1 (2y - 1) + e_1) + e_2                  the encoder's vectors, [d] each
//   z_j ~ softmax_s(-|h_j - c_s|^2 / temperature)                  the D columns of site `code`
//   v_j = c_{z_j};  relaxed weights w: sum_s w_js c_s
//   loss = -log p(y | v) + commitment sum_j |h_j - c_{z_j}|^2      relaxed: sum_js w_js |h_j - c_s|^2
//   p(y | v) = Bernoulli(sig(W_2 relu(W_1 v + w_1) + w_2)), summed over the pixels, in nats
//
// Van den Oord, Vinyals & Kavukcuoglu 2017, Neural discrete representation learning (VQ-VAE), whose code is the nearest:
// temperature -> 0, or the estimator nearest_code. Codes from a softmax of the distances: Soenderby, Poole & Mnih 2017,
// Continuous relaxation training of discrete latent variable image models; Roy et al. 2018, Theory and experiments on vector
// quantized autoencoders. Departures: fully connected maps instead of convolutions. One weight for the losses that move the
// codes to the vectors (theirs: 1) and the vectors to the codes (theirs: 0.25), so that their sum is a loss. The distribution of
// the codes is that of the encoder, without a prior: the target `regularised` adds its entropy, the divergence from equal
// probabilities up to a constant. Refused: targets that need a likelihood, since the codes are drawn knowing the pixels.
//
// Parameters (P pixels, H = hidden): encoder.hidden.{weight [H, P], bias [H]}, encoder.{weight [D d, H], bias [D d]},
//   codes.weight [S, d], decoder.hidden.{weight [H, D d], bias [H]}, decoder.{weight [P, H], bias [P]}
#include "core/choice/choice.hpp"

#include <algorithm>

#include "core/autodiff/cross_entropy.hpp"
#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/product.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/models/model.hpp"
#include "core/models/parts/fields.hpp"
#include "core/models/parts/replicates.hpp"
#include "core/nn/layers.hpp"

namespace hardgrad::models::codebook {
namespace {

struct Config {
  int vectors = 8, codes = 32, width = 8, hidden = 200;
  double temperature = 1, commitment = 0.25;

  void declare(Fields& field) {
    field(vectors, "vectors", 1, 1000, "vectors D of an image, a code for each");
    field(codes, "codes", 2, 10000, "codes S");
    field(width, "width", 1, 1000, "numbers d of a code");
    field(hidden, "hidden", 1, 10000, "hidden units of the encoder, and of the decoder");
    field.temperature(temperature, "temperature", "of the softmax of the distances");
    field(commitment, "commitment", 0, 1e6, "weight of the distances in the loss");
  }
};

template <class T>
class Codebook final : public Model<T> {
 public:
  Codebook(const Config& config, const Blueprint& b)
      : vectors_(config.vectors),
        width_(config.width),
        codes_(config.codes),
        temperature_(config.temperature),
        commitment_(config.commitment) {
    auto& set = this->parameters_;
    const auto pixels = static_cast<std::size_t>(b.dimensions.at("height")) * b.dimensions.at("width");
    const std::size_t H = config.hidden, wide = vectors_ * width_;
    encoder_hidden_ = {set, "encoder.hidden", pixels, H, b.init};
    encoder_ = {set, "encoder", H, wide, b.init};
    table_ = {set, "codes", static_cast<std::size_t>(codes_), width_, b.init, 0.3};
    decoder_hidden_ = {set, "decoder.hidden", wide, H, b.init};
    decoder_ = {set, "decoder", H, pixels, b.init};
    structure_ = {.sites = {{.name = "code",
                             .options = codes_,
                             .state_width = static_cast<int>(wide),
                             .scope = DependenceScope::own_costs,
                             .columns = static_cast<int>(vectors_),
                             .codes = true}},
                  .no_posterior = "its encoder sees the image, which is the answer",
                  .no_likelihood = "codes of an encoder that sees the answer"};
  }

  const Structure& structure() const override { return structure_; }

  void run(const Batch& batch, Episode<T>& episode) const override {
    auto& tape = episode.tape();
    const Distinct distinct(batch);
    const auto image = constant_of(tape, distinct.batch(), "image");
    const auto each = encoder_(relu(encoder_hidden_(affine(image, T{2}, T{-1}))));
    const auto h = distinct.all() ? each : gather_rows(each, std::span<const int>(distinct.index));  // [R, D d]
    const auto point = reshape(h, width_), table = tape.parameter(*table_.weight);
    const auto apart = distances(point, table);
    const std::vector<int> options(point.rows(), codes_);
    const auto z = episode.choose(
        {.name = "code",
         .rows = episode.root(),
         .prior = categorical(affine(apart, static_cast<T>(-1 / temperature_)), options, static_cast<int>(vectors_)),
         .state = h,
         .codes = {point, table}});
    std::vector<int> whose;
    for (int example : z.rows->example) whose.push_back(distinct.index[example]);
    const auto v = reshape(codes_of(z, table), vectors_ * width_);
    const auto loss = linear_binary_cross_entropy(relu(decoder_hidden_(v)), tape.parameter(*decoder_.weight),
                                                  tape.parameter(*decoder_.bias), image, whose);
    const auto norms = gather_rows(row_sums(square(h)), std::span<const int>(z.rows->parent));
    episode.cost(z.rows, add(loss, affine(add(far(z, apart), norms), static_cast<T>(commitment_))));
  }

 private:
  /// |h - c_s|^2 - |h|^2 for each vector and code -> [R D, S].
  Var<T> distances(Var<T> point, Var<T> table) const {
    const auto ones = point.tape->constant(1, width_);
    std::fill_n(point.tape->mutable_value(ones).data, width_, T{1});
    return add_row(affine(linear(point, table), T{-2}), linear(ones, square(table)));
  }
  /// The sum of `apart` over the vectors at their codes -> [R', 1].
  Var<T> far(const Choice<T>& z, Var<T> apart) const {
    if (z.hard())
      return row_sums(pick_in_groups(apart, vectors_, std::span<const int>(z.rows->parent), std::span<const int>(z.option())));
    const auto from = parent_choices_of(*z.rows, static_cast<int>(vectors_));
    const auto weighed = row_sums(multiply(z.weights(), gather_rows(apart, std::span<const int>(from))));
    return row_sums(reshape(weighed, vectors_));
  }

  std::size_t vectors_, width_;
  int codes_;
  double temperature_, commitment_;
  Linear<T> encoder_hidden_, encoder_, decoder_hidden_, decoder_;
  Embedding<T> table_;
  Structure structure_;
};

const ModelEntry entry = {
    .name = "codebook",
    .summary = "autoencoder of binary images whose vectors are replaced by codes of a codebook",
    .paper = "Van den Oord, Vinyals & Kavukcuoglu 2017, Neural discrete representation learning",
    .dependence = "joint cost",
    .kinds = "categorical",
    .parameters = declared<Config>(),
    .needs = {"height", "width", "levels"},
};
HARDGRAD_MODEL(Codebook, entry)

}  // namespace
}  // namespace hardgrad::models::codebook
