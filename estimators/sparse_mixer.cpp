// sparse_mixer: the score function with the loss of no option at all as baseline, from derivatives along the chosen option.
//
//   g = 1/K sum_k [ L_k grad log p(z_k) + grad f_k ],   L a rule for  int_0^1 z . f'(s z) ds = f(z) - f(0)
//   order=1:  L = z . f'(z)                             Euler
//   order=2:  L = z . f'(z / 2)                         midpoint: SparseMixer
//   order=3:  L = z . (f'(z) + 3 f'(z / 3)) / 4         Heun's third order: GRIN, SparseMixer-v2
//
// Liu, Gao & Chen 2023, Sparse backpropagation for mixture-of-expert training (SparseMixer), sec. 3: with weights 0 no expert
// answers, and the derivative along the chosen one stands for all others, which need not run. Liu et al. 2024, GRIN:
// gradient-informed MoE, sec. 2 (order 3).
// Target: expected loss. Bias: that of the rule, since f(0) is a constant; none if f along the ray from 0 to z is a polynomial
// of degree at most `order`. Cost: K rows; 2 K for orders 2 and 3, and as many backward passes.
// Departures: each sample has all derivatives of its rule (the papers draw one of them, and scale the output of the forward pass
// with it). Of subsets z is the indicator (they draw one expert after the other). Several choices are scaled together; where
// they feed later ones, order 1 only.
#include "core/choice/handlers.hpp"
#include "core/estimator/promises.hpp"
#include "core/estimator/relaxation/differentiated_samples.hpp"

namespace hardgrad::estimators::sparse_mixer {
namespace {

struct Config {
  int samples = 1, order = 2;

  void declare(Fields& field) {
    samples_field(field, samples);
    field(order, "order", 1, 3, "of the rule: 1 Euler, 2 midpoint, 3 Heun's third order");
  }
};

/// The places s on the ray and their weights.
struct Node {
  double at, weight;
};
std::vector<Node> rule(int order) {
  if (order == 1) return {{1, 1}};
  if (order == 2) return {{0.5, 1}};
  return {{1, 0.25}, {1.0 / 3, 0.75}};
}

template <class T>
class SparseMixer final : public Estimator<T> {
 public:
  SparseMixer(const Config& config, const Structure& structure, Key)
      : config_(config), nodes_(rule(config.order)), apart_(structure.steps_apart()) {}
  int copies() const override { return config_.samples; }

  Estimate<T> estimate(const Problem<T>& problem) const override {
    const int K = problem.one_copy ? 1 : config_.samples;
    SampleHandler<T> handler(K, problem.random, problem.batch.id);
    DifferentiatedSamples<T> samples(problem, K, handler);
    const auto& z = samples.choices().one_hot();
    auto along = samples.choices().zeros();
    std::vector<std::unique_ptr<Episode<T>>> others;
    for (const auto [at, weight] : nodes_) {
      if (at == 1) {
        along += weight * samples.slope();
        continue;
      }
      RepeatHandler<T> same(samples.run().episode());
      DifferentiatedSamples<T> scaled(problem, K, same, at);
      along += weight * scaled.slope();
      others.push_back(scaled.run().release());
    }
    const auto own = dot(z, along);
    const auto L = apart_ ? samples.run().sum_of_own_step(own) : sum(own, Along::all);
    auto surrogate = samples.surrogate(L * samples.choices().score());
    const double loss = samples.run().mean_loss();
    return {.surrogate = surrogate, .episode = samples.run().release(), .others = std::move(others), .loss = loss};
  }

 private:
  Config config_;
  std::vector<Node> nodes_;
  bool apart_;
};

// sum_z p(z) L(z) (z - p)
SmallChoice::Vector expected(const Config& config, const SmallChoice& at) {
  const auto p = at.p();
  return at.mean([&](std::size_t z) -> SmallChoice::Vector {
    const auto option = at.one_hot(z);
    double L = 0;
    for (const auto [s, weight] : rule(config.order)) L += weight * (option * at.slope(s * option)).sum();
    return L * (option - p);
  });
}

std::string refuse(const Config& config, const Structure& structure) {
  if (config.order == 1 || structure.independent()) return "";
  return "a run at scaled weights may ask other questions, since the choices of this model feed later ones: set order=1";
}

}  // namespace

const EstimatorEntry entry = {
    .name = "sparse_mixer",
    .summary = "score function with the loss of no option as baseline, by derivatives along the chosen one",
    .paper = "Liu, Gao & Chen 2023, Sparse backpropagation for mixture-of-expert training; Liu et al. 2024, GRIN",
    .target = "expected_loss",
    .unbiased = false,
    .evaluations = "2 K; K if order=1",
    .parameters = declared<Config>(),
    .needs = {need::picks},
    .promises = {promise::mean(expected), promise::mean(expected, "order=1"), promise::mean(expected, "order=3"),
                 promise::unshifted("order=1")},
    .why_unsupported = refuse,
};
HARDGRAD_ESTIMATOR(SparseMixer, entry)

}  // namespace hardgrad::estimators::sparse_mixer
