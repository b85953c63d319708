// wor_importance: distinct outcomes, each weighted by the inverse probability of exceeding a threshold.
//
//   w(s) = p(s) / q(s),  q(s) = P(G(s) > kappa) = 1 - exp(-p(s) exp(-kappa)),  W = sum_{s in S} w(s)
//   plain:                 sum_{s in S} w(s) f(s) grad log p(s)
//   with baseline:         sum_{s in S} w(s) (f(s) (1 - p(s) + w(s)) - sum_{s'} w(s') f(s')) grad log p(s)
//   normalised:            sum_{s in S} w(s) / W f(s) grad log p(s)
//   normalised, baseline:  sum_{s in S} w(s) / (W - w(s) + p(s)) (f(s) - sum_{s'} w(s') f(s') / W) grad log p(s)
//   plus                   sum_{s in S} w(s) grad f(s), over W if normalised
//
// S are the k outcomes with the largest perturbed log probabilities G (stochastic beam search), kappa is the next largest.
// Kool, van Hoof & Welling 2019, Buy 4 REINFORCE samples, get a baseline for free!, eq. 9-11; the weights are those of
// priority sampling (Duffield, Lund & Thorup 2007).
// Target: expected loss. Bias: none; normalised: of order 1/k. Cost: k rows a step. If k covers all outcomes: exact.
// Variance is finite only for k >= 2 (plain) or k >= 4 (with baseline): the probability that all k outcomes exceed a large
// kappa falls like exp(-k kappa), while weights grow like exp(kappa). E[plain | S] is `unordered_set` without baseline.
// Departure: kappa is the largest perturbed log probability among the prefixes that left the beam. It equals that of the next
// outcome, so no (k+1)-th outcome is run.
#include <cmath>
#include <numeric>

#include "core/estimator/promises.hpp"
#include "core/estimator/without_replacement/leave_one_out_ratios.hpp"
#include "core/estimator/without_replacement/subset.hpp"

namespace hardgrad::estimators::wor_importance {
namespace {

struct Config {
  int samples = 4;
  bool baseline = true, normalise = false, per_step = false;

  void declare(Fields& field) {
    field(samples, "samples", 1, 1e6, "distinct outcomes per example");
    field(baseline, "baseline", "subtract the built-in baseline from the loss");
    field(normalise, "normalise", "divide by the sum of the weights: biased, lower variance");
    per_step_field(field, per_step);
  }
};

template <class T>
class WorImportance final : public Estimator<T> {
 public:
  WorImportance(const Config& config, const Structure&, Key) : config_(config) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    return Subset<T>::without_replacement(problem, config_.samples, config_.per_step, true)
        .estimate([this](const Beam& beam, std::span<const double> f) { return weights(beam, f); });
  }
  bool exchangeable() const override { return false; }

 private:
  typename Subset<T>::Weights weights(const Beam& beam, std::span<const double> f) const {
    const auto p = probabilities(beam);
    std::vector<double> w;
    w.reserve(p.size());
    for (double probability : p) w.push_back(inclusion_weight(probability, beam.threshold));
    const double sum = std::accumulate(w.begin(), w.end(), 0.0);
    const double loss = std::inner_product(w.begin(), w.end(), f.begin(), 0.0);
    typename Subset<T>::Weights weights{std::vector<double>(f.size()), w};
    for (std::size_t s = 0; s < w.size(); ++s) {
      if (config_.normalise) weights.path[s] = w[s] / sum;
      if (!config_.baseline)
        weights.score[s] = weights.path[s] * f[s];
      else if (config_.normalise)
        weights.score[s] = w[s] / (sum - w[s] + p[s]) * (f[s] - loss / sum);
      else
        weights.score[s] = w[s] * (f[s] * (1 - p[s] + w[s]) - loss);
    }
    return weights;
  }

  Config config_;
};

std::string refuse(const Config& config, const Structure& structure) {
  if (config.samples == 1 && config.baseline)
    return "samples=1 leaves no other outcome for the baseline: take samples=2 or more, or baseline=false";
  if (config.samples == 1 && !config.normalise)
    return "samples=1 has infinite variance: take samples=2 or more, or normalise=true";
  return refuse_subset(config.samples, config.per_step, structure);
}

// If there are more than k outcomes, the squared weights in the baseline's products grow like exp(4 kappa), while the density
// of kappa falls like exp(-(k + 1) kappa).
std::string infinite(const Config& config, const Structure& structure, double outcomes) {
  const double k = config.samples;
  if (config.normalise || !config.baseline || k >= 4) return "";
  if (k >= (config.per_step ? structure.most_options() : outcomes)) return "";  // the sample has all outcomes: exact
  return "its importance weights have no fourth moment with samples below 4: take samples=4 or more, or baseline=false";
}

}  // namespace

const EstimatorEntry entry = {
    .name = "wor_importance",
    .summary = "distinct outcomes without replacement, with importance weights from a threshold (normalise=true is biased)",
    .paper = "Kool et al. 2019, Buy 4 REINFORCE samples, get a baseline for free!, eq. 9-11; Duffield et al. 2007",
    .target = "expected_loss",
    .unbiased = true,
    .biased_by = [](const Config& config) { return config.normalise; },
    .evaluations = "K",
    .parameters = declared<Config>(),
    .needs = {need::enumerable},
    .promises = {promise::variance(1.412081428, "samples=2,normalise=true"),
                 promise::variance(3.617914207, "samples=2,baseline=false")},
    .why_unsupported = refuse,
    .infinite_variance = infinite,
};
HARDGRAD_ESTIMATOR(WorImportance, entry)

}  // namespace hardgrad::estimators::wor_importance
