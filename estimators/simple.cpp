// simple: hard choices in the forward pass, the marginal probabilities of their options in the backward pass.
//
//   g = 1/K sum_k J(pi)' grad f(b_k),   b_k ~ p,   pi = E[b],   J(pi) = dpi/dlogits = Cov(b)         per choice
//
// Ahmed, Zeng, Niepert & Van den Broeck 2023, SIMPLE: a gradient estimator for k-subset sampling, eq. 6 and algorithm 1: exact
// samples and exact marginals of the subsets of k of n options. For one of n options it is straight_through.
// Target: expected loss. Bias: of first order in f's curvature. Exact if f is linear in every choice and no choice feeds later
// ones. Cost: K rows.
#include "core/choice/handlers.hpp"
#include "core/choice/relaxed.hpp"
#include "core/estimator/promises.hpp"
#include "core/estimator/score_function/score_function.hpp"

namespace hardgrad::estimators::simple {
namespace {

using Config = SamplesConfig<>;

/// Draws as SampleHandler; the derivative is that of the mean.
template <class T>
class MarginalsHandler final : public Handler<T> {
 public:
  MarginalsHandler(int samples, Randomness& random, const std::vector<std::uint32_t>& id) : hard_(samples, random, id) {}
  Choice<T> choose(Tape<T>& tape, const Question<T>& question) override {
    const auto hard = hard_.choose(tape, question);
    return {hard.rows, straight_through(tape, hard, question.distribution->mean(hard.rows).weights())};
  }

 private:
  SampleHandler<T> hard_;
};

template <class T>
class Simple final : public Estimator<T> {
 public:
  Simple(const Config& config, const Structure&, Key) : config_(config) {}
  int copies() const override { return config_.samples; }

  Estimate<T> estimate(const Problem<T>& problem) const override {
    const int samples = problem.one_copy ? 1 : config_.samples;
    MarginalsHandler<T> handler(samples, problem.random, problem.batch.id);
    return path_estimate(problem, samples, handler);
  }

 private:
  Config config_;
};

// For one option: sum_z p(z) J(p) f'(z)
SmallChoice::Vector expected(const Config&, const SmallChoice& at) {
  return at.mean([&](std::size_t z) { return through_softmax(at.p(), at.slope(at.one_hot(z))); });
}

}  // namespace

const EstimatorEntry entry = {
    .name = "simple",
    .summary = "hard choices in the forward pass, their options' marginal probabilities in the backward pass",
    .paper = "Ahmed, Zeng, Niepert & Van den Broeck 2023, SIMPLE: a gradient estimator for k-subset sampling",
    .target = "expected_loss",
    .unbiased = false,
    .evaluations = "K",
    .parameters = declared<Config>(),
    .needs = {need::picks},
    .promises = {promise::mean(expected), promise::noiseless(Promise::Loss::linear)},
    .closed_form = [](const Config&) { return ClosedForm::straight_through; },
};
HARDGRAD_ESTIMATOR(Simple, entry)

}  // namespace hardgrad::estimators::simple
