// arms: antithetic-REINFORCE-multi-sample: K bits drawn jointly, every two of them negatively correlated.
//
//   g_phi = 1/(1 - rho) 1/K sum_k (f_k - mean of the other f) (b_k - p),   rho = corr(b_j, b_k)       per choice
//
// Dimitriev & Zhou 2021, ARMS: antithetic-REINFORCE-multi-sample gradient for binary variables: the estimator with the
// Dirichlet copula (ARMS-D). b_k = [u_k <= p] if p <= 1/2, else b_k = [u_k > 1 - p]: the
// form with the stronger correlation. E[b_j | b_k] is linear in b_k, so the leave-one-out
// baseline multiplies the mean by 1 - rho; the division corrects this. K = 2 is DisARM.
// Target: expected loss. Bias: none. Cost: K rows; 1 + (K - 1) T where choices feed later ones.
// Departures: the number of ones is drawn from its closed-form distribution, then their order, without drawing u. Where choices
// feed later ones, every choice's bits are evaluated given the first member's earlier choices.
#include <algorithm>
#include <array>

#include "core/estimator/coupling/coupled_estimator.hpp"
#include "core/estimator/coupling/dirichlet_copula.hpp"

namespace hardgrad::estimators::arms {
namespace {

template <class T>
class Arms final : public CoupledEstimator<T> {
 public:
  Arms(const Settings& settings, const Structure&, Key)
      : CoupledEstimator<T>(1, settings.integer("samples"), 0, credit_of(settings)), copula_(settings.integer("samples")) {}

 private:
  void draw(Coupling& coupling, Randomness& random, Draw where) const override {
    const double q = std::min(coupling.p[0], coupling.p[1]);
    const int rare = coupling.p[1] <= coupling.p[0];  // the value of the bits whose u is at most q
    std::array<double, DirichletCopula::most + 1> counts;
    const std::span<double> law(counts.data(), coupling.option.size() + 1);
    copula_.counts(q, law);
    int left = random.categorical(law, where);
    auto members = static_cast<double>(coupling.option.size());
    for (int& option : coupling.option) {
      ++where.index;
      const double share[] = {1 - left / members, left / members};
      const bool hit = share[0] == 0 || (share[1] > 0 && random.categorical(share, where) == 1);
      option = hit ? rare : 1 - rare;
      left -= hit;
      --members;
    }
  }
  void gradient(const Coupling& coupling, std::span<const double> f, std::span<double> logits) const override {
    const double q = std::min(coupling.p[0], coupling.p[1]);
    if (q <= 0) return;  // all bits are equal
    double sum = 0;      // over all pairs of members: the f_k - f_j sum to 0, so b_k can replace b_k - p
    for (std::size_t k = 0; k < f.size(); ++k)
      for (std::size_t j = 0; coupling.option[k] && j < f.size(); ++j) sum += f[k] - f[j];
    const auto K = static_cast<double>(f.size());
    logits[1] = sum / (K * (K - 1)) / (1 - copula_.correlation(q));
    logits[0] = -logits[1];
  }

  DirichletCopula copula_;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "arms",
    .summary = "K mutually antithetic bits by a Dirichlet copula, leave-one-out, debiased",
    .paper = "Dimitriev & Zhou 2021, ARMS: antithetic-REINFORCE-multi-sample gradient for binary variables",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "K; 1 + (K - 1) T if sequential",
    .parameters = {ParameterInfo::integer("samples", 4, 2, DirichletCopula::most, "bits drawn together"), credit_parameter()},
    .needs = {need::bits},
    .promises = {promise::unshifted(), promise::variance(0.5738953)},
};
HARDGRAD_ESTIMATOR(Arms, entry)

}  // namespace hardgrad::estimators::arms
