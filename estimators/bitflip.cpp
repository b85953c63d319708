// bitflip: one bit of every sample, drawn uniformly, is flipped; the difference of losses is multiplied by the number of bits.
//
//   g_phi_i = T [i = j] p_i (1 - p_i) (f(b_i = 1, rest) - f(b_i = 0, rest)),   j uniform among T choices
//
// Kunes, Yin, Land, Haviv, Pe'er & Tavare 2022, Gradient estimation for binary latent variables via gradient variance clipping
// (bitflip-1). It draws one term of the sum of measure-valued derivatives: low variance
// where p is near 0 or 1, at a cost independent of T.
// Target: expected loss. Bias: none. Cost: 2 rows per sample.
// Departures: written at the logits (in the paper: in p). Where choices feed later ones,
// the flipped row draws the choices after its flip itself. T is the number of choices of
// the longest run: an example whose run ends before the flip has no flipped bit.
#include "core/estimator/coupling/flipping.hpp"
#include "core/estimator/promises.hpp"

namespace hardgrad::estimators::bitflip {
namespace {

using Config = SamplesConfig<>;

template <class T>
class BitFlip final : public FlippingEstimator<T> {
 public:
  BitFlip(const Config& config, const Structure&, Key) : FlippingEstimator<T>(config.samples, false) {}

 private:
  double derivative(const FlippedBit& bit) const override { return bit.by_flip(); }
};

}  // namespace

const EstimatorEntry entry = {
    .name = "bitflip",
    .summary = "one bit of each sample, drawn uniformly, is flipped",
    .paper = "Kunes et al. 2022, Gradient estimation for binary latent variables via gradient variance clipping (bitflip-1)",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "2 K",
    .parameters = declared<Config>(),
    .needs = {need::bits},
    .promises = {promise::unshifted()},
};
HARDGRAD_ESTIMATOR(BitFlip, entry)

}  // namespace hardgrad::estimators::bitflip
