// moving_baseline: the score function with an exponential moving average of past losses as baseline.
//
//   g = 1/K sum_k [ (f_k - b) grad log p(z_k) + grad f_k ],   then b <- decay b + (1 - decay) mean f
//
// Williams 1992, sec. 4 (reinforcement comparison); Xu et al. 2015, Show, Attend and Tell, sec. 4.1.
// Target: expected loss. Bias: none, because the average is used before it is updated. Cost: K rows.
// Departures: the first observation replaces the average, instead of a slow start from 0. With reward_to_go every step has its
// own average, over the rows with a choice there.
#include "core/estimator/promises.hpp"
#include "core/estimator/score_function/score_function.hpp"

#include "core/autodiff/elementwise.hpp"
#include "core/estimator/score_function/moving_average.hpp"

namespace hardgrad::estimators::moving_baseline {
namespace {

struct Config {
  int samples = 1;
  double decay = 0.9;
  Credit credit = Credit::whole;

  void declare(Fields& field) {
    samples_field(field, samples);
    field(decay, "decay", 0, 1, "share of the old average kept at each step").below();
    credit_field(field, credit);
  }
};

template <class T>
class MovingBaseline final : public AveragingEstimator<T> {
 public:
  MovingBaseline(const Config& config, const Structure& structure, Key)
      : AveragingEstimator<T>(structure, config.decay), config_(config) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    Sampled<T> sampled(problem, config_.samples);
    std::vector<double> observed;
    const auto score = sampled.score(config_.credit, [&](int t, std::vector<double>& f) {
      const auto means = sampled.means_where_chosen(t, f);
      this->note(observed, t, means);
      for (std::size_t i = 0; i < f.size(); ++i) f[i] -= this->average(t, i % means.size());
    });
    auto surrogate = add(score, sampled.path());
    return {.surrogate = surrogate, .episode = sampled.release(), .loss = sampled.mean_loss(), .observed = observed};
  }

 private:
  Config config_;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "moving_baseline",
    .summary = "score function with a moving average of past losses as baseline",
    .paper = "Williams 1992, sec. 4; Xu et al. 2015, sec. 4.1",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "K",
    .parameters = declared<Config>(),
    .needs = {need::log_density},
    .promises = {promise::noiseless_once_learned()},
};
HARDGRAD_ESTIMATOR(MovingBaseline, entry)

}  // namespace hardgrad::estimators::moving_baseline
