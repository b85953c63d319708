// stratified: the score function on K samples whose uniform numbers lie in the K strata of (0, 1).
//
//   g = 1/K sum_k [ (f_k - b) grad log p(z_k) + grad f_k ],   z_kt = F_kt^-1((pi_t(k) + v_kt) / K)
//
// v_kt uniform, pi_t a new random permutation at every choice t. Owen 2013, Monte Carlo theory, methods and examples, sec. 8.4
// (proportional allocation); for resampling: Kitagawa 1996; Douc & Cappe 2005.
// Target: expected loss. Bias: none. Given the earlier choices of sample k, its number is uniform on (0, 1), because pi_t(k) is
// uniform on the strata and independent of the past; so every path by itself follows p. Cost: K rows.
// The samples are stratified at each choice separately, as in a Latin hypercube, not jointly over choices.
#include "core/choice/handlers.hpp"
#include "core/estimator/promises.hpp"
#include "core/estimator/score_function/score_function.hpp"

namespace hardgrad::estimators::stratified {
namespace {

using Config = BaselineConfig<4>;

template <class T>
class Stratified final : public Estimator<T> {
 public:
  Stratified(const Config& config, const Structure&, Key) : config_(config) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    StratifiedHandler<T> handler(config_.samples, StratifiedHandler<T>::Offsets::own, problem.random, problem.batch.id);
    return with_constant_baseline(Sampled<T>(problem, config_.samples, handler), config_.baseline, config_.credit);
  }
  bool exchangeable() const override { return false; }

 private:
  Config config_;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "stratified",
    .summary = "score function on K samples spread over K strata of the unit interval",
    .paper = "Owen 2013, Monte Carlo theory, methods and examples, sec. 8.4; Kitagawa 1996",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "K",
    .parameters = declared<Config>(),
    .needs = {need::quantiles},
    .promises = {promise::less_variance("reinforce[samples=4]", "samples=4")},
};
HARDGRAD_ESTIMATOR(Stratified, entry)

}  // namespace hardgrad::estimators::stratified
