#include <cmath>

#include "core/estimator/promises.hpp"
#include "experiments/verification/promises.hpp"

namespace hardgrad::verification {

Finding mean(const Promise& promise, const Trial& trial) {
  if (trial.model->structure().most_columns() > 1) return {};
  const auto expected = promise.formula(trial.settings(), trial.model->formula());
  if (expected.size() == 0) return {};
  const auto moments = trial.moments();
  double off = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) off = std::max(off, std::abs(moments.mean[i] - expected[i]));
  return within(off / trial.scale(), 1e-8 + moments.mean_error / trial.scale(), "mean");
}

namespace {

/// If the estimator keeps averages, lets it learn from three estimates; returns their losses, [B][K] each.
std::vector<Promise::Losses> learnt_from(const Trial& trial, const Batch& batch) {
  std::vector<Promise::Losses> before;
  Tape<double> tape;
  for (std::uint64_t i = 0; i < 3 && !trial.estimator->state().empty(); ++i) {
    KeyedRandomness random(Key(9) / i);
    tape.clear();
    const auto estimate = trial.estimator->draw({tape, *trial.model, batch, random});
    const auto& cost = estimate.episode->costs().front();
    auto& losses = before.emplace_back(batch.examples());
    for (std::size_t r = 0; r < cost.rows->size(); ++r) losses[cost.rows->example[r]].push_back(cost.loss.value()(r, 0));
    trial.estimator->learn(estimate);
  }
  return before;
}

/// [S] mean and mean square of estimates of B examples with K samples, from the formula A(losses) for advantages.
std::pair<SmallChoice::Vector, SmallChoice::Vector> of_advantages(
    const SmallChoice& choice, std::size_t B, std::size_t K,
    const std::function<Promise::Losses(const Promise::Losses&)>& formula) {
  const auto p = choice.p();
  std::vector<std::size_t> z(B * K);  // counts up in base S
  SmallChoice::Vector mean(0.0, p.size()), squares = mean;
  for (bool more = true; more;) {
    double probability = 1;
    Promise::Losses f(B, std::vector<double>(K));
    for (std::size_t i = 0; i < z.size(); ++i) {
      probability *= p[z[i]];
      f[i / K][i % K] = choice.loss(choice.one_hot(z[i]));
    }
    const auto advantage = formula(f);
    SmallChoice::Vector g(0.0, p.size());
    for (std::size_t i = 0; i < z.size(); ++i) g += advantage[i / K][i % K] * (choice.one_hot(z[i]) - p);
    g /= static_cast<double>(B * K);
    mean += probability * g;
    squares += probability * g * g;
    std::size_t i = 0;
    while (i < z.size() && ++z[i] == p.size()) z[i++] = 0;
    more = i < z.size();
  }
  return {mean, squares};
}

}  // namespace

// Moments of the formula over all outcomes of four examples (one, if they are not coupled), by column. An estimator with
// averages learns from three estimates first; it is skipped if columns share them.
Finding advantages(const Promise& promise, const Trial& trial) {
  const auto settings = trial.settings();
  const std::size_t B = trial.estimator->couples_examples() ? 4 : 1, K = settings.integer("samples");
  const auto batch = examples(B);
  for (auto& parameter : trial.estimator->own_parameters())
    for (auto& value : parameter.value) value = 0;
  const auto before = learnt_from(trial, batch);
  if (!before.empty() && trial.model->structure().most_columns() > 1) return {};
  const auto around =
      measurement::exact_reference(trial.estimator->target(), *trial.model, batch, trial_outcome_cap).of_example;
  const auto moments = measurement::exact_moments(*trial.estimator, *trial.model, batch, around, trial_outcome_cap);
  double off = 0;
  for (int column = 0; column < trial.model->structure().most_columns(); ++column) {
    const auto [mean, squares] = of_advantages(
        trial.model->formula(column), B, K, [&](const Promise::Losses& f) { return promise.advantages(settings, f, before); });
    for (std::size_t i = 0, at = column * mean.size(); i < mean.size(); ++i, ++at)
      off = std::max({off, std::abs(moments.mean[at] - mean[i]),
                      std::abs(moments.variances[at] + std::pow(moments.mean[at], 2) - squares[i]) / trial.scale()});
  }
  return within(off / trial.scale(), 1e-8, "mean and variance");
}

Finding unbiased(const Trial& trial) {
  const auto moments = trial.moments();
  return within(largest_difference(moments.mean, trial.truth.gradient) / trial.scale(),
                1e-9 + moments.mean_error / trial.scale(), "mean");
}

Finding variance(const Promise& promise, const Trial& trial) {
  const auto moments = trial.moments();
  const bool same = std::abs(moments.trace - promise.value) <= 1e-7 * promise.value + moments.trace_error;
  const auto message = fmt::format("variance {:.10g}", moments.trace);
  return same ? Finding{"", message} : Finding{fmt::format("{}, not {:.10g}", message, promise.value), ""};
}

namespace {

/// Moments of both estimators, compared by `judge`, if the other one supports the network.
template <class Judge>
Finding against_other(const Promise& promise, const Trial& trial, const Judge& judge) {
  const auto spec = Spec::parse(promise.other);
  if (!why_unsupported(spec, trial.model->structure()).empty()) return {};
  const auto own = trial.moments(), others = trial.moments(*make_estimator<double>(spec, trial.model->structure(), Key(1)));
  const double square = std::pow(trial.scale(), 2) + others.trace;
  return judge(own, others, (own.trace - others.trace) / square, (own.trace_error + others.trace_error) / square);
}

}  // namespace

Finding same_moments(const Promise& promise, const Trial& trial) {
  return against_other(promise, trial,
                       [&](const measurement::Moments& own, const measurement::Moments& others, double excess, double doubt) {
                         const auto of_mean = within(largest_difference(own.mean, others.mean) / trial.scale(),
                                                     1e-8 + (own.mean_error + others.mean_error) / trial.scale(), "mean");
                         return of_mean.first.empty() ? within(std::abs(excess), 1e-8 + doubt, "variance") : of_mean;
                       });
}

Finding less_variance(const Promise& promise, const Trial& trial) {
  return against_other(
      promise, trial, [](const measurement::Moments& own, const measurement::Moments& others, double excess, double doubt) {
        return Finding{
            excess > 1e-9 + doubt ? fmt::format("the variance is {:.4g}, above {:.4g}", own.trace, others.trace) : "",
            fmt::format("variance {:.4g}, the other's {:.4g}", own.trace, others.trace)};
      });
}

}  // namespace hardgrad::verification
