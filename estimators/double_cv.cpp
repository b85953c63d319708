// double_cv: leave-one-out with a second control variate from the derivatives of the other samples' losses.
//
//   g = 1/K sum_k sum_t [ (f_k + b_k - 1/(K-1) sum_{j != k} (f_j + b_j)) grad log p(z_kt) - alpha d_kt . grad p_kt ] + grad f_k
//   b_k = alpha sum_t d_kt . (z_kt - p_kt),   d_kt = 1/(K-1) sum_{j != k} df_j/dz_jt
//
// Titsias & Shi 2022, Double control variates for gradient estimation in discrete latent variable models (the form for
// leave-one-out without extra evaluations). z as one-hot vectors, p_kt the probabilities they were drawn with.
// b_k has the mean 0 given the other samples, and its product with the score of z_kt the mean alpha d_kt . grad p_kt: z_kt -
// p_kt has the mean 0 given what came before it, so this holds where choices feed later ones too. alpha descends |g|^2.
// Target: expected loss. Bias: none. Cost: K rows, one backward pass more.
// Before any training it is leave-one-out (alpha = 0, as in the authors' code); alpha = -1 takes the expansion off whole.
// Departures: categories besides bits; |g|^2 is taken at the logits, row by row. With reward_to_go only the choices whose cost
// is credited enter b_k.
#include "core/autodiff/reduce.hpp"
#include "core/estimator/relaxation/sloped_samples.hpp"

namespace hardgrad {
namespace {

template <class T>
class DoubleCv final : public Estimator<T> {
 public:
  DoubleCv(const Settings& settings, const Structure& structure, Key)
      : samples_(settings.integer("samples")),
        credit_(credit_of(settings)),
        sequential_(!structure.factorised()),
        alpha_(this->own_.add("double_cv.alpha", {1})) {
    alpha_.value.data[0] = static_cast<T>(settings.real("alpha"));
  }

  Estimate<T> estimate(const Problem<T>& problem) const override {
    SlopedSamples<T> samples(problem, samples_);
    std::vector<std::vector<double>> term;  // [step][row] d . (z - p)
    for (int t = 0; t < samples.steps(); ++t) {
      auto& of_step = term.emplace_back(samples.rows());
      for (std::size_t r = 0; r < samples.rows(); ++r) {
        const auto d = samples.others_slope(t, r), s = score(samples.option(t, r), samples.p(t, r));
        for (std::size_t i = 0; i < d.size(); ++i) of_step[r] += d[i] * s[i];
      }
    }
    auto plain = samples.at_logits(), second = samples.at_logits();  // g = plain + alpha second
    for (int t = 0; t < samples.steps(); ++t) {
      auto f = samples.run().returns(t, credit_);
      leave_one_out(f, samples_);
      std::vector<double> b(samples.rows());
      for (int u = 0; u < samples.steps(); ++u)
        if (credit_ == Credit::whole || u == t || (u > t && sequential_))
          for (std::size_t r = 0; r < b.size(); ++r) b[r] += term[u][r];
      leave_one_out(b, samples_);
      for (std::size_t r = 0; r < samples.rows(); ++r) {
        if (samples.options(t, r) == 1) continue;
        const auto s = score(samples.option(t, r), samples.p(t, r));
        samples.add(plain, t, r, f[r], s);
        samples.add(second, t, r, b[r], s);
        samples.add(second, t, r, -1, through_softmax(samples.p(t, r), samples.others_slope(t, r)));
      }
    }
    const double alpha = alpha_.value.data[0];
    for (std::size_t t = 0; t < plain.size(); ++t)
      for (std::size_t i = 0; i < plain[t].size(); ++i) plain[t][i] += alpha * second[t][i];
    auto surrogate = samples.surrogate(plain);
    const double loss = samples.run().mean_loss();
    Estimate<T> estimate{.surrogate = surrogate, .episode = nullptr, .loss = loss};
    if (problem.learning) estimate.own_loss = sum(problem.tape.parameter(alpha_), 2 * samples.product(plain, second));
    estimate.episode = samples.run().release();
    return estimate;
  }

 private:
  int samples_;
  Credit credit_;
  bool sequential_;
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
    .parameters = {samples_parameter(4, 2),
                   ParameterInfo::real("alpha", 0, -1e6, 1e6, "weight of the second control variate, at first"),
                   credit_parameter()},
    .needs = {need::relaxable, need::one_column},
};
HARDGRAD_ESTIMATOR(DoubleCv, entry)

}  // namespace hardgrad
