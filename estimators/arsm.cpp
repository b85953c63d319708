// arsm: augment-REINFORCE-swap-merge: ARS averaged over all reference categories, with common noise.
//
//   g_c = sum_j (f(z^{c <-> j}) - 1/S sum_m f(z^{m <-> j})) (1/S - pi_j),   pi ~ Dirichlet(1_S),  z = argmin_i pi_i e^{-phi_i}
//
// for logit phi_c of a choice with S options. z^{c <-> j} is z after swapping pi_c and pi_j.
// Yin, Yue & Zhou 2019, ARSM: augment-REINFORCE-swap-merge estimator for gradient backpropagation through categorical
// variables: the ARSM estimator. Two options: ARM.
// Target: expected loss. Bias: none. Cost: S (S - 1) / 2 + 1 rows per sample, most of
// them equal; S (S - 1) / 2 T + 1 where choices feed later ones.
// Departures: swaps that give the same option are all evaluated (the paper evaluates the distinct ones). Choices with fewer
// options than others repeat their true action. Where choices feed later ones, every choice's swaps are evaluated given the
// earlier choices of one path.
#include <algorithm>

#include "core/estimator/coupling/dirichlet.hpp"
#include "core/estimator/promises.hpp"

namespace hardgrad::estimators::arsm {
namespace {

using Config = SamplesAndCredit<>;

// The member with swap (c, j): the true action is member 0, and swaps of the first few options precede the others.
std::size_t member(std::size_t c, std::size_t j) {
  const auto low = std::min(c, j), high = std::max(c, j);
  return c == j ? 0 : 1 + high * (high - 1) / 2 + low;
}

template <class T>
class Arsm final : public CoupledEstimator<T> {
 public:
  Arsm(const Config& config, const Structure& structure, Key)
      : CoupledEstimator<T>(config.samples, structure.most_options() * (structure.most_options() - 1) / 2 + 1,
                            structure.most_options(), config.credit) {}

 private:
  void draw(Coupling& coupling, Randomness& random, Draw where) const override {
    const auto S = coupling.p.size();
    const auto pi = coupling.kept.first(S);
    draw_dirichlet(coupling.p, pi, random, where);
    std::fill(coupling.option.begin(), coupling.option.end(), swapped_action(coupling.p, pi, 0, 0));
    for (std::size_t j = 0; j < S; ++j)
      for (std::size_t c = 0; c < j; ++c) coupling.option[member(c, j)] = swapped_action(coupling.p, pi, c, j);
  }
  void gradient(const Coupling& coupling, std::span<const double> f, std::span<double> logits) const override {
    const auto S = logits.size();
    for (std::size_t j = 0; j < S; ++j) {
      const double weight = (1.0 / static_cast<double>(S) - coupling.kept[j]) / static_cast<double>(S);
      for (std::size_t c = 0; c < S; ++c)
        for (std::size_t m = 0; m < S; ++m) logits[c] += (f[member(c, j)] - f[member(m, j)]) * weight;
    }
  }
};

}  // namespace

const EstimatorEntry entry = {
    .name = "arsm",
    .summary = "categories from Dirichlet noise, compared with the swaps of every two coordinates",
    .paper = "Yin, Yue & Zhou 2019, ARSM: augment-REINFORCE-swap-merge estimator",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "K (S (S - 1) / 2 + 1); K (S (S - 1) / 2 T + 1) if sequential",
    .parameters = declared<Config>(),
    .needs = {few_enough_to_swap},
    .promises = {promise::unshifted(), promise::same_moments("arm", "samples=1")},
};
HARDGRAD_ESTIMATOR(Arsm, entry)

}  // namespace hardgrad::estimators::arsm
