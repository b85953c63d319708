// soft_baseline: the score function with the soft network's loss as baseline.
//
//   g = 1/K sum_k [ (f_k - f(E_p[z])) grad log p(z_k) + grad f_k ]
//
// Deng, Kim, Chiu, Guo & Rush 2018, Latent Alignment and Variational Attention, sec. 3 ("we use soft attention as a
// baseline"). The soft loss is a constant here: it is not differentiated.
// Target: expected loss. Bias: none. Cost: K + 1 rows.
#include "core/choice/handlers.hpp"
#include "core/estimator/score_function/reference_run.hpp"

namespace hardgrad::estimators::soft_baseline {
namespace {

template <class T>
class SoftBaseline final : public Estimator<T> {
 public:
  SoftBaseline(const Settings& settings, const Structure&, Key)
      : samples_(settings.integer("samples")), credit_(credit_of(settings)) {}
  Estimate<T> estimate(const Problem<T>& problem) const override {
    ExpectedHandler<T> expected;
    return score_against(problem, samples_, credit_, expected);
  }

 private:
  int samples_;
  Credit credit_;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "soft_baseline",
    .summary = "score function with the soft network's loss as baseline",
    .paper = "Deng et al. 2018, Latent Alignment and Variational Attention, sec. 3",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "K + 1",
    .parameters = {samples_parameter(), credit_parameter()},
    .needs = {need::log_density},
    .promises = {promise::unshifted()},
};
HARDGRAD_ESTIMATOR(SoftBaseline, entry)

}  // namespace hardgrad::estimators::soft_baseline
