// rebar: the score function with the relaxed loss as control variate, corrected by its pathwise derivative.
//
//   g = (f(b) - a - eta (f(w~) - a)) grad log p(b) + eta (grad f(w) - grad f(w~)) + grad f(b),   w = softmax(z / temperature)
//
// Tucker, Mnih, Maddison, Lawson & Sohl-Dickstein 2017, REBAR: low-variance, unbiased gradient estimates for discrete latent
// variable models, sec. 3; for categories, with Gumbel instead of logistic noise. The noise z determines the choice b. z~ is
// drawn given b, or (`coupled`) equals z, differentiated with the numbers behind it held given b: the common random numbers of
// their code. eta and the log temperature descend the squared norm of g.
// Target: expected loss. Bias: none. Cost per sample: 3 rows, 2 if coupled; 1 + 2 T (1 + T) where choices feed later ones; four
// (two) more relaxed rows while the temperature is tuned.
// Departures: relaxed losses are differentiated in the weights of their own choice only. Where choices
// feed later ones, relaxed paths continue with expected weights. a is a moving average of f, 0 before
// training and used before its update. With it, losses are centred for any eta, from REINFORCE with a
// baseline (eta 0) to REBAR as published (eta 1), where a cancels. The squared norm is taken at the logits
// of each sample's choices. Its derivative in the temperature is a central difference with the same noise.
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/estimator/promises.hpp"
#include "core/estimator/relaxation/relaxation.hpp"
#include "core/estimator/relaxation/relaxed_control.hpp"
#include "core/estimator/score_function/moving_average.hpp"

namespace hardgrad::estimators::rebar {
namespace {

struct Config {
  int samples = 1;
  double eta = 1, temperature = 0.5;
  bool tune = true, coupled = false;
  double decay = 0.9;
  Credit credit = Credit::whole;

  void declare(Fields& field) {
    samples_field(field, samples);
    field(eta, "eta", -1e6, 1e6, "initial weight of the control variate");
    field.temperature(temperature, "temperature", "initial temperature of the relaxation");
    field(tune, "tune", "tune both in training, by the squared norm of the gradient");
    field(coupled, "coupled", "use the noise that made the choice as the noise given the choice");
    field(decay, "decay", 0, 1, "share of the old average of losses kept at each step").below();
    credit_field(field, credit);
  }
};

template <class T>
class Rebar final : public AveragingEstimator<T> {
 public:
  Rebar(const Config& config, const Structure& structure, Key)
      : AveragingEstimator<T>(structure, config.decay),
        config_(config),
        eta_(this->own_.add("rebar.eta", {1})),
        log_temperature_(this->own_.add("rebar.log_temperature", {1})) {
    eta_.value.flat(0) = static_cast<T>(config.eta);
    log_temperature_.value.flat(0) = static_cast<T>(std::log(config.temperature));
  }
  bool exchangeable() const override { return false; }
  int copies() const override { return config_.samples; }

  Estimate<T> estimate(const Problem<T>& problem) const override {
    const double eta = eta_.value.flat(0), temperature = std::exp(log_temperature());
    const bool tuning = problem.learning && config_.tune;
    std::vector<double> temperatures = {temperature};
    if (tuning) temperatures = {temperature, temperature * std::exp(difference), temperature * std::exp(-difference)};
    RelaxedRun<T> run(problem, problem.one_copy ? 1 : config_.samples, config_.coupled, temperatures);
    const PerChoice f = run.losses(config_.credit), a = this->average(f.of),
                    centred = run.relaxed_losses(0, config_.credit) - a;  // f(w~) - a
    PerChoice signal = f - a;
    signal.add(centred, -eta);
    const auto g = run.gradient(0, signal, eta);

    Estimate<T> estimate{.surrogate = run.surrogate(g), .loss = run.run().mean_loss()};
    this->note(estimate.observed, f);
    if (tuning) {  // derivatives of |g|^2, averaged over the samples
      const double share = 1 / static_cast<double>(run.run().groups());
      const auto control = [&](std::size_t i) { return run.gradient(i, -1 * run.relaxed_losses(i, config_.credit), 1); };
      const auto in_eta = run.gradient(0, -1 * centred, 1);
      const auto in_temperature = (1 / difference) * (control(1) - control(2));
      estimate.own_loss = add(sum(problem.tape.parameter(eta_), share * 2 * total(dot(g, in_eta))),
                              sum(problem.tape.parameter(log_temperature_), share * eta * total(dot(g, in_temperature))));
    }
    estimate.episode = run.run().release();
    return estimate;
  }

 private:
  double log_temperature() const {  // bounded, in case tuning diverges; outside, only rounding changes
    return std::clamp(static_cast<double>(log_temperature_.value.flat(0)), -6.0, 6.0);
  }
  static constexpr double difference = 0.02;  // of the log temperature
  Config config_;
  Parameter<T>&eta_, &log_temperature_;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "rebar",
    .summary = "score function with the relaxed loss as control variate, tuned for low variance",
    .paper = "Tucker, Mnih, Maddison, Lawson & Sohl-Dickstein 2017, REBAR, sec. 3",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations =
        "3 K; 2 K if coupled; 7 K if learning; 4 K if coupled and learning; (1 + 2 Q) K if sequential; (1 + Q) K if sequential "
        "and coupled; (1 + 6 Q) K if sequential and learning; (1 + 3 Q) K if sequential and coupled and learning",
    .parameters = declared<Config>(),
    .needs = {need::relaxable},
    .promises = {promise::same_moments("reinforce", "eta=0"), promise::noiseless_once_learned(),
                 promise::noiseless_once_learned("tune=false"),
                 promise::descends_square("eta=0.7,temperature=0.8,coupled=true")},
    .infinite_variance = [](const Config& config, const Structure& structure,
                            double) { return config.eta == 0 ? "" : no_variance_of_slopes(structure); },
};
HARDGRAD_ESTIMATOR(Rebar, entry)

}  // namespace hardgrad::estimators::rebar
