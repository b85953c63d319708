// ars: augment-REINFORCE-swap: categories from Dirichlet noise, compared with the swaps of one reference coordinate.
//
//   g_c = (f(z^{c <-> j}) - 1/S sum_m f(z^{m <-> j})) (1 - S pi_j),   pi ~ Dirichlet(1_S),  z = argmin_i pi_i e^{-phi_i}
//
// for logit phi_c of a choice with S options. z^{c <-> j} is z after swapping pi_c and pi_j; j is the reference category.
// Yin, Yue & Zhou 2019, ARSM: augment-REINFORCE-swap-merge estimator for gradient backpropagation through categorical
// variables: the ARS estimator. Two options: ARM.
// Target: expected loss. Bias: none. Cost: S rows per sample, some of them equal; 1 + (S - 1) T where choices feed later ones.
// Departures: each choice draws its own reference category. Swaps that give the same option are all evaluated. Choices with
// fewer options than others repeat their true action. Where choices feed later ones, every choice's swaps are evaluated given
// the earlier choices of one path.
#include "core/estimator/coupling/dirichlet.hpp"
#include "core/estimator/promises.hpp"

namespace hardgrad::estimators::ars {
namespace {

using Config = SamplesAndCredit<>;

template <class T>
class Ars final : public CoupledEstimator<T> {
 public:
  Ars(const Config& config, const Structure& structure, Key)
      : CoupledEstimator<T>(config.samples, structure.most_options(), 1, config.credit) {}

 private:
  void draw(Coupling& coupling, Randomness& random, Draw where) const override {
    const auto S = coupling.p.size();
    std::vector<double> pi(S);
    draw_dirichlet(coupling.p, pi, random, where);
    where.index += static_cast<std::uint32_t>(S - 1);
    const auto j = static_cast<std::size_t>(random.categorical(std::vector<double>(S, 1.0 / static_cast<double>(S)), where));
    for (std::size_t c = 0; c < coupling.option.size(); ++c)
      coupling.option[c] = swapped_action(coupling.p, pi, c < S ? c : j, j);
    coupling.kept[0] = pi[j];
  }
  void gradient(const Coupling& coupling, std::span<const double> f, std::span<double> logits) const override {
    const auto S = static_cast<double>(logits.size());
    for (std::size_t c = 0; c < logits.size(); ++c)
      for (std::size_t m = 0; m < logits.size(); ++m) logits[c] += (f[c] - f[m]) * (1 / S - coupling.kept[0]);
  }
};

}  // namespace

const EstimatorEntry entry = {
    .name = "ars",
    .summary = "categories from Dirichlet noise, compared with the swaps of a reference coordinate",
    .paper = "Yin, Yue & Zhou 2019, ARSM: augment-REINFORCE-swap-merge estimator (ARS)",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "K S; K (1 + (S - 1) T) if sequential",
    .parameters = declared<Config>(),
    .needs = {few_enough_to_swap},
    .promises = {promise::unshifted(), promise::variance(2.010166699)},
};
HARDGRAD_ESTIMATOR(Ars, entry)

}  // namespace hardgrad::estimators::ars
