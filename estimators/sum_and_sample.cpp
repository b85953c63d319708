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
#include "core/estimator/promises.hpp"
#include "core/estimator/score_function/score_function.hpp"
#include "core/estimator/without_replacement/subset.hpp"

namespace hardgrad::estimators::sum_and_sample {
namespace {

enum class Set { top, sampled };
constexpr Named<Set> sets[] = {{"top", Set::top}, {"sampled", Set::sampled}};

struct Config {
  int samples = 2;
  Set set = Set::top;
  double baseline = 0;
  bool per_step = false;

  void declare(Fields& field) {
    field(samples, "samples", 1, 1e6, "outcomes per example: all but one summed, one sampled");
    field(set, "set", sets, "the summed outcomes: the most probable, or a sample without replacement");
    baseline_field(field, baseline);
    per_step_field(field, per_step);
  }
};

template <class T>
class SumAndSample final : public Estimator<T> {
 public:
  SumAndSample(const Config& config, const Structure&, Key) : config_(config) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    auto subset = config_.set == Set::top ? Subset<T>::most_probable_and_one(problem, config_.samples - 1, config_.per_step)
                                          : Subset<T>::without_replacement(problem, config_.samples, config_.per_step);
    return std::move(subset).estimate([this](const Beam& beam, std::span<const double> f) {
      typename Subset<T>::Weights weights{std::vector<double>(f.size()), probabilities(beam)};
      if (config_.set != Set::top)  // the last outcome drawn represents itself and all outcomes not drawn
        weights.path.back() += beam.rest;
      else if (beam.sampled >= 0)
        weights.path[beam.sampled] = beam.rest;
      for (std::size_t s = 0; s < f.size(); ++s) weights.score[s] = weights.path[s] * (f[s] - config_.baseline);
      return weights;
    });
  }
  bool exchangeable() const override { return false; }

 private:
  Config config_;
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
    .parameters = declared<Config>(),
    .needs = {need::enumerable},
    .promises = {promise::variance(2.636836787, "samples=2"), promise::same_moments("reinforce", "samples=1,set=top")},
    .why_unsupported = [](const Config& config,
                          const Structure& structure) { return refuse_subset(config.samples, config.per_step, structure); },
};
HARDGRAD_ESTIMATOR(SumAndSample, entry)

}  // namespace hardgrad::estimators::sum_and_sample
