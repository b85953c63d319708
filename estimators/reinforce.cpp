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

template <class T>
class Reinforce final : public Estimator<T> {
 public:
  Reinforce(const Settings& settings, const Structure&, Key)
      : samples_(settings.integer("samples")), baseline_(settings.real("baseline")), credit_(credit_of(settings)) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    return with_constant_baseline(Sampled<T>(problem, samples_), baseline_, credit_);
  }

 private:
  int samples_;
  double baseline_;
  Credit credit_;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "reinforce",
    .summary = "score function with a constant baseline",
    .paper = "Williams 1992, Simple statistical gradient-following algorithms for connectionist reinforcement learning",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "K",
    .parameters = {samples_parameter(), baseline_parameter(), credit_parameter()},
    .needs = {need::log_density},
};
HARDGRAD_ESTIMATOR(Reinforce, entry)

}  // namespace hardgrad::estimators::reinforce
