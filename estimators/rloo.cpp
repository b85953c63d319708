// rloo: the score function with the other samples' mean loss as baseline.
//
//   g = 1/(K-1) sum_k (f_k - mean f) grad log p(z_k) + 1/K sum_k grad f_k
//
// Kool, van Hoof & Welling 2019, Buy 4 REINFORCE samples, get a baseline for free!, eq. 8; Salimans & Knowles 2014;
// the multi-sample baseline of Mnih & Rezende 2016, sec. 2.5. (f_k - mean of the others = K/(K-1) (f_k - mean f).)
// Target: expected loss. Bias: none. Cost: K rows.
#include "core/estimator/promises.hpp"
#include "core/estimator/score_function/score_function.hpp"

namespace hardgrad::estimators::rloo {
namespace {

using Config = SamplesAndCredit<4, 2>;

template <class T>
class Rloo final : public Estimator<T> {
 public:
  Rloo(const Config& config, const Structure&, Key) : config_(config) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    return score_estimate(Sampled<T>(problem, config_.samples), config_.credit,
                          [this](std::vector<double>& f, int columns) { leave_one_out(f, config_.samples, columns); });
  }

 private:
  Config config_;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "rloo",
    .summary = "score function with the mean of the other samples as baseline (leave-one-out)",
    .paper = "Kool et al. 2019, Buy 4 REINFORCE samples, get a baseline for free!, eq. 8",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "K",
    .parameters = declared<Config>(),
    .needs = {need::log_density},
    .promises = {promise::unshifted(), promise::variance(1.465616396, "samples=3")},
};
HARDGRAD_ESTIMATOR(Rloo, entry)

}  // namespace hardgrad::estimators::rloo
