// nvil: neural variational inference and learning: a learned baseline that depends on the state of the network.
//
//   g = 1/K sum_k sum_t (f_k - c_t - C(state_t)) / max(1, sigma) grad log p(z_kt) + grad f_k
//
// Mnih & Gregor 2014, Neural variational inference and learning in belief networks, eq. 8-11 and Algorithm 1. C is a
// network with one layer of tanh units trained on (f - c - C)^2; c and sigma^2 are moving averages of the signal.
// Target: expected loss. Bias: none without variance normalisation (with it, a scale on the score term). Cost: K rows.
// Departures: the baseline's input is the model's own state (detached), from which p is computed. Averages are updated after
// their use. There is one c and C per step, or one per column if columns have separate costs.
#include "core/estimator/promises.hpp"
#include "core/estimator/score_function/score_function.hpp"

#include <algorithm>
#include <cmath>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "core/estimator/score_function/learned_baseline.hpp"
#include "core/estimator/score_function/moving_average.hpp"

namespace hardgrad::estimators::nvil {
namespace {

struct Config {
  int samples = 1;
  bool normalise = false;
  int hidden = 100;
  double decay = 0.9;
  Credit credit = Credit::whole;

  void declare(Fields& field) {
    samples_field(field, samples);
    field(normalise, "normalise", "divide the signal by its running deviation where above 1: biased");
    field(hidden, "hidden", 1, 65536, "tanh units of the baseline network");
    field(decay, "decay", 0, 1, "share of the old averages kept at each step").below();
    credit_field(field, credit);
  }
};

template <class T>
class Nvil final : public AveragingEstimator<T> {
 public:
  Nvil(const Config& config, const Structure& structure, Key init)
      : AveragingEstimator<T>(structure, config.decay, 1),  // c, then the mean square of the signal
        config_(config),
        square_(structure.steps() * this->columns_) {
    baseline_ = {this->own_, "baseline", structure, static_cast<std::size_t>(config.hidden), init};
  }

  Estimate<T> estimate(const Problem<T>& problem) const override {
    Sampled<T> sampled(problem, config_.samples);
    auto& tape = problem.tape;
    auto own_loss = tape.constant(1, 1);
    std::vector<std::vector<double>> signal;
    std::vector<double> observed(square_ + 1, std::nan(""));
    double squares = 0, signals = 0;
    const double scale = config_.normalise ? 1 / std::max(1.0, std::sqrt(this->average_[square_])) : 1;
    for (int t = 0; t < sampled.steps(); ++t) {
      auto returns = sampled.returns(t, config_.credit);
      const std::size_t D = sampled.columns(t, config_.credit);
      this->note(observed, t, sampled.means_where_chosen(t, returns));
      const auto predicted = baseline_.at(sampled.episode().steps()[t], D);
      auto wanted = tape.constant(predicted.rows(), D);
      auto to = tape.mutable_value(wanted);
      for (std::size_t i = 0; i < returns.size(); ++i) {
        returns[i] -= this->average(t, i % D);
        to.data[i] = static_cast<T>(returns[i]);
        returns[i] = scale * (returns[i] - static_cast<double>(predicted.value().data[i]));
        squares += returns[i] * returns[i] / (scale * scale);
      }
      signals += static_cast<double>(returns.size());
      own_loss = add(own_loss, sum(square(subtract(predicted, wanted)), 1.0 / static_cast<double>(returns.size())));
      signal.push_back(std::move(returns));
    }
    observed[square_] = squares / std::max(1.0, signals);
    auto surrogate = add(sampled.score(signal), sampled.path());
    return {.surrogate = surrogate,
            .own_loss = own_loss,
            .episode = sampled.release(),
            .loss = sampled.mean_loss(),
            .observed = observed};
  }

 private:
  Config config_;
  std::size_t square_;  // index of the mean square among the averages
  LearnedBaseline<T> baseline_;
};

// (f - c) / max(1, sigma) with C = 0
Promise::Losses advantages(const Config& config, const Promise::Losses& f, const std::vector<Promise::Losses>& before) {
  double c = 0, square = 0, kept = 0;  // the first observation replaces the initial values
  for (const auto& seen : before) {
    double sum = 0, squares = 0, count = 0;
    for (const auto& example : seen)
      for (const double x : example) {
        sum += x;
        squares += std::pow(x - c, 2);
        ++count;
      }
    c = kept * c + (1 - kept) * sum / count;
    square = kept * square + (1 - kept) * squares / count;
    kept = config.decay;
  }
  auto advantage = f;
  for (auto& example : advantage)
    for (double& a : example) a = (a - c) / (config.normalise ? std::max(1.0, std::sqrt(square)) : 1);
  return advantage;
}

}  // namespace

const EstimatorEntry entry = {
    .name = "nvil",
    .summary = "score function with a learned, state-dependent baseline and a running mean",
    .paper = "Mnih & Gregor 2014, Neural variational inference and learning in belief networks, Algorithm 1",
    .target = "expected_loss",
    .unbiased = true,
    .biased_by = [](const Config& config) { return config.normalise; },
    .evaluations = "K",
    .parameters = declared<Config>(),
    .needs = {need::log_density},
    .promises = {promise::noiseless_once_learned("hidden=4,decay=0.9999"), promise::unbiased("normalise=true"),
                 promise::advantages(advantages, "samples=2,normalise=true,reward_to_go=true"),
                 promise::advantages(advantages, "normalise=true")},
};
HARDGRAD_ESTIMATOR(Nvil, entry)

}  // namespace hardgrad::estimators::nvil
