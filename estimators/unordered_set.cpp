// unordered_set: k distinct outcomes, each weighted by its probability of coming first in a sample without replacement.
//
//   g = sum_{s in S} p(s) R(S, s) [ (f(s) - B(S, s)) grad log p(s) + grad f(s) ]
//   B(S, s) = sum_{s' in S} p(s') R^{D\s}(S, s') f(s'),   R^{D\s}(S, s) = 1
//
// Kool, van Hoof & Welling 2020, Estimating gradients for discrete random variables by sampling without replacement: the
// unordered set policy gradient estimator with its built-in control variate. S is drawn by stochastic beam search
// (Kool et al. 2019).
// Target: expected loss. Bias: none: E[h(first) | S] = sum p R h. Given the first outcome
// s, B estimates E f from the others without bias, so its score term has mean zero. Cost:
// k rows a step (fewer if there are fewer prefixes). If k covers all outcomes: exact.
// Departures: the ratios come from a recursion over subsets (k <= 12) instead of over orders. f - B is computed from
// differences of losses, which is equivalent because the weights of B sum to 1.
#include "core/estimator/promises.hpp"
#include "core/estimator/without_replacement/leave_one_out_ratios.hpp"
#include "core/estimator/without_replacement/subset.hpp"

namespace hardgrad::estimators::unordered_set {
namespace {

struct Config {
  int samples = 2;
  bool baseline = true, per_step = false;

  void declare(Fields& field) {
    field(samples, "samples", 1, 1024, "distinct outcomes per example");
    field(baseline, "baseline", "subtract the built-in baseline from the loss");
    per_step_field(field, per_step);
  }
};

template <class T>
class UnorderedSet final : public Estimator<T> {
 public:
  UnorderedSet(const Config& config, const Structure&, Key) : config_(config) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    return Subset<T>::without_replacement(problem, config_.samples, config_.per_step)
        .estimate([this](const Beam& beam, std::span<const double> f) {
          const auto ratios = leave_one_out_ratios(probabilities(beam), beam.rest);
          typename Subset<T>::Weights weights{std::vector<double>(f.size()), ratios.first};
          for (std::size_t s = 0; s < f.size(); ++s) {
            double signal = config_.baseline ? 0 : f[s];
            for (std::size_t o = 0; o < f.size() && config_.baseline; ++o)
              signal += ratios.second[s * f.size() + o] * (f[s] - f[o]);
            weights.score[s] = ratios.first[s] * signal;
          }
          return weights;
        });
  }
  bool exchangeable() const override { return false; }

 private:
  Config config_;
};

std::string refuse(const Config& config, const Structure& structure) {
  if (config.baseline && config.samples == 1)
    return "samples=1 leaves no other outcome for the baseline: take samples=2 or more, or baseline=false";
  return refuse_subset(config.samples, config.per_step, structure);
}

}  // namespace

const EstimatorEntry entry = {
    .name = "unordered_set",
    .summary = "distinct outcomes without replacement, weighted by leave-one-out ratios, with built-in baseline",
    .paper = "Kool et al. 2020, Estimating gradients for discrete random variables by sampling without replacement",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "K",
    .parameters = declared<Config>(),
    .needs = {need::enumerable},
    .promises = {promise::unshifted(), promise::noiseless(Promise::Loss::constant),
                 promise::variance(1.735186122, "samples=2")},
    .why_unsupported = refuse,
};
HARDGRAD_ESTIMATOR(UnorderedSet, entry)

}  // namespace hardgrad::estimators::unordered_set
