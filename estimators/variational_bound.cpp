// variational_bound: the evidence lower bound with a learned posterior q(z | x, y).
//
//   -ELBO = E_q[f(z)] + KL(q || p)
//   sampled:    g = 1/K sum_k sum_t (c_kt - b_t) grad log q(z_kt) + grad f_k + grad KL_kt,
//               c_kt = loss plus divergences of the sites after choice t
//   enumerated: g = grad (sum_z q(z) f(z) + sum_t E_q KL_t)
//
// Deng et al. 2018, Latent Alignment and Variational Attention, eq. 4-5 and sec. 3; Mnih & Gregor 2014; KL is analytic at
// every visited site. The model is built with a posterior; its parameters are trained with the rest.
// Target: ELBO. Bias: none. Cost: K rows, or as `exact`.
// Departure: the baseline is the mean of the example's other samples (K > 1) or a moving average used before its update
// (K = 1); Deng et al. use the soft network's loss.
#include <algorithm>

#include "core/autodiff/elementwise.hpp"
#include "core/estimator/enumeration/objectives.hpp"
#include "core/estimator/promises.hpp"
#include "core/estimator/score_function/moving_average.hpp"
#include "core/estimator/score_function/score_function.hpp"

namespace hardgrad::estimators::variational_bound {
namespace {

struct Config {
  int samples = 1;
  bool enumerate = false;
  double decay = 0.9;
  Credit credit = Credit::whole;

  void declare(Fields& field) {
    samples_field(field, samples);
    field(enumerate, "enumerate", "sum over every choice instead of sampling");
    field(decay, "decay", 0, 1, "share of the old baseline kept at each step (one sample)").below();
    credit_field(field, credit);
  }
};

template <class T>
class VariationalBound final : public AveragingEstimator<T> {
 public:
  VariationalBound(const Config& config, const Structure& structure, Key)
      : AveragingEstimator<T>(structure, config.decay), config_(config) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    if (config_.enumerate) return exact_objective(this->target(), problem, problem.cap);
    Sampled<T> sampled(problem, config_.samples);
    std::vector<double> observed;
    const auto score = sampled.score(config_.credit, [&](int t, std::vector<double>& f) {
      const auto means = sampled.means_where_chosen(t, f);
      this->note(observed, t, means);
      if (config_.samples > 1)
        leave_one_out(f, config_.samples, static_cast<int>(means.size()));
      else
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
    .name = "variational_bound",
    .summary = "evidence lower bound with a learned posterior, sampled or enumerated",
    .paper = "Deng et al. 2018, Latent Alignment and Variational Attention, eq. 4-5",
    .target = "elbo",
    .unbiased = true,
    .evaluations = "K; S if enumerate; S^D if enumerate and shared; S^T if enumerate and joint",
    .parameters = declared<Config>(),
    .needs = {need::log_density},
    .promises = {promise::same_moments("rloo[samples=2,target=elbo]", "samples=2")},
    .why_unsupported = [](const Config& config, const Structure& structure) -> std::string {
      return config.enumerate && structure.numbers() ? "numbers cannot be enumerated: take enumerate=false" : "";
    },
};
HARDGRAD_ESTIMATOR(VariationalBound, entry)

}  // namespace hardgrad::estimators::variational_bound
