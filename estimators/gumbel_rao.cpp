// gumbel_rao: st_gumbel averaged over the noise given the choice.
//
//   g = 1/K sum_k grad f(z_k) with dz/dlogits := 1/M sum_m dw_m/dlogits,   w_m = softmax((log p + G_m) / temperature), G_m | z
//
// Paulus, Maddison & Krause 2021, Rao-Blackwellizing the straight-through Gumbel-softmax gradient estimator: the noise is
// redrawn M times given the choice (conditional Gumbels), without further evaluations of f.
// Target: expected loss. Bias: that of st_gumbel, for any M. Variance: not above st_gumbel's. Cost: K rows.
#include "core/estimator/promises.hpp"
#include "core/estimator/relaxation/relaxation.hpp"

#include "core/autodiff/elementwise.hpp"

namespace hardgrad::estimators::gumbel_rao {
namespace {

using Config = RaoConfig;

template <class T>
class GumbelRao final : public RelaxationEstimator<T> {
 public:
  GumbelRao(const Config& config, const Structure& structure, Key)
      : RelaxationEstimator<T>(config.samples, config.rao_samples, structure),
        config_(config),
        options_(static_cast<std::uint32_t>(structure.most_options())) {}
  bool exchangeable() const override { return false; }

 private:
  Relaxed<T> relax(const RelaxationContext<T>& context) const override {
    auto option = context.draw();  // at index 0; the noise uses the later indices
    const auto total = sum_of_softmax_given(context, option, config_.temperature, context.rao_samples, options_);
    return straight_through(context, std::move(option), affine(total, static_cast<T>(1.0 / context.rao_samples)));
  }
  Config config_;
  std::uint32_t options_;
};

SmallChoice::Vector expected(const Config& config, const SmallChoice& at) { return relaxed_mean(config.temperature, at, true); }

}  // namespace

const EstimatorEntry entry = {
    .name = "gumbel_rao",
    .summary = "straight-through Gumbel-softmax with its noise averaged given the choice",
    .paper = "Paulus, Maddison & Krause 2021, Rao-Blackwellizing the straight-through Gumbel-softmax gradient estimator",
    .target = "expected_loss",
    .unbiased = false,
    .evaluations = "K",
    .parameters = declared<Config>(),
    .needs = {need::relaxable},
    .promises = {promise::mean(expected, "rao_samples=1"), promise::mean(expected, "rao_samples=2"),
                 promise::same_moments("st_gumbel[temperature=0.7]", "temperature=0.7,rao_samples=1"),
                 promise::less_variance("st_gumbel[temperature=0.7]", "temperature=0.7,rao_samples=2")},
};
HARDGRAD_ESTIMATOR(GumbelRao, entry)

}  // namespace hardgrad::estimators::gumbel_rao
