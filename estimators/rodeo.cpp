// rodeo: leave-one-out with control variates from a discrete Stein operator on a learned surrogate of f.
//
//   g = 1/K sum_k [ (f_k - 1/(K-1) sum_{j != k} (f_j + alpha (A h_j)(z_j))) grad log p(z_k) + beta (A h'_k grad log p)(z_k) ]
//       + 1/K sum_k grad f_k
//   (A h)(z) = 1/T sum_t [ sum_y p(z_t := y | rest) h(z with z_t := y) - h(z) ]
//   h_k(z), h'_k(z) = H(1/(K-1) sum_{j != k} f_j, 1/(K-1) sum_{j != k} df_j/dz_j . (z - z_j))
//
// Shi, Zhou, Hwang, Titsias & Mackey 2022, Gradient estimation with discrete Stein operators: RODEO, with the Gibbs
// Stein operator (which for bits is also Barker's). H is a network with one layer; H, alpha and
// beta descend |g|^2. A h has mean 0 under p, for any values of the other samples. Where choices
// feed later ones, p(z_t | rest) is the probability given the earlier choices only, and h does not
// depend on choices after t. A h is then a sum of martingale differences, so its mean is still 0.
// Target: expected loss. Bias: none. Cost: K rows, one more backward pass, and T S evaluations of H per sample.
// Departures: the form above for dependent choices; categories besides bits; tanh units;
// |g|^2 is taken at the logits, row by row.
#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/estimator/promises.hpp"
#include "core/estimator/relaxation/differentiated_samples.hpp"
#include "core/nn/layers.hpp"

namespace hardgrad::estimators::rodeo {
namespace {

struct Config {
  int samples = 4;
  double alpha = 0, beta = 0;
  int hidden = 100;

  void declare(Fields& field) {
    samples_field(field, samples, 2);
    field(alpha, "alpha", -1e6, 1e6, "initial weight of the control variate on the baseline");
    field(beta, "beta", -1e6, 1e6, "initial weight of the control variate on the gradient");
    field(hidden, "hidden", 1, 65536, "units of the surrogate network");
  }
};

template <class T>
class Rodeo final : public Estimator<T> {
 public:
  Rodeo(const Config& config, const Structure& structure, Key init)
      : config_(config),
        visible_(structure.independent() ? Along::all : Along::so_far),
        alpha_(this->own_.add("rodeo.alpha", {1})),
        beta_(this->own_.add("rodeo.beta", {1})) {
    alpha_.value.flat(0) = static_cast<T>(config.alpha);
    beta_.value.flat(0) = static_cast<T>(config.beta);
    const auto width = static_cast<std::size_t>(config.hidden);
    hidden_ = Linear<T>(this->own_, "surrogate.hidden", 2, width, init);
    out_ = Linear<T>(this->own_, "surrogate.out", width, 2, init);
  }

  Estimate<T> estimate(const Problem<T>& problem) const override {
    DifferentiatedSamples<T> samples(problem, config_.samples);
    const auto& z = samples.choices().one_hot();
    const auto& score = samples.choices().score();
    const auto f = spread(samples.layout(), samples.run().losses());
    const auto H = surrogates(samples, f);  // [logits, 2] h and h' with a choice replaced by each of its options
    const auto h = column(samples, H, 0), h2 = column(samples, H, 1);
    const double alpha = alpha_.value.flat(0), beta = beta_.value.flat(0);

    // (A h)(z) = sum over the choices of w . h, with w = (p - z) / T: the operator replaces a choice by each option and
    // subtracts h(z).
    const AtLogits w = steps_share(samples) * (-1.0 * score);
    const auto Ah = sum(dot(w, h), Along::all), Ah2 = sum(dot(w, h2), Along::all);
    // (A h' grad log p)(z): where a choice is replaced by y, its score changes to that of y, by y - z.
    const AtLogits stein = Ah2 * score + times(w, h2) - dot(w, h2) * z;
    const AtLogits others = mean_of_others(Ah, config_.samples) * score;
    const AtLogits g = leave_one_out(f, config_.samples) * score - alpha * others + beta * stein;

    Estimate<T> estimate{.surrogate = samples.surrogate(g), .loss = samples.run().mean_loss()};
    if (problem.learning) {
      auto& tape = problem.tape;
      estimate.own_loss = add(add(sum(tape.parameter(alpha_), -2 * samples.product(g, others)),
                                  sum(tape.parameter(beta_), 2 * samples.product(g, stein))),
                              surrogate_loss(samples, g, w, H));
    }
    estimate.episode = samples.run().release();
    return estimate;
  }

 private:
  /// For each sample, 1 / T with T its number of choices.
  PerChoice steps_share(const DifferentiatedSamples<T>& samples) const {
    auto share = choices_of_samples(*samples.layout());
    for (double& count : share) count = count > 0 ? 1 / count : 0;
    return spread(samples.layout(), share);
  }

  /// H at the others' mean loss, and at df/dz . (z - z_j) averaged over the others j, over all choices that h depends on.
  Var<T> surrogates(DifferentiatedSamples<T>& samples, const PerChoice& f) const {
    const auto& z = samples.choices().one_hot();
    const auto d = mean_of_others(samples.slope(), config_.samples);
    const auto own = dot(d, z), of_others = mean_of_others(dot(samples.slope(), z), config_.samples);
    const PerChoice rest = sum(own - of_others, visible_) - own;  // contribution of the other choices, and of the z_j
    const auto level = mean_of_others(f, config_.samples);
    const auto& layout = *samples.layout();
    auto input = samples.run().episode().tape().constant(layout.logits(), 2);
    auto to = input.tape->mutable_value(input);
    for (std::size_t c = 0; c < layout.choices(); ++c)
      for (std::size_t i = layout.logit[c]; i < layout.logit[c + 1]; ++i) {
        to(i, 0) = static_cast<T>(d.value[i] + rest.value[c]);
        to(i, 1) = static_cast<T>(level.value[c]);
      }
    return out_(tanh(hidden_(input)));
  }
  static AtLogits column(const DifferentiatedSamples<T>& samples, Var<T> H, std::size_t which) {
    auto h = samples.choices().zeros();
    for (std::size_t i = 0; i < h.value.size(); ++i) h.value[i] = static_cast<double>(H.value()(i, which));
    return h;
  }

  /// A loss whose gradient is that of |g|^2 in H's parameters: g is linear in all h and h'.
  Var<T> surrogate_loss(const DifferentiatedSamples<T>& samples, const AtLogits& g, const AtLogits& w, Var<T> H) const {
    const double scale = 2 / (static_cast<double>(samples.layout()->samples) * config_.samples);
    const auto at = samples.choices().summed_by_logits(g);
    const auto own = dot(at, samples.choices().one_hot());
    const auto along = sum(dot(at, samples.choices().score()), Along::all);  // <g, grad log p(z)>
    // Each k has the mean of A h_j over its others j. Summed over k, that is the same mean for each j.
    const AtLogits in_h = -scale * static_cast<double>(alpha_.value.flat(0)) * (mean_of_others(along, config_.samples) * w);
    const AtLogits in_h2 = scale * static_cast<double>(beta_.value.flat(0)) * (times(w, at) + (along - own) * w);
    std::vector<double> weight(2 * w.value.size());
    for (std::size_t i = 0; i < w.value.size(); ++i) {
      weight[2 * i] = in_h.value[i];
      weight[2 * i + 1] = in_h2.value[i];
    }
    return weighted_sum(H, std::span<const double>(weight));
  }

  Config config_;
  Along visible_;
  Parameter<T>&alpha_, &beta_;
  Linear<T> hidden_, out_;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "rodeo",
    .summary = "leave-one-out with Stein control variates of a learned surrogate of the loss",
    .paper = "Shi, Zhou, Hwang, Titsias & Mackey 2022, Gradient estimation with discrete Stein operators",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "K",
    .parameters = declared<Config>(),
    .needs = {need::relaxable},
    .promises = {promise::same_moments("rloo[samples=3]", "samples=3,alpha=0,beta=0"),
                 promise::descends_square("samples=2,hidden=2,alpha=0.3,beta=-0.4"),
                 promise::variance(2.643485203, "samples=2"), promise::variance(1.434332508, "samples=3,alpha=0.7,beta=-0.4")},
};
HARDGRAD_ESTIMATOR(Rodeo, entry)

}  // namespace hardgrad::estimators::rodeo
