// reinforce: the score-function estimator with a constant baseline.
//
//   g = 1/K sum_k [ (f_k - b) grad log p(z_k) + grad f_k ]
//
// Williams 1992, Simple statistical gradient-following algorithms, eq. 11 (the episodic form of his sec. 5 for several
// choices). With reward_to_go a choice is credited only with the costs it can change.
// Target: expected loss. Bias: none. Cost: K rows.
#include "core/estimator/score_function/score_function.hpp"

namespace hardgrad::estimators::reinforce {
namespace {

using Config = BaselineConfig<>;

template <class T>
class Reinforce final : public Estimator<T> {
 public:
  Reinforce(const Config& config, const Structure&, Key) : config_(config) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    return with_constant_baseline(Sampled<T>(problem, config_.samples), config_.baseline, config_.credit);
  }

 private:
  Config config_;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "reinforce",
    .summary = "score function with a constant baseline",
    .paper = "Williams 1992, Simple statistical gradient-following algorithms for connectionist reinforcement learning",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "K",
    .parameters = declared<Config>(),
    .needs = {need::log_density},
};
HARDGRAD_ESTIMATOR(Reinforce, entry)

}  // namespace hardgrad::estimators::reinforce
