// reinmax_rao: reinmax with the derivative of relaxed choices, averaged over their noise, at the halfway point.
//
//   g = 1/K sum_k grad f(z_k) with dz/dlogits := 2/M sum_m dw_m/dlogits - 1/2 J(p),   J(w) = diag(w) - w w'
//   w_m = softmax((theta + G_m) / temperature),   theta = log((p + z) / 2)
//   G_m: Gumbel noise given that argmax(theta + G_m) = z
//
// Wang & Bui 2026, Beyond ReinMax: low-variance gradient estimators for discrete latent variables (ReinMax-Rao). The Gumbel-Rao
// Jacobian (Paulus, Maddison & Krause 2021) at the same logits replaces J((p + z) / 2) of Liu et al. 2023.
// Target: expected loss. Bias: yes, also for a quadratic loss of one bit. Cost: K rows.
// Departures: none known. Their other estimator is `reinmax_cv`.
#include <cmath>

#include "core/estimator/promises.hpp"
#include "core/estimator/relaxation/relaxation.hpp"

#include "core/autodiff/elementwise.hpp"

namespace hardgrad::estimators::reinmax_rao {
namespace {

using Config = RaoConfig;

template <class T>
class ReinMaxRao final : public RelaxationEstimator<T> {
 public:
  ReinMaxRao(const Config& config, const Structure& structure, Key)
      : RelaxationEstimator<T>(config.samples, config.rao_samples, structure),
        config_(config),
        options_(static_cast<std::uint32_t>(structure.most_options())) {}
  bool exchangeable() const override { return false; }

 private:
  Relaxed<T> relax(const RelaxationContext<T>& context) const override {
    auto option = context.draw();  // at index 0; the noise uses the later indices
    const auto theta = halfway(context, option);
    const auto total = sum_of_softmax_given<T>(context, option, config_.temperature, context.rao_samples, options_, theta);
    auto soft = subtract(affine(total, static_cast<T>(2.0 / context.rao_samples)), affine(context.softmax(), T{0.5}));
    return straight_through(context, std::move(option), soft);
  }
  Config config_;
  std::uint32_t options_;
};

// For two options: sum_z p(z) (f'_1 - f'_0) [2 E(w (1 - w) / temperature | x on z's side of 0) - 1/2 p_0 p_1],
// w = sig(x / temperature), x the difference of the thetas + logistic noise
SmallChoice::Vector expected(const Config& config, const SmallChoice& at) {
  if (at.logits.size() != 2) return {};
  const double temperature = config.temperature, far = INFINITY;
  const auto p = at.p();
  const auto bump = [&](double x) { return relaxed_slope(x, temperature); };
  double g = 0;
  for (std::size_t z = 0; z < 2; ++z) {
    const SmallChoice::Vector slope = at.slope(at.one_hot(z)), halfway = (p + at.one_hot(z)) / 2.0;
    const double x = std::log(halfway[1] / halfway[0]);
    const double mean = over_logistic(x, z == 1 ? 0 : -far, z == 1 ? far : 0, temperature, bump) / halfway[z];
    g += p[z] * (slope[1] - slope[0]) * (2 * mean - 0.5 * p[0] * p[1]);
  }
  return {-g, g};
}

}  // namespace

const EstimatorEntry entry = {
    .name = "reinmax_rao",
    .summary = "reinmax with the relaxed choice's derivative, its noise averaged, at the halfway point",
    .paper = "Wang & Bui 2026, Beyond ReinMax: low-variance gradient estimators for discrete latent variables",
    .target = "expected_loss",
    .unbiased = false,
    .evaluations = "K",
    .parameters = declared<Config>(),
    .needs = {need::relaxable},
    .promises = {promise::mean(expected, "rao_samples=1"), promise::mean(expected, "temperature=1.3,rao_samples=2")},
};
HARDGRAD_ESTIMATOR(ReinMaxRao, entry)

}  // namespace hardgrad::estimators::reinmax_rao
