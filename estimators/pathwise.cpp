// pathwise: the gradient through the draw, as a smooth function of the parameters and of fixed noise.
//
//   g = 1/K sum_k grad f(z_k),   z_k = mean + scale e_k, e_k ~ N(0, 1)                     (for a Normal)
//
// Kingma & Welling 2014, Auto-encoding variational Bayes, sec. 2.4; Rezende, Mohamed & Wierstra 2014, Stochastic
// backpropagation and approximate inference in deep generative models; Mohamed et al. 2020, Monte Carlo gradient estimation in
// machine learning, sec. 5. With antithetic=true samples 2j and 2j + 1 have noise e and -e. Target: expected loss. Bias: none
// if f is continuous in z and differentiable almost everywhere. Cost: K rows.
#include "core/choice/handlers.hpp"
#include "core/estimator/coupling/coupled_estimator.hpp"
#include "core/estimator/score_function/score_function.hpp"
#include "core/random/randomness.hpp"

namespace hardgrad::estimators::pathwise {
namespace {

struct Config {
  int samples = 1;
  bool antithetic = false;

  void declare(Fields& field) {
    samples_field(field, samples);
    field(antithetic, "antithetic", "draw samples in pairs of mirrored noise");
  }
};

/// As SampleHandler, but its answers are differentiable in the distribution's parameters.
template <class T>
class ReparameterisedHandler final : public Handler<T> {
 public:
  ReparameterisedHandler(int samples, Randomness& random, const std::vector<std::uint32_t>& id)
      : samples_(samples), random_(random), id_(id) {}
  Choice<T> choose(Tape<T>& tape, const Question<T>& question) override {
    const auto rows = fan_out(question, question.site.rows->is_root() ? samples_ : 1);
    return question.distribution->reparameterised_sample(tape, rows, {random_, id_, question.step});
  }

 private:
  int samples_;
  Randomness& random_;
  const std::vector<std::uint32_t>& id_;
};

template <class T>
class Pathwise final : public Estimator<T> {
 public:
  Pathwise(const Config& config, const Structure&, Key) : config_(config) {}
  bool exchangeable() const override { return !config_.antithetic; }

  Estimate<T> estimate(const Problem<T>& problem) const override {
    MirroredRandomness mirrored(problem.random);
    ReparameterisedHandler<T> handler(config_.samples, config_.antithetic ? mirrored : problem.random, problem.batch.id);
    return path_estimate(problem, config_.samples, handler);
  }

 private:
  Config config_;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "pathwise",
    .summary = "reparameterised draws: the gradient of the loss through the drawn numbers",
    .paper = "Kingma & Welling 2014, Auto-encoding variational Bayes; Rezende et al. 2014, Stochastic backpropagation",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "K",
    .parameters = declared<Config>(),
    .needs = {need::reparameterised},
    .why_unsupported =
        [](const Config& config, const Structure& structure) {
          return config.antithetic ? needs_pairs({config.samples}, structure) : std::string();
        },
};
HARDGRAD_ESTIMATOR(Pathwise, entry)

}  // namespace hardgrad::estimators::pathwise
