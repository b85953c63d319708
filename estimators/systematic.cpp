// systematic: the score function on K samples whose uniform numbers are equally spaced in (0, 1).
//
//   g = 1/K sum_k [ (f_k - b) grad log p(z_k) + grad f_k ],   z_kt = F_kt^-1((pi_t(k) + v_t) / K)
//
// v_t uniform and common to an example's samples, pi_t a new random permutation at every choice t. Madow & Madow 1944; for
// resampling: Kitagawa 1996; Douc & Cappe 2005, Comparison of resampling schemes for particle filtering.
// Target: expected loss. Bias: none. Given the earlier choices of sample k, its number is uniform on (0, 1), because pi_t(k)
// and v_t are independent of the past; so every path by itself follows p. Cost: K rows.
// Unlike `stratified`, it need not beat independent samples: the variance depends on the order of the options.
#include "core/choice/handlers.hpp"
#include "core/estimator/score_function/score_function.hpp"

namespace hardgrad::estimators::systematic {
namespace {

using Config = BaselineConfig<4>;

template <class T>
class Systematic final : public Estimator<T> {
 public:
  Systematic(const Config& config, const Structure&, Key) : config_(config) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    StratifiedHandler<T> handler(config_.samples, StratifiedHandler<T>::Offsets::common, problem.random, problem.batch.id);
    return with_constant_baseline(Sampled<T>(problem, config_.samples, handler), config_.baseline, config_.credit);
  }
  bool exchangeable() const override { return false; }

 private:
  Config config_;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "systematic",
    .summary = "score function on K samples at equally spaced places of the unit interval",
    .paper = "Madow & Madow 1944; Kitagawa 1996; Douc & Cappe 2005, Comparison of resampling schemes for particle filtering",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "K",
    .parameters = declared<Config>(),
    .needs = {need::quantiles},
};
HARDGRAD_ESTIMATOR(Systematic, entry)

}  // namespace hardgrad::estimators::systematic
