// perturbed: the mean of several choices of perturbed logits in the forward pass, the derivative of its expectation in the
// backward pass.
//
//   g = 1/K sum_k grad f(y_k) with dy/dlogits := 1/(M sigma) sum_m z_m (z_m - p)'
//   y = 1/M sum_m z_m,   z_m = one_hot(argmax(logits + sigma Z_m)) ~ p = softmax(logits / sigma),   Z_m Gumbel noise
//
// Berthet, Blondel, Teboul, Cuturi, Vert & Bach 2020, Learning with differentiable perturbed optimizers, as in JAXopt's
// make_perturbed_argmax, whose Jacobian is 1/(M sigma) sum_m z_m (1 - exp(-Z_m))'.
// Target: the soft network's loss. Bias: for sigma = 1 it falls like 1/M; none for a linear f. It depends on f beyond weights
// that sum to 1. With M = 1 choices are hard. For other sigma the limit is the soft network at that temperature.
// Cost: K rows.
// Departures: 1 - exp(-Z_m) is replaced by its mean given z_m, which is z_m - p: the same mean, and less variance. No Normal
// noise, and no other polytopes.
#include "core/estimator/promises.hpp"
#include "core/estimator/relaxation/relaxation.hpp"

namespace hardgrad::estimators::perturbed {
namespace {

struct Config {
  int samples = 1, draws = 10;
  double sigma = 1;

  void declare(Fields& field) {
    samples_field(field, samples);
    field(draws, "draws", 1, 1e6, "choices M, whose mean is read");
    field.temperature(sigma, "sigma", "scale of the noise");
  }
};

template <class T>
class Perturbed final : public RelaxationEstimator<T> {
 public:
  Perturbed(const Config& config, const Structure&, Key) : RelaxationEstimator<T>(config.samples), config_(config) {}

 private:
  // With c = (number of draws of an option) / (M p), held constant, c p is y, and its derivative is the one above.
  Relaxed<T> relax(const RelaxationContext<T>& context) const override {
    const auto p = context.softmax(config_.sigma);
    const auto c = context.tape.constant(context.size(), context.width());
    const auto values = p.value();
    const auto to = context.tape.mutable_value(c);
    const Noise noise{context.random, context.id, context.question.step};
    const auto columns = static_cast<std::size_t>(context.question.site.columns);
    std::vector<double> probabilities;
    for (std::size_t r = 0; r < context.size(); ++r) {
      probabilities.assign(values.row(r), values.row(r) + context.count[r]);
      auto place = noise.at(context.rows, r / columns, r % columns);
      const int draws = context.count[r] == 1 ? 0 : config_.draws;
      if (draws == 0) to(r, 0) = 1;
      for (int m = 0; m < draws; ++m) {
        place.index = static_cast<std::uint32_t>(m);
        const int z = context.random.categorical(probabilities, place);
        to(r, z) += static_cast<T>(1 / (draws * probabilities[z]));
      }
    }
    return {{}, multiply(c, p)};
  }
  Config config_;
};

// sum over z_1..z_M of their probability times 1/(M sigma) sum_m (z_m - p) (f'(y))_(z_m)
SmallChoice::Vector expected(const Config& config, const SmallChoice& at) {
  const auto p = at.p(config.sigma);
  auto tempered = at;
  tempered.behaviour = at.logits / config.sigma;
  return mean_over_tuples(tempered, config.draws, [&](const std::vector<std::size_t>& z) {
    SmallChoice::Vector y(0.0, p.size()), g(0.0, p.size());
    for (const auto m : z) y += at.one_hot(m) / static_cast<double>(z.size());
    const auto slope = at.slope(y);
    for (const auto m : z) g += slope[m] / (static_cast<double>(z.size()) * config.sigma) * (at.one_hot(m) - p);
    return g;
  });
}

}  // namespace

const EstimatorEntry entry = {
    .name = "perturbed",
    .summary = "the mean of several choices of perturbed logits, and the derivative of its expectation (perturbed optimisers)",
    .paper = "Berthet et al. 2020, Learning with differentiable perturbed optimizers",
    .target = "soft",
    .unbiased = false,
    .evaluations = "K",
    .parameters = declared<Config>(),
    .needs = {need::relaxable},
    .promises = {promise::mean(expected, "draws=1"), promise::mean(expected, "draws=3"),
                 promise::mean(expected, "draws=2,sigma=0.6")},
};
HARDGRAD_ESTIMATOR(Perturbed, entry)

}  // namespace hardgrad::estimators::perturbed
