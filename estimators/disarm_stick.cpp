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
#include "core/estimator/promises.hpp"

namespace hardgrad::estimators::disarm_stick {
namespace {

enum class Order { given, ascending, descending };
constexpr Named<Order> orders[] = {{"given", Order::given}, {"ascending", Order::ascending}, {"descending", Order::descending}};

struct Config {
  int samples = 2;
  Order order = Order::given;
  Credit credit = Credit::whole;

  void declare(Fields& field) {
    samples_field(field, samples, 2);
    field(order, "order", orders, "order of the sticks: as given, or by the options' probabilities");
    credit_field(field, credit);
  }
};

template <class T>
class DisArmStick final : public SplitCoupling<T> {
 public:
  DisArmStick(const Config& config, const Structure&, Key) : SplitCoupling<T>(config.samples, config.credit), config_(config) {}

 private:
  std::vector<int> order(std::span<const double> p) const override {
    auto options = SplitCoupling<T>::order(p);
    if (config_.order == Order::ascending)
      std::stable_sort(options.begin(), options.end(), [&](int a, int b) { return p[a] < p[b]; });
    if (config_.order == Order::descending)
      std::stable_sort(options.begin(), options.end(), [&](int a, int b) { return p[a] > p[b]; });
    return options;
  }
  std::size_t split(std::size_t from, std::size_t) const override { return from + 1; }

  Config config_;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "disarm_stick",
    .summary = "antithetic pairs of categories through the bits of stick breaking",
    .paper = "Dong, Mnih & Tucker 2021, Coupled gradient estimators for discrete latent variables (DisARM-SB)",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "K; K / 2 (1 + T) if sequential",
    .parameters = declared<Config>(),
    .needs = {need::categorical},
    .promises = {promise::unshifted(), promise::variance(1.827458116)},
    .why_unsupported = needs_pairs,
};
HARDGRAD_ESTIMATOR(DisArmStick, entry)

}  // namespace hardgrad::estimators::disarm_stick
