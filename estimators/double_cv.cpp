// double_cv: leave-one-out with a second control variate from the derivatives of the other samples' losses.
//
//   g = 1/K sum_k sum_t [ (f_k + b_k - 1/(K-1) sum_{j != k} (f_j + b_j)) grad log p(z_kt) - alpha d_kt . grad p_kt ] + grad f_k
//   b_k = alpha sum_t d_kt . (z_kt - p_kt),   d_kt = 1/(K-1) sum_{j != k} df_j/dz_jt
//
// Titsias & Shi 2022, Double control variates for gradient estimation in discrete latent variable models (the form for
// leave-one-out without extra evaluations). z as one-hot vectors, p_kt the probabilities they were drawn with.
// b_k has mean 0 given the other samples. Its product with the score of z_kt has mean alpha d_kt . grad p_kt, because
// z_kt - p_kt has mean 0 given the earlier choices. So this also holds where choices feed later ones. alpha descends |g|^2.
// Target: expected loss. Bias: none. Cost: K rows, and one more backward pass.
// Before training it is leave-one-out (alpha = 0, as in the authors' code); alpha = -1 subtracts the whole expansion.
// Departures: categories besides bits; |g|^2 is taken at the logits, row by row. With reward_to_go, b_k contains only the
// choices whose cost is credited.
#include "core/autodiff/reduce.hpp"
#include "core/estimator/promises.hpp"
#include "core/estimator/relaxation/differentiated_samples.hpp"

namespace hardgrad::estimators::double_cv {
namespace {

struct Config {
  int samples = 4;
  double alpha = 0;
  Credit credit = Credit::whole;

  void declare(Fields& field) {
    samples_field(field, samples, 2);
    field(alpha, "alpha", -1e6, 1e6, "initial weight of the second control variate");
    credit_field(field, credit);
  }
};

template <class T>
class DoubleCv final : public Estimator<T> {
 public:
  DoubleCv(const Config& config, const Structure& structure, Key)
      : config_(config), apart_(structure.steps_apart()), alpha_(this->own_.add("double_cv.alpha", {1})) {
    alpha_.value.flat(0) = static_cast<T>(config.alpha);
  }

  Estimate<T> estimate(const Problem<T>& problem) const override {
    DifferentiatedSamples<T> samples(problem, config_.samples);
    const auto& p = samples.choices().p();
    const auto& score = samples.choices().score();  // z - p
    const auto d = mean_of_others(samples.slope(), config_.samples);
    const auto f = samples.returns(config_.credit), b = credited(samples, dot(d, score));
    const double alpha = alpha_.value.flat(0);

    const auto first = leave_one_out(f, config_.samples) * score;
    const AtLogits second = leave_one_out(b, config_.samples) * score - through_softmax(p, d);
    const AtLogits g = first + alpha * second;

    Estimate<T> estimate{.surrogate = samples.surrogate(g), .loss = samples.run().mean_loss()};
    if (problem.learning) estimate.own_loss = sum(problem.tape.parameter(alpha_), 2 * samples.product(g, second));
    estimate.episode = samples.run().release();
    return estimate;
  }

 private:
  /// For each choice, the sum of x over the choices that affect the cost it is credited with.
  PerChoice credited(DifferentiatedSamples<T>& samples, const PerChoice& x) const {
    if (config_.credit == Credit::whole) return sum(x, Along::all);
    if (!apart_) return sum(x, Along::from_here);
    return samples.run().sum_of_own_step(x);
  }

  Config config_;
  bool apart_;
  Parameter<T>& alpha_;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "double_cv",
    .summary = "leave-one-out with a control variate from the other samples' derivatives",
    .paper = "Titsias & Shi 2022, Double control variates for gradient estimation in discrete latent variable models",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "K",
    .parameters = declared<Config>(),
    .needs = {need::relaxable},
    .promises = {promise::noiseless(Promise::Loss::linear, "alpha=-1"),
                 promise::same_moments("rloo[samples=3]", "samples=3,alpha=0"), promise::unshifted("alpha=0.5"),
                 promise::descends_square("samples=3,alpha=0.3"), promise::variance(2.643485203, "samples=2")},
};
HARDGRAD_ESTIMATOR(DoubleCv, entry)

}  // namespace hardgrad::estimators::double_cv
