// implicit_mle: difference of two choices with the same noise, before and after a step of the logits that lowers the loss.
//
//   z = argmax(log p + G),   z' = argmax(log p - lambda df/dz + G),   G the same Gumbel noise
//   g = 1/K sum_k (z_k - z'_k) / lambda + grad f_k                                               per choice
//
// Niepert, Minervini & Franceschi 2021, Implicit MLE: backpropagating through discrete exponential family distributions,
// algorithm 1 (perturb-and-MAP with Gumbel noise, which is exact for one of S options;
// the target distribution is a step of lambda away).
// Target: expected loss. Bias: yes, for every lambda. As lambda falls to 0, with f'_z = df/dz at z,
//   E g = sum_z p(z) sum_j p_j max(0, (f'_z)_z - (f'_z)_j) (e_z - e_j),
// the gradient itself if f is linear, and twice the gradient for one bit and f(b) = (b - t)^2.
// Variance: like 1 / lambda. Cost: K rows, and one more backward pass.
// Departures: the difference is divided by lambda (not in the paper), so that the estimate has the same scale for all lambda.
// Where choices feed later ones, df/dz holds the later choices fixed. z' is drawn from its probabilities given z
// (gumbel.hpp: chosen_after) instead of the noise: one more draw for each choice, whose outcomes exact moments visit.
#include <algorithm>
#include <cmath>

#include "core/choice/gumbel.hpp"
#include "core/estimator/relaxation/differentiated_samples.hpp"

namespace hardgrad::estimators::implicit_mle {
namespace {

template <class T>
class ImplicitMle final : public Estimator<T> {
 public:
  ImplicitMle(const Settings& settings, const Structure&, Key)
      : samples_(settings.integer("samples")), lambda_(settings.real("lambda")) {}
  bool exchangeable() const override { return false; }
  int copies() const override { return samples_; }

  Estimate<T> estimate(const Problem<T>& problem) const override {
    const int K = problem.one_copy ? 1 : samples_;
    DifferentiatedSamples<T> samples(problem, K);
    auto moved = samples.choices().zeros();  // z'
    const auto& layout = *samples.layout();
    for (std::size_t t = 0; t < layout.steps.size(); ++t) {
      const std::size_t D = layout.steps[t].columns;
      for (std::size_t c = 0; c < layout.samples * D; ++c) {
        const std::size_t choice = layout.steps[t].choice + c;
        if (layout.options[choice] == 1) continue;
        const auto n = static_cast<int>(c / D);
        const Draw where{.example = problem.batch.id[n / K],
                         .replica = static_cast<std::uint32_t>(n % K),
                         .step = static_cast<std::uint32_t>(t),
                         .index = 1,  // behind the draw of z
                         .column = static_cast<std::uint32_t>(c % D)};
        moved.value[layout.logit[choice] + draw(samples, choice, problem, where)] = 1;
      }
    }
    const auto g = 1 / lambda_ * (samples.choices().one_hot() - moved);
    auto surrogate = samples.surrogate(g);
    const double loss = samples.run().mean_loss();
    return {.surrogate = surrogate, .episode = samples.run().release(), .loss = loss};
  }

 private:
  int draw(const DifferentiatedSamples<T>& samples, std::size_t choice, const Problem<T>& problem, Draw where) const {
    const std::size_t first = samples.layout()->logit[choice], options = samples.layout()->options[choice];
    const auto of = [&](const AtLogits& x) { return std::span<const double>(x.value).subspan(first, options); };
    const auto z = of(samples.choices().one_hot());
    std::vector<double> move(options);
    for (std::size_t i = 0; i < options; ++i) move[i] = -lambda_ * of(samples.slope())[i];
    const int option = static_cast<int>(std::find(z.begin(), z.end(), 1.0) - z.begin());
    return problem.random.categorical(chosen_after(of(samples.choices().p()), option, move), where);
  }
  int samples_;
  double lambda_;
};

// For two options: those with noise between phi and phi - lambda (f'_1 - f'_0) change, by the logistic distribution function.
SmallChoice::Vector expected(const Settings& settings, const SmallChoice& at) {
  if (at.logits.size() != 2) return {};
  const double lambda = settings.real("lambda"), phi = at.logits[1] - at.logits[0];
  const auto p = [](double logit) { return 1 / (1 + std::exp(-logit)); };
  double g = 0;
  for (std::size_t z = 0; z < 2; ++z) {
    const auto slope = at.slope(at.one_hot(z));
    const double fewer = p(phi) - p(phi - lambda * (slope[1] - slope[0]));  // lost by option 1, for this slope
    if ((z == 1) == (fewer > 0)) g += fewer / lambda;
  }
  return {-g, g};
}

}  // namespace

const EstimatorEntry entry = {
    .name = "implicit_mle",
    .summary = "difference of the choices with the same noise before and after a step of the logits that lowers the loss",
    .paper = "Niepert, Minervini & Franceschi 2021, Implicit MLE: backpropagating through discrete exponential families",
    .target = "expected_loss",
    .unbiased = false,
    .evaluations = "K",
    .parameters = {samples_parameter(), ParameterInfo::real("lambda", 1, 0, 1e6, "size of the step of the logits").above()},
    .needs = {need::relaxable},
    .promises = {promise::mean(expected), promise::mean(expected, "lambda=0.1"), promise::unshifted()},
};
HARDGRAD_ESTIMATOR(ImplicitMle, entry)

}  // namespace hardgrad::estimators::implicit_mle
