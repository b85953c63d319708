// soft_baseline: the score function with the soft network's loss as baseline.
//
//   g = 1/K sum_k [ (f_k - f(E_p[z])) grad log p(z_k) + grad f_k ]
//
// Deng, Kim, Chiu, Guo & Rush 2018, Latent Alignment and Variational Attention, sec. 3 ("we use soft attention as a
// baseline"). The soft loss is a constant here: it is not differentiated.
// Target: expected loss. Bias: none. Cost: K + 1 rows.
#include "core/choice/handlers.hpp"
#include "core/estimator/promises.hpp"
#include "core/estimator/score_function/score_function.hpp"

namespace hardgrad::estimators::soft_baseline {
namespace {

using Config = SamplesAndCredit<>;

template <class T>
class SoftBaseline final : public Estimator<T> {
 public:
  SoftBaseline(const Config& config, const Structure&, Key) : config_(config) {}
  Estimate<T> estimate(const Problem<T>& problem) const override {
    ExpectedHandler<T> expected;
    return score_against(problem, config_.samples, config_.credit, expected);
  }

 private:
  Config config_;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "soft_baseline",
    .summary = "score function with the soft network's loss as baseline",
    .paper = "Deng et al. 2018, Latent Alignment and Variational Attention, sec. 3",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "K + 1",
    .parameters = declared<Config>(),
    .needs = {need::log_density},
    .promises = {promise::unshifted()},
};
HARDGRAD_ESTIMATOR(SoftBaseline, entry)

}  // namespace hardgrad::estimators::soft_baseline
