// disarm_tree: antithetic pairs of categories through the bits of a balanced binary tree.
//
//   g_logits = 1/2 (f(z) - f(z~)) (e_z - e_z~ - min(r, 1 - r) (P - P~))                   per pair and choice
//
// r: probability of the right branch at the node where the members part; P, P~: distributions of the option on z's and on z~'s
// side of that node (core/estimator/coupling/split_coupling.hpp).
// Dong, Mnih & Tucker 2021, Coupled gradient estimators for discrete latent variables: DisARM-Tree. Two options:
// DisARM.
// Target: expected loss. Bias: none. Cost: 2 rows a pair; 1 + T where choices feed later ones.
// Departures: any number of options (the paper's trees have 2^n leaves); with an odd number, the left part is the smaller. The
// bits below the parting are not drawn one by one; the option they lead to is drawn at once. Where choices feed later ones,
// every choice's pair is evaluated given the first member's earlier choices.
#include "core/estimator/coupling/split_coupling.hpp"
#include "core/estimator/promises.hpp"

namespace hardgrad::estimators::disarm_tree {
namespace {

using Config = SamplesAndCredit<2, 2>;

template <class T>
class DisArmTree final : public SplitCoupling<T> {
 public:
  DisArmTree(const Config& config, const Structure&, Key) : SplitCoupling<T>(config.samples, config.credit) {}

 private:
  std::size_t split(std::size_t from, std::size_t to) const override { return (from + to) / 2; }
};

}  // namespace

const EstimatorEntry entry = {
    .name = "disarm_tree",
    .summary = "antithetic pairs of categories through the bits of a balanced tree",
    .paper = "Dong, Mnih & Tucker 2021, Coupled gradient estimators for discrete latent variables (DisARM-Tree)",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "K; K / 2 (1 + T) if sequential",
    .parameters = declared<Config>(),
    .needs = {need::categorical},
    .promises = {promise::unshifted(), promise::variance(1.827458116)},
    .why_unsupported = needs_pairs,
};
HARDGRAD_ESTIMATOR(DisArmTree, entry)

}  // namespace hardgrad::estimators::disarm_tree
