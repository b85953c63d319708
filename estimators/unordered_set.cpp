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
#include "core/estimator/without_replacement/leave_one_out_ratios.hpp"
#include "core/estimator/without_replacement/subset.hpp"

namespace hardgrad::estimators::unordered_set {
namespace {

template <class T>
class UnorderedSet final : public Estimator<T> {
 public:
  UnorderedSet(const Settings& settings, const Structure&, Key)
      : samples_(settings.integer("samples")), baseline_(settings.flag("baseline")), per_step_(settings.flag("per_step")) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    return Subset<T>::without_replacement(problem, samples_, per_step_)
        .estimate([this](const Beam& beam, std::span<const double> f) {
          const auto ratios = leave_one_out_ratios(probabilities(beam), beam.rest);
          typename Subset<T>::Weights weights{std::vector<double>(f.size()), ratios.first};
          for (std::size_t s = 0; s < f.size(); ++s) {
            double signal = baseline_ ? 0 : f[s];
            for (std::size_t o = 0; o < f.size() && baseline_; ++o) signal += ratios.second[s * f.size() + o] * (f[s] - f[o]);
            weights.score[s] = ratios.first[s] * signal;
          }
          return weights;
        });
  }
  bool exchangeable() const override { return false; }

 private:
  int samples_;
  bool baseline_, per_step_;
};

std::string refuse(const Settings& settings, const Structure& structure) {
  if (settings.flag("baseline") && settings.integer("samples") == 1)
    return "samples=1 leaves no other outcome for the baseline: take samples=2 or more, or baseline=false";
  return refuse_subset(settings, structure);
}

}  // namespace

const EstimatorEntry entry = {
    .name = "unordered_set",
    .summary = "distinct outcomes without replacement, weighted by leave-one-out ratios, with built-in baseline",
    .paper = "Kool et al. 2020, Estimating gradients for discrete random variables by sampling without replacement",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "K",
    .parameters = {ParameterInfo::integer("samples", 2, 1, 1024, "distinct outcomes per example"),
                   ParameterInfo::flag("baseline", true, "subtract the built-in baseline from the loss"), per_step_parameter()},
    .needs = {need::enumerable},
    .promises = {promise::unshifted(), promise::noiseless(Promise::Loss::constant),
                 promise::variance(1.735186122, "samples=2")},
    .why_unsupported = refuse,
};
HARDGRAD_ESTIMATOR(UnorderedSet, entry)

}  // namespace hardgrad::estimators::unordered_set
