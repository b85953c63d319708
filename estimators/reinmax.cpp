// reinmax: second-order straight-through, by the trapezoid rule between the choice and its probabilities.
//
//   g = 1/K sum_k grad f(z_k) with dz/dlogits := 2 J((p_T + z) / 2) - 1/2 J(p),   J(w) = diag(w) - w w'
//
// Liu, Dong, Liu, Yu & Gao 2023, Bridging discrete and backpropagation: straight-through and beyond, Algorithm 2 (ReinMax, by
// Heun's method); p_T is the softmax at temperature T; the authors use T >= 1.
// At T = 1 the derivative is 1/2 J(p) + 1/2 (z - p)(z - p)', the mean of straight-through and DARN: ZGR, the limit of
// gumbel_rao at temperature 0 (Shekhovtsov 2023).
// Target: expected loss. Bias: of third order in f; none for quadratic f at temperature 1. Cost: K rows.
#include "core/estimator/promises.hpp"
#include "core/estimator/relaxation/relaxation.hpp"

#include "core/autodiff/elementwise.hpp"

namespace hardgrad::estimators::reinmax {
namespace {

struct Config {
  int samples = 1;
  double temperature = 1;

  void declare(Fields& field) {
    samples_field(field, samples);
    temperature_field(field, temperature);
  }
};

template <class T>
class ReinMax final : public RelaxationEstimator<T> {
 public:
  ReinMax(const Config& config, const Structure&, Key) : RelaxationEstimator<T>(config.samples), config_(config) {}

 private:
  Relaxed<T> relax(const RelaxationContext<T>& context) const override {
    auto option = context.draw();
    // The softmax of the moved logits is (p_T + z) / 2, so its Jacobian is J((p_T + z) / 2).
    const auto theta = halfway(context, option, config_.temperature);
    auto moves = context.constants([&](std::size_t r, std::span<double> move) {
      for (std::size_t i = 0; i < move.size(); ++i) move[i] = theta[r * context.width() + i] - move[i];
    });
    auto soft = subtract(affine(context.softmax(moves, 1), T{2}), affine(context.softmax(), T{0.5}));
    return straight_through(context, std::move(option), soft);
  }
  Config config_;
};

// sum_z p(z) [2 J((p_T + z) / 2) - 1/2 J(p)] f'(z)
SmallChoice::Vector expected(const Config& config, const SmallChoice& at) {
  const auto p = at.p(), p_T = at.p(config.temperature);
  return at.mean([&](std::size_t z) -> SmallChoice::Vector {
    const auto slope = at.slope(at.one_hot(z));
    return 2.0 * through_softmax((p_T + at.one_hot(z)) / 2.0, slope) - 0.5 * through_softmax(p, slope);
  });
}

// sum_z p(z) 1/2 [J(p) + (z - p)(z - p)'] f'(z), as ZGR is published
SmallChoice::Vector expected_zgr(const Config&, const SmallChoice& at) {
  const auto p = at.p();
  return at.mean([&](std::size_t z) -> SmallChoice::Vector {
    const auto slope = at.slope(at.one_hot(z));
    const SmallChoice::Vector score = at.one_hot(z) - p;
    return 0.5 * through_softmax(p, slope) + 0.5 * (score * slope).sum() * score;
  });
}

}  // namespace

const EstimatorEntry entry = {
    .name = "reinmax",
    .summary = "second-order straight-through (Heun's method)",
    .paper = "Liu, Dong, Liu, Yu & Gao 2023, Bridging discrete and backpropagation: straight-through and beyond",
    .target = "expected_loss",
    .unbiased = false,
    .evaluations = "K",
    .parameters = declared<Config>(),
    .needs = {need::relaxable},
    .promises = {promise::mean(expected), promise::mean(expected, "temperature=1.6"), promise::mean(expected_zgr)},
    .closed_form = [](const Config&) { return ClosedForm::reinmax; },
};
HARDGRAD_ESTIMATOR(ReinMax, entry)

}  // namespace hardgrad::estimators::reinmax
