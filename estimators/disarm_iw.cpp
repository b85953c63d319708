// disarm_iw: antithetic pairs of categories by stick breaking, with importance weights relative to independent pairs.
//
//   g_logits = 1/2 (f(z) - f(z~)) p(z) p(z~) / p(z, z~) (e_z - e_z~)                           per pair and choice
//
// Options are in ascending order of their probabilities. R_l is the mass of option l and the later ones; l has the share
// p_l / R_l, at most half. The antithetic bits that say whether to stop at l are both 0 with probability 1 - 2 p_l / R_l;
// otherwise they differ. Let m be the earlier option of a pair whose bits differed. For any option of the other member
//   p(z) p(z~) / p(z, z~) = R_m max(p_m, R_m - p_m) / prod_{l < m} (1 - 2 p_l / R_l)
// Dong, Mnih & Tucker 2021, Coupled gradient estimators for discrete latent variables: DisARM-IW. It is the score function of
// two independent samples, each with the other's loss as baseline, by importance sampling from a coupling. Two options: DisARM.
// Target: expected loss. Bias: none, because every two options can come together: the least of three or more remaining options
// has at most a third of their mass, so both members continue with probability at least 1/3.
// Cost: 2 rows a pair; 1 + T where choices feed later ones.
// Departures: those of `disarm_stick`, whose pairs with order=ascending these are. The paper leaves the coupling open; this one
// has a closed form and is positive for every pair. The weight is simplified as above.
#include <algorithm>

#include "core/estimator/coupling/split_coupling.hpp"
#include "core/estimator/promises.hpp"

namespace hardgrad::estimators::disarm_iw {
namespace {

using Config = SamplesAndCredit<2, 2>;

template <class T>
class DisArmIw final : public SplitCoupling<T> {
 public:
  DisArmIw(const Config& config, const Structure&, Key) : SplitCoupling<T>(config.samples, config.credit) {}

 private:
  std::vector<int> order(std::span<const double> p) const override {
    auto options = SplitCoupling<T>::order(p);
    std::stable_sort(options.begin(), options.end(), [&](int a, int b) { return p[a] < p[b]; });
    return options;
  }
  std::size_t split(std::size_t from, std::size_t) const override { return from + 1; }

  void gradient(const Coupling& coupling, std::span<const double> f, std::span<double> logits) const override {
    const int z[] = {coupling.option[0], coupling.option[1]};
    if (z[0] == z[1]) return;
    const auto options = order(coupling.p);
    std::vector<double> left(options.size() + 1);  // R
    for (std::size_t l = options.size(); l-- > 0;) left[l] = left[l + 1] + coupling.p[options[l]];
    double together = 1;
    std::size_t m = 0;
    for (; options[m] != z[0] && options[m] != z[1]; ++m) together *= 1 - 2 * coupling.p[options[m]] / left[m];
    const double weight = left[m] * std::max(coupling.p[options[m]], left[m + 1]) / together;
    logits[z[0]] = (f[0] - f[1]) * weight / 2;
    logits[z[1]] = -logits[z[0]];
  }
};

}  // namespace

const EstimatorEntry entry = {
    .name = "disarm_iw",
    .summary = "antithetic pairs of categories by stick breaking, importance-weighted",
    .paper = "Dong, Mnih & Tucker 2021, Coupled gradient estimators for discrete latent variables (DisARM-IW)",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "K; K / 2 (1 + T) if sequential",
    .parameters = declared<Config>(),
    .needs = {need::categorical},
    .promises = {promise::unshifted(), promise::variance(1.827458116)},
    .why_unsupported = needs_pairs,
};
HARDGRAD_ESTIMATOR(DisArmIw, entry)

}  // namespace hardgrad::estimators::disarm_iw
