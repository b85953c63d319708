// implicit_mle: difference of two choices with the same noise, before and after a step of the logits that lowers the loss.
//
//   z = MAP(x + G),   z' = MAP(x - lambda df/dz + G),   x the logits, G the same Gumbel noise
//   MAP(r): the largest of r, or of subsets the k largest
//   g = 1/K sum_k (z_k - z'_k) / lambda + grad f_k                                               per choice
//   central=true:   g = (z+ - z') / (2 lambda),   z+ = MAP(x + lambda df/dz + G)
//   adaptive=true:  lambda = alpha |x| / |df/dz| for each choice. After each step, with c <- 0.9 c + 0.1 (entries of a choice's
//                   z - z' that are not 0, on average),   alpha <- max(0, alpha + `update` if c < 1, else alpha - `update`)
//
// Niepert, Minervini & Franceschi 2021, Implicit MLE: backpropagating through discrete exponential family distributions,
// algorithm 1 (perturb-and-MAP with Gumbel noise, which is exact for one of S options; the target distribution is a step of
// lambda away). central, adaptive: Minervini, Franceschi & Niepert 2023, Adaptive perturbation-based gradient estimation for
// discrete latent variable models, sec. 4; constants as in their code. `lambda` is then the first alpha.
// Target: expected loss. Bias: yes, for every lambda. For one of S options, as lambda falls to 0, with f'_z = df/dz at z,
//   E g = sum_z p(z) sum_j p_j max(0, (f'_z)_z - (f'_z)_j) (e_z - e_j),
// the gradient itself if f is linear, and twice the gradient for one bit and f(b) = (b - t)^2. For subsets also if f is linear:
// the k largest are k draws without replacement (top_k.hpp), unless these are the network's subsets (plackett_luce).
// Variance: like 1 / lambda. Cost: K rows, and one more backward pass.
// Departures: the difference is divided by lambda (not in the paper of 2021), so that the estimate has the same scale for all
// lambda. Norms are those of a choice, not of a batch, so that examples stay apart; where all its logits are 0, so is g.
// Subsets have Gumbel noise, too, not sums of Gammas. Where choices feed later ones, df/dz holds the later choices fixed.
// For one of S options and central=false, z' is drawn from its probabilities given z (gumbel.hpp: chosen_after) instead of the
// noise: one more draw for each choice, whose outcomes exact moments visit.
#include <algorithm>
#include <cmath>

#include "core/choice/gumbel.hpp"
#include "core/choice/top_k.hpp"
#include "core/estimator/promises.hpp"
#include "core/estimator/relaxation/differentiated_samples.hpp"

namespace hardgrad::estimators::implicit_mle {
namespace {

struct Config {
  int samples = 1;
  double lambda = 1;
  bool central = false, adaptive = false;
  double update = 0.001;

  void declare(Fields& field) {
    samples_field(field, samples);
    field(lambda, "lambda", 0, 1e6, "size of the step of the logits").above();
    field(central, "central", "the difference of steps in both directions");
    field(adaptive, "adaptive", "learn the size of the step relative to the logits (AIMLE)");
    field(update, "update", 0, 1e6, "change of that relative size after each step of training");
  }
};

template <class T>
class ImplicitMle final : public Estimator<T> {
 public:
  ImplicitMle(const Config& config, const Structure& structure, Key)
      : config_(config),
        by_noise_(config_.central || std::any_of(structure.sites.begin(), structure.sites.end(),
                                                 [](const auto& site) { return site.kind.several; })),
        alpha_(config_.lambda) {}
  bool exchangeable() const override { return false; }
  int copies() const override { return config_.samples; }

  Estimate<T> estimate(const Problem<T>& problem) const override {
    const int K = problem.one_copy ? 1 : config_.samples;
    if (by_noise_ && problem.random.enumerates())
      throw NotExact("the noise of the largest logits is continuous, which cannot be replayed: measure it with replicates");
    TopKHandler<T> noisy(K, problem.random, problem.batch.id);
    SampleHandler<T> plain(K, problem.random, problem.batch.id);
    DifferentiatedSamples<T> samples(problem, K, by_noise_ ? static_cast<Handler<T>&>(noisy) : plain);
    const auto lambda = steps(samples);
    const auto moved = [&](double by) {  // z after a step of the logits
      const AtLogits move = by * (lambda * samples.slope());
      return by_noise_ ? moved_with_noise(samples, noisy.perturbed(), move) : moved_given(samples, problem, K, move);
    };
    const AtLogits g = config_.central ? AtLogits(0.5 * (moved(1) - moved(-1))) : samples.choices().one_hot() - moved(-1);
    std::vector<double> observed;
    if (config_.adaptive) observed = {changes(g)};
    auto inverse = lambda;
    for (double& v : inverse.value) v = v > 0 ? 1 / v : 0;
    auto surrogate = samples.surrogate(inverse * g);
    const double loss = samples.run().mean_loss();
    return {.surrogate = surrogate, .episode = samples.run().release(), .loss = loss, .observed = std::move(observed)};
  }

  void learn(const Estimate<T>& estimate) override {
    if (!config_.adaptive || std::isnan(estimate.observed[0])) return;
    changes_ = 0.9 * changes_ + 0.1 * estimate.observed[0];
    alpha_ = std::max(0.0, alpha_ + (changes_ < 1 ? config_.update : -config_.update));
  }
  std::vector<double> state() const override {
    return config_.adaptive ? std::vector{alpha_, changes_} : std::vector<double>{};
  }
  void restore(const std::vector<double>& state) override {
    if (config_.adaptive) alpha_ = state.at(0), changes_ = state.at(1);
  }

 private:
  /// The lambda of each choice.
  PerChoice steps(DifferentiatedSamples<T>& samples) const {
    const auto& layout = *samples.layout();
    PerChoice lambda{samples.layout(), std::vector<double>(layout.choices(), config_.lambda)};
    if (!config_.adaptive) return lambda;
    const auto norm = [&](auto&& number, std::size_t choice) {
      double sum = 0;
      for (int i = 0; i < layout.options[choice]; ++i) {
        const double x = number(i);
        if (std::isfinite(x)) sum += x * x;  // -inf: an impossible option
      }
      return std::sqrt(sum);
    };
    for (std::size_t t = 0; t < layout.steps.size(); ++t) {
      const auto logits = samples.run().episode().steps()[t].question.distribution->logits().value();
      const auto& asking = samples.choices().asking(static_cast<int>(t));
      const std::size_t D = layout.steps[t].columns;
      for (std::size_t i = 0; i < layout.samples * D; ++i) {
        const std::size_t choice = layout.steps[t].choice + i;
        const double size = norm([&](int o) { return static_cast<double>(logits(asking[i / D] * D + i % D, o)); }, choice),
                     slope = norm([&](int o) { return samples.slope().value[layout.logit[choice] + o]; }, choice);
        lambda.value[choice] = slope > 0 ? alpha_ * size / slope : 0;
      }
    }
    return lambda;
  }
  /// Entries of g that are not 0, on average over the choices; NaN if there are none.
  static double changes(const AtLogits& g) {
    const auto choices = std::count_if(g.of->options.begin(), g.of->options.end(), [](int n) { return n > 1; });
    const auto some = std::count_if(g.value.begin(), g.value.end(), [](double v) { return v != 0; });
    return static_cast<double>(some) / static_cast<double>(choices);
  }
  static AtLogits moved_with_noise(DifferentiatedSamples<T>& samples, const std::vector<Var<T>>& perturbed,
                                   const AtLogits& move) {
    const auto& layout = *samples.layout();
    auto moved = samples.choices().zeros();
    std::vector<double> r;
    std::vector<int> largest;
    for (std::size_t t = 0; t < layout.steps.size(); ++t) {
      const auto& distribution = *samples.run().episode().steps()[t].question.distribution;
      const auto& asking = samples.choices().asking(static_cast<int>(t));
      const std::size_t D = layout.steps[t].columns;
      for (std::size_t i = 0; i < layout.samples * D; ++i) {
        const std::size_t choice = layout.steps[t].choice + i, first = layout.logit[choice];
        if (layout.options[choice] == 1) continue;
        largest.resize(distribution.subset_size_of(asking[i / D] * D + i % D));
        const T* before = perturbed[t].value().row(i);
        r.assign(before, before + layout.options[choice]);
        for (std::size_t o = 0; o < r.size(); ++o) r[o] += move.value[first + o];
        write_largest(std::span<const double>(r), largest);
        for (int o : largest) moved.value[first + o] = 1;
      }
    }
    return moved;
  }
  /// For one option of each choice, from the option chosen before.
  static AtLogits moved_given(DifferentiatedSamples<T>& samples, const Problem<T>& problem, int K, const AtLogits& move) {
    const auto& layout = *samples.layout();
    auto moved = samples.choices().zeros();
    for (std::size_t t = 0; t < layout.steps.size(); ++t) {
      const std::size_t D = layout.steps[t].columns;
      for (std::size_t c = 0; c < layout.samples * D; ++c) {
        const std::size_t choice = layout.steps[t].choice + c, options = layout.options[choice];
        if (options == 1) continue;
        const auto n = static_cast<int>(c / D);
        const Draw where{.example = problem.batch.id[n / K],
                         .replica = static_cast<std::uint32_t>(n % K),
                         .step = static_cast<std::uint32_t>(t),
                         .index = 1,  // behind the draw of z
                         .column = static_cast<std::uint32_t>(c % D)};
        const auto of = [&](const AtLogits& x) {
          return std::span<const double>(x.value).subspan(layout.logit[choice], options);
        };
        const auto z = of(samples.choices().one_hot());
        const int option = static_cast<int>(std::find(z.begin(), z.end(), 1.0) - z.begin());
        const auto p = chosen_after(of(samples.choices().p()), option, of(move));
        moved.value[layout.logit[choice] + problem.random.categorical(p, where)] = 1;
      }
    }
    return moved;
  }

  Config config_;
  bool by_noise_;
  double alpha_, changes_ = 1;
};

// For two options: those with noise between phi and phi - lambda (f'_1 - f'_0) change, by the logistic distribution function.
SmallChoice::Vector expected(const Config& config, const SmallChoice& at) {
  if (at.logits.size() != 2) return {};
  const double lambda = config.lambda, phi = at.logits[1] - at.logits[0];
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
    .paper = "Niepert, Minervini & Franceschi 2021, Implicit MLE; Minervini, Franceschi & Niepert 2023, Adaptive IMLE",
    .target = "expected_loss",
    .unbiased = false,
    .evaluations = "K",
    .parameters = declared<Config>(),
    .needs = {need::picks},
    .promises = {promise::mean(expected, "central=false,adaptive=false"),
                 promise::mean(expected, "lambda=0.1,central=false,adaptive=false"), promise::unshifted()},
};
HARDGRAD_ESTIMATOR(ImplicitMle, entry)

}  // namespace hardgrad::estimators::implicit_mle
