// sum_and_sample: k - 1 outcomes summed exactly, and one sample for all the others.
//
//   g = sum_{s in C} [ (f(s) - b) grad p(s) + p(s) grad f(s) ] + (1 - p(C)) [ (f(z) - b) grad log p(z) + grad f(z) ],
//   z ~ p(. | not in C)
//
// Liang et al. 2018, Memory augmented policy optimization (C a buffer); Liu et al. 2019, Rao-Blackwellized stochastic
// gradients for discrete distributions (C the most probable); with C sampled without replacement: Kool et al. 2020,
// Estimating gradients for discrete random variables by sampling without replacement (stochastic sum-and-sample).
// Target: expected loss. Bias: none, for any C, because given C the mean over z is the sum over all outcomes.
// Cost: k rows a step, one run. If k covers all outcomes: exact.
// Departures: the sample is drawn in the same run that finds C, by reservoir sampling from the prefixes that leave the beam. C
// is the result of a beam search of width k - 1: the most probable outcomes if choices are independent, else approximately. The
// constant baseline b is an addition (0: as published).
#include "core/estimator/score_function/score_function.hpp"
#include "core/estimator/without_replacement/subset.hpp"

namespace hardgrad::estimators::sum_and_sample {
namespace {

template <class T>
class SumAndSample final : public Estimator<T> {
 public:
  SumAndSample(const Settings& settings, const Structure&, Key)
      : samples_(settings.integer("samples")),
        top_(settings.text("set") == "top"),
        baseline_(settings.real("baseline")),
        per_step_(settings.flag("per_step")) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    auto subset = top_ ? Subset<T>::most_probable_and_one(problem, samples_ - 1, per_step_)
                       : Subset<T>::without_replacement(problem, samples_, per_step_);
    return std::move(subset).estimate([this](const Beam& beam, std::span<const double> f) {
      typename Subset<T>::Weights weights{std::vector<double>(f.size()), probabilities(beam)};
      if (!top_)  // the last outcome drawn represents itself and all outcomes not drawn
        weights.path.back() += beam.rest;
      else if (beam.sampled >= 0)
        weights.path[beam.sampled] = beam.rest;
      for (std::size_t s = 0; s < f.size(); ++s) weights.score[s] = weights.path[s] * (f[s] - baseline_);
      return weights;
    });
  }
  bool exchangeable() const override { return false; }

 private:
  int samples_;
  bool top_;
  double baseline_;
  bool per_step_;
};

}  // namespace

const EstimatorEntry entry = {
    .name = "sum_and_sample",
    .summary = "the most probable outcomes summed exactly, and one sample for the others",
    .paper =
        "Liang et al. 2018, Memory augmented policy optimization; Liu et al. 2019, Rao-Blackwellized stochastic "
        "gradients for discrete distributions",
    .target = "expected_loss",
    .unbiased = true,
    .evaluations = "K",
    .parameters = {ParameterInfo::integer("samples", 2, 1, 1e6, "outcomes per example: all but one summed, one sampled"),
                   ParameterInfo::choice("set", "top", {"top", "sampled"},
                                         "the summed outcomes: the most probable, or a sample without replacement"),
                   baseline_parameter(), per_step_parameter()},
    .needs = {need::enumerable},
    .promises = {promise::variance(2.636836787, "samples=2"), promise::same_moments("reinforce", "samples=1,set=top")},
    .why_unsupported = refuse_subset,
};
HARDGRAD_ESTIMATOR(SumAndSample, entry)

}  // namespace hardgrad::estimators::sum_and_sample
