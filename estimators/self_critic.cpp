// self_critic: the score function with the loss of the most probable choices as baseline.
//
//   g = 1/K sum_k [ (f_k - f(z^)) grad log p(z_k) + grad f_k ],   z^ = the greedy choices, argmax step by step
//
// Rennie, Marcheret, Mroueh, Ross & Goel 2017, Self-critical sequence training for image captioning; the baseline
// of Deng et al. 2018 in its greedy form. Target: expected loss. Bias: none. Cost: K + 1 rows.
// Departure: the paper has one sample; here g is the mean over K.
#include "core/choice/handlers.hpp"
#include "core/estimator/promises.hpp"
#include "core/estimator/score_function/score_function.hpp"

namespace hardgrad::estimators::self_critic {
namespace {

using Config = SamplesAndCredit<>;

template <class T>
class SelfCritic final : public Estimator<T> {
 public:
  SelfCritic(const Config& config, const Structure&, Key) : config_(config) {}
  Estimate<T> estimate(const Problem<T>& problem) const override {
    GreedyHandler<T> greedy;
    return score_against(problem, config_.samples, config_.credit, greedy);
  }

 private:
  Config config_;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "self_critic",
    .summary = "score function with the loss of the most probable choices as baseline",
    .paper = "Rennie et al. 2017, Self-critical sequence training",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "K + 1",
    .parameters = declared<Config>(),
    .needs = {need::log_density},
    .promises = {promise::unshifted()},
};
HARDGRAD_ESTIMATOR(SelfCritic, entry)

}  // namespace hardgrad::estimators::self_critic
