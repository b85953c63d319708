// straight_through: a hard choice in the forward pass, its probabilities in the backward pass.
//
//   g = 1/K sum_k grad f(z_k) with dz/dlogits := dp_b/dlogits,   z_k ~ p_f
//   p_b = softmax(logits / temperature),   p_f = softmax(logits / forward_temperature)
//
// Bengio, Leonard & Courville 2013, Estimating or propagating gradients through stochastic neurons for conditional
// computation (the straight-through estimator that keeps the derivative of the sigmoid; here of the softmax): both are 1.
// With `temperature`: the version that Liu et al. 2023, Bridging discrete and backpropagation, compare with. With both,
// decoupled: Shah, Yan, Mozer & Liu 2024, Improving discrete optimisation via decoupled straight-through estimator.
// Target: expected loss. Bias: of first order in f's curvature; for one bit and f(b) = (b - t)^2 it is p (1 - p) (2p - 1).
// Exact at temperature 1 if f is linear in every choice and no choice feeds later ones. A forward temperature other than 1
// draws from another distribution than the network's, for exploration. Cost: K rows.
#include "core/estimator/promises.hpp"
#include "core/estimator/relaxation/relaxation.hpp"

namespace hardgrad::estimators::straight_through {
namespace {

struct Config {
  int samples = 1;
  double temperature = 1, forward_temperature = 1;

  void declare(Fields& field) {
    samples_field(field, samples);
    temperature_field(field, temperature);
    field.temperature(forward_temperature, "forward_temperature",
                      "temperature of the softmax that choices are drawn from; the network's own is 1");
  }
};

template <class T>
class StraightThrough final : public RelaxationEstimator<T> {
 public:
  StraightThrough(const Config& config, const Structure&, Key)
      : RelaxationEstimator<T>(config.samples), backward_(config.temperature), forward_(config.forward_temperature) {}

 private:
  Relaxed<T> relax(const RelaxationContext<T>& context) const override {
    return hardgrad::straight_through(context, context.draw(forward_), context.softmax(backward_));
  }
  double backward_, forward_;
};

// sum_z p_f(z) J(p_b) / temperature f'(z)
SmallChoice::Vector expected(const Config& config, const SmallChoice& at) {
  const double temperature = config.temperature;
  const auto p_b = at.p(temperature), p_f = at.p(config.forward_temperature);
  SmallChoice::Vector sum(0.0, p_f.size());
  for (std::size_t z = 0; z < p_f.size(); ++z) sum += p_f[z] / temperature * through_softmax(p_b, at.slope(at.one_hot(z)));
  return sum;
}

}  // namespace

const EstimatorEntry entry = {
    .name = "straight_through",
    .summary = "hard choices in the forward pass, their probabilities in the backward pass",
    .paper = "Bengio, Leonard & Courville 2013, Estimating or propagating gradients through stochastic neurons",
    .target = "expected_loss",
    .unbiased = false,
    .evaluations = "K",
    .parameters = declared<Config>(),
    .needs = {need::relaxable},
    .promises = {promise::mean(expected), promise::mean(expected, "temperature=0.6"),
                 promise::mean(expected, "temperature=1.7,forward_temperature=0.5"), promise::noiseless(Promise::Loss::linear)},
    .closed_form = [](const Config&) { return ClosedForm::straight_through; },
};
HARDGRAD_ESTIMATOR(StraightThrough, entry)

}  // namespace hardgrad::estimators::straight_through
