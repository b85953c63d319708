// disarm_stick: antithetic pairs of categories through the bits of a stick-breaking construction.
//
//   g_logits = 1/2 (f(z) - f(z~)) (e_z - e_z~ - min(r, 1 - r) (P - P~))                   per pair and choice
//
// Option i is the first whose bit is 1. The members part at m = min(z, z~), and 1 - r is the probability of m given that no
// earlier option was taken. One of P and P~ is e_m, the other is the distribution of the options after m
// (core/estimator/coupling/split_coupling.hpp).
// Dong, Mnih & Tucker 2021, Coupled gradient estimators for discrete latent variables: DisARM-SB. Two options:
// DisARM.
// Target: expected loss. Bias: none. Cost: 2 rows a pair; 1 + T where choices feed later ones.
// Departures: the bits after the parting are not drawn one by one; the option they lead to is drawn at once. Where choices feed
// later ones, every choice's pair is evaluated given the first member's earlier choices.
#include <algorithm>

#include "core/estimator/coupling/split_coupling.hpp"

namespace hardgrad::estimators::disarm_stick {
namespace {

template <class T>
class DisArmStick final : public SplitCoupling<T> {
 public:
  DisArmStick(const Settings& settings, const Structure&, Key) : SplitCoupling<T>(settings), order_(settings.text("order")) {}

 private:
  std::vector<int> order(std::span<const double> p) const override {
    auto options = SplitCoupling<T>::order(p);
    if (order_ == "ascending") std::stable_sort(options.begin(), options.end(), [&](int a, int b) { return p[a] < p[b]; });
    if (order_ == "descending") std::stable_sort(options.begin(), options.end(), [&](int a, int b) { return p[a] > p[b]; });
    return options;
  }
  std::size_t split(std::size_t from, std::size_t) const override { return from + 1; }

  std::string order_;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "disarm_stick",
    .summary = "antithetic pairs of categories through the bits of stick breaking",
    .paper = "Dong, Mnih & Tucker 2021, Coupled gradient estimators for discrete latent variables (DisARM-SB)",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "K; K / 2 (1 + T) if sequential",
    .parameters = {samples_parameter(2, 2),
                   ParameterInfo::choice("order", "given", {"given", "ascending", "descending"},
                                         "order of the sticks: as given, or by the options' probabilities"),
                   credit_parameter()},
    .needs = {need::categorical},
    .promises = {promise::unshifted(), promise::variance(1.827458116)},
    .why_unsupported = needs_pairs,
};
HARDGRAD_ESTIMATOR(DisArmStick, entry)

}  // namespace hardgrad::estimators::disarm_stick
