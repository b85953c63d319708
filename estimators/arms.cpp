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
#include <vector>

#include "core/estimator/coupling/coupled_estimator.hpp"
#include "core/estimator/coupling/dirichlet.hpp"
#include "core/estimator/promises.hpp"

namespace hardgrad::estimators::arms {
namespace {

struct Config {
  int samples = 4;
  Credit credit = Credit::whole;

  void declare(Fields& field) {
    field(samples, "samples", 2, DirichletCopula::most, "bits drawn together");
    credit_field(field, credit);
  }
};

template <class T>
class Arms final : public CoupledEstimator<T> {
 public:
  Arms(const Config& config, const Structure&, Key)
      : CoupledEstimator<T>(1, config.samples, 0, config.credit), copula_(config.samples) {}

 private:
  /// [D] the probability of the rarer bit of each column.
  static std::vector<double> rare(std::span<const double> p) {
    std::vector<double> q(p.size() / 2);
    for (std::size_t d = 0; d < q.size(); ++d) q[d] = std::min(p[2 * d], p[2 * d + 1]);
    return q;
  }
  void draw(Coupling& coupling, Randomness& random, Draw where) const override {
    std::vector<std::span<int>> option;
    for (int& of_member : coupling.option) option.emplace_back(&of_member, 1);
    draw_bits(coupling.p, option, random, where);
  }
  bool by_columns() const override { return true; }
  void draw_columns(std::span<const T> log_p, const std::vector<std::span<int>>& option, Randomness& random,
                    Draw where) const override {
    draw_bits(this->exponentials(log_p), option, random, where);
  }
  /// The bits of D columns with probabilities p [D, 2].
  void draw_bits(std::span<const double> p, const std::vector<std::span<int>>& option, Randomness& random, Draw where) const {
    const std::size_t D = option[0].size(), K = option.size();
    std::vector<double> law(D * (K + 1)), share(2 * D);
    std::vector<int> left(D), hit(D);  // u at most q: how many of the members to come, and whether this one
    copula_.counts(rare(p), law);
    random.categorical(law, K + 1, std::vector<int>(D, static_cast<int>(K) + 1), where, left);
    const bool skip = random.enumerates();  // a certain draw is not an outcome to visit
    std::vector<int> options(D, 2);
    for (std::size_t k = 0; k < K; ++k) {
      ++where.index;
      const auto members = static_cast<int>(K - k);
      const auto certain = [members](int hits) { return hits == 0 || hits == members; };
      for (std::size_t d = 0; d < D; ++d) {
        share[2 * d + 1] = left[d] / static_cast<double>(members);
        share[2 * d] = 1 - share[2 * d + 1];
        options[d] = skip && certain(left[d]) ? 1 : 2;
      }
      if (members > 1) random.categorical(share, 2, options, where, hit);
      for (std::size_t d = 0; d < D; ++d) {
        if (certain(left[d])) hit[d] = left[d] > 0;
        option[k][d] = hit[d] == (p[2 * d + 1] <= p[2 * d]);  // a hit has the rarer value
        left[d] -= hit[d];
      }
    }
  }
  void gradient_of_columns(std::span<const double> p, const std::vector<std::span<const int>>& option,
                           const std::vector<std::span<const double>>& f, std::span<double> logits) const override {
    const std::size_t D = option[0].size(), K = option.size();
    const auto q = rare(p);
    std::vector<double> rho(D), sum(D);  // over all pairs of members: the f_k - f_j sum to 0, so b_k can replace b_k - p
    copula_.correlations(q, rho);
    for (std::size_t k = 0; k < K; ++k)
      for (std::size_t j = 0; j < K; ++j)
        for (std::size_t d = 0; d < D; ++d) sum[d] += option[k][d] * (f[k][d] - f[j][d]);
    const auto pairs = static_cast<double>(K * (K - 1));
    for (std::size_t d = 0; d < D; ++d) {
      logits[2 * d + 1] = q[d] > 0 ? sum[d] / pairs / (1 - rho[d]) : 0;  // at 0 all bits are equal
      logits[2 * d] = -logits[2 * d + 1];
    }
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
    .parameters = declared<Config>(),
    .needs = {need::bits},
    .promises = {promise::unshifted(), promise::variance(0.5738953)},
};
HARDGRAD_ESTIMATOR(Arms, entry)

}  // namespace hardgrad::estimators::arms
