// antithetic: the score function on pairs of mirrored draws.
//
//   g = 1/K sum_k [ (f_k - b_k) grad log p(z_k) + grad f_k ],   z_{2j} = mean + scale e_j, z_{2j+1} = mean - scale e_j
//
// Hammersley & Morton 1956, A new Monte Carlo technique: antithetic variates; of gradients: Mohamed, Rosca, Figurnov & Mnih
// 2020, Monte Carlo gradient estimation in machine learning, sec. 7.2; Owen 2013, Monte Carlo theory, methods and examples,
// sec. 8.2. The part of f that is even in e cancels in the gradient in the mean; the odd part cancels in that in the scale.
// b_k: 0, or with leave_one_out (the default) the mean loss of the other pairs. A pair is left out as a whole, because a loss
// depends on the mirrored draw, too. Target: expected loss. Bias: none, because every member by itself follows p, and b_k does
// not depend on its pair. Cost: K rows. Where choices feed later ones, a pair's noise is mirrored at every choice.
#include "core/autodiff/elementwise.hpp"
#include "core/choice/handlers.hpp"
#include "core/estimator/coupling/coupled_estimator.hpp"
#include "core/estimator/promises.hpp"
#include "core/estimator/score_function/score_function.hpp"
#include "core/random/randomness.hpp"

namespace hardgrad::estimators::antithetic {
namespace {

struct Config {
  int samples = 4;
  bool leave_one_out = true;
  Credit credit = Credit::whole;

  void declare(Fields& field) {
    samples_field(field, samples, 2);
    field(leave_one_out, "leave_one_out", "the mean loss of the other pairs as baseline, if there are any");
    credit_field(field, credit);
  }
};

template <class T>
class Antithetic final : public Estimator<T> {
 public:
  Antithetic(const Config& config, const Structure&, Key) : config_(config) {}
  bool exchangeable() const override { return false; }

  Estimate<T> estimate(const Problem<T>& problem) const override {
    MirroredRandomness mirrored(problem.random);
    SampleHandler<T> handler(config_.samples, mirrored, problem.batch.id);
    return score_estimate(Sampled<T>(problem, config_.samples, handler), config_.credit, [this](std::vector<double>& f, int) {
      if (config_.leave_one_out && config_.samples > 2) leave_pair_out(f);
    });
  }

 private:
  /// Subtracts from each loss [B K] the mean loss of the other pairs of its example.
  void leave_pair_out(std::vector<double>& f) const {
    const auto all = f;
    for (std::size_t r = 0; r < f.size(); ++r) {
      const std::size_t first = r / config_.samples * config_.samples;
      double sum = 0;  // subtract before summing: equal losses give exactly 0
      for (std::size_t other = first; other < first + config_.samples; ++other)
        if (other / 2 != r / 2) sum += all[r] - all[other];
      f[r] = sum / (config_.samples - 2);
    }
  }

  Config config_;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "antithetic",
    .summary = "score function on pairs of mirrored draws, with the other pairs' mean loss as baseline",
    .paper = "Hammersley & Morton 1956; Mohamed et al. 2020, Monte Carlo gradient estimation in machine learning, sec. 7.2",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "K",
    .parameters = declared<Config>(),
    .needs = {need::symmetric},
    .promises = {promise::unshifted("samples=4")},
    .why_unsupported = needs_pairs,
};
HARDGRAD_ESTIMATOR(Antithetic, entry)

}  // namespace hardgrad::estimators::antithetic
