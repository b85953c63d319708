// stochastic_ad: every choice jumps to the option before or after it, as if its logits moved and its noise did not.
//
//   z = the option whose interval of the cumulated probabilities F_i = p_0 + .. + p_i contains u, u uniform
//   dF_i/dlogit_l = p_l ([l <= i] - F_i) moves the border between i and i + 1:
//     up where l <= i:  of the draws of i + 1 the share  p_l (1 - F_i) / p_{i+1}  jumps to i
//     down where l > i: of the draws of i     the share  p_l F_i / p_i            jumps to i + 1
//   g_logit_l = [l < z] p_l (1 - F_{z-1}) / p_z (f(z - 1) - f(z)) + [l > z] p_l F_z / p_z (f(z + 1) - f(z))        per choice
//
// Arya, Schauer, Schaefer & Rackauckas 2022, Automatic differentiation of programs with discrete randomness (StochasticAD):
// the stochastic derivative of a draw by inversion, for each logit in the direction in which it grows. The first and the last
// option have one neighbour; options of probability 0 (also by underflow) are passed over. The estimate depends on the order of
// the options, and is good if neighbours have similar costs.
// Target: expected loss. Bias: none. Variance: like 1 / p of a rare option between common ones.
// Cost: 3 rows per question if choices have separate costs, else 2 more rows for each column of each question.
// Departures: both jumps of every choice are run; the paper keeps one of all possible jumps, drawn in proportion to their
// shares. Rows that jumped continue as in `mvd`.
#include "core/estimator/coupling/coupled_estimator.hpp"
#include "core/estimator/promises.hpp"

namespace hardgrad::estimators::stochastic_ad {
namespace {

using Config = SamplesConfig<>;

template <class T>
class StochasticAd final : public CoupledEstimator<T> {
 public:
  StochasticAd(const Config& config, const Structure&, Key) : CoupledEstimator<T>(config.samples, 3, 0, Credit::reward_to_go) {}

 private:
  void draw(Coupling& coupling, Randomness& random, Draw where) const override {
    const int z = random.categorical(coupling.p, where);
    coupling.option[0] = z;
    coupling.option[1] = neighbour(coupling.p, z, -1);
    coupling.option[2] = neighbour(coupling.p, z, 1);
  }
  /// The next possible option from z on; z if there is none. An option that is never drawn would lose its jumps.
  static int neighbour(std::span<const double> p, int z, int by) {
    for (int i = z + by; i >= 0 && i < static_cast<int>(p.size()); i += by)
      if (p[i] > 0) return i;
    return z;
  }
  void gradient(const Coupling& coupling, std::span<const double> f, std::span<double> logits) const override {
    const auto& p = coupling.p;
    const auto z = static_cast<std::size_t>(coupling.option[0]);
    double below = 0, above = 0;  // F_{z-1} and 1 - F_z, each summed without cancellation
    for (std::size_t l = 0; l < z; ++l) below += p[l];
    for (std::size_t l = z + 1; l < p.size(); ++l) above += p[l];
    for (std::size_t l = 0; l < z; ++l) logits[l] = p[l] * (p[z] + above) / p[z] * (f[1] - f[0]);
    for (std::size_t l = z + 1; l < p.size(); ++l) logits[l] = p[l] * (below + p[z]) / p[z] * (f[2] - f[0]);
  }
  bool all_lawful() const override { return false; }
};

}  // namespace

const EstimatorEntry entry = {
    .name = "stochastic_ad",
    .summary = "jumps of every choice to the options before and after it, in proportion to the change of its probabilities",
    .paper = "Arya et al. 2022, Automatic differentiation of programs with discrete randomness",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "3 K; K (1 + 2 Q D) if shared",
    .parameters = declared<Config>(),
    .needs = {need::categorical},
    .promises = {promise::unshifted(), promise::variance(2.775946882)},
};
HARDGRAD_ESTIMATOR(StochasticAd, entry)

}  // namespace hardgrad::estimators::stochastic_ad
