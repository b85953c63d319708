// second_moment: a target outside the tree, E[f^2], and its score-function estimator.
#include <hardgrad/plugin.hpp>

using namespace hardgrad;

/// sum_z p(z) f(z)^2 of one example's outcomes.
inline OutcomeObjective second_moment(std::span<const Outcome> outcomes) {
  OutcomeObjective result{0, Slopes(outcomes.size())};
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const double p = std::exp(outcomes[i].log_p), f = outcomes[i].loss;
    result.value += p * f * f;
    result.slopes.log_p[i] = p * f * f;
    result.slopes.loss[i] = 2 * p * f;
  }
  return result;
}
template <class T>
Estimate<T> objective(const Target&, const Problem<T>& problem) {
  return enumerated_outcomes<T>(problem, false, second_moment);
}
template <class T>
std::vector<double> terms(const Target&, const Model<T>& model, const Batch& batch) {
  return model.outcomes(batch);
}
const TargetEntry target = {
    .name = "second_moment",
    .summary = "E_p(z)[f(z)^2]",
    .reported = [](const Target&) -> std::string { return "expected_loss"; },  // its estimator logs f, not f^2
};
HARDGRAD_TARGET(second_moment, objective, terms, target)

struct Config {
  int samples = 2;
  void declare(Fields& field) { samples_field(field, samples); }
};

/// 1/K sum_k f_k^2 grad log p(z_k) + 2 f_k grad f_k
template <class T>
struct SecondMoment final : Estimator<T> {
  int samples;
  SecondMoment(const Config& config, const Structure&, Key) : samples(config.samples) {}
  Estimate<T> estimate(const Problem<T>& problem) const override {
    Sampled<T> sampled(problem, samples, Costs::weighted);
    const auto f = sampled.losses();  // [B K]
    auto squares = f, slope = f;
    for (auto& value : squares) value *= value;
    for (auto& value : slope) value *= 2.0 / static_cast<double>(f.size());
    auto surrogate = sampled.score(std::vector<std::vector<double>>(sampled.steps(), squares));
    for (const auto& cost : sampled.episode().costs()) {
      std::vector<double> weight(cost.rows->size());
      for (std::size_t r = 0; r < slope.size(); ++r) weight[cost.rows->is_root() ? r / samples : r] += slope[r];
      surrogate = add(surrogate, weighted_sum(cost.loss, std::span<const double>(weight)));
    }
    return {.surrogate = surrogate, .episode = sampled.release(), .loss = sampled.mean_loss()};
  }
};

const EstimatorEntry entry = {
    .name = "second_moment",
    .summary = "score function of the squared loss",
    .paper = "none: an example",
    .target = "second_moment",
    .unbiased = true,
    .evaluations = "K",
    .parameters = declared<Config>(),
    .needs = {need::log_density},
};
HARDGRAD_ESTIMATOR(SecondMoment, entry)
