// `hardgrad test` on wrong estimators whose faults show beyond their defaults, all detected, and on unusual right ones, all
// passed.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <set>

#include "core/autodiff/elementwise.hpp"
#include "core/estimator/score_function/score_function.hpp"
#include "experiments/verification/verify.hpp"

namespace hardgrad::testing::estimator_mutants_test {
namespace {

/// The score function with a leave-one-out baseline, changed by `fault`.
template <class T>
class Faulty final : public Estimator<T> {
 public:
  Faulty(const Settings& settings, const Structure& structure, Key)
      : fault_(settings.text("fault")),
        samples_(settings.integer("samples")),
        options_(structure.most_options()),
        columns_(structure.most_columns()),
        strength_(settings.real("strength")) {}

  Estimate<T> estimate(const Problem<T>& problem) const override {
    Sampled<T> sampled(problem, samples_);
    const auto losses = sampled.losses();
    const bool short_of = is("above 0.99") && peaked(sampled.episode());
    auto signal = losses;
    const auto K = static_cast<std::size_t>(samples_);
    for (std::size_t b = 0; b < losses.size(); b += K) {
      double sum = 0;
      for (std::size_t k = 0; k < K; ++k) sum += losses[b + k];
      for (std::size_t k = 0; k < K; ++k) {
        const double own = losses[b + k], others = K > 1 ? (sum - own) / static_cast<double>(K - 1) : 0;
        signal[b + k] =
            (short_of ? 0.9 : 1) * credit(own, others, losses[b + (k + 1) % K], losses[b], k, sum / static_cast<double>(K));
      }
    }
    if (is("nan on ragged") && problem.batch.examples() > 1)
      for (auto& f : signal) f = std::numeric_limits<double>::quiet_NaN();
    const std::vector<std::vector<double>> every_step(sampled.steps(), signal);
    auto surrogate = sampled.score(every_step);
    if (!is("no path")) surrogate = add(surrogate, sampled.path());
    const double loss = sampled.mean_loss() + (is("reported loss") ? 0.01 : 0);
    return {.surrogate = surrogate, .episode = sampled.release(), .loss = loss};
  }

 private:
  bool is(const char* fault) const { return fault_ == fault; }
  /// True if an option of a categorical choice has a probability above 0.99, but not all.
  static bool peaked(const Episode<T>& episode) {
    bool found = false;
    for (const auto& step : episode.steps()) {
      if (!step.question.has_options()) continue;
      const auto& distribution = *step.question.distribution;
      for (std::size_t row = 0; row < distribution.rows(); ++row)
        for (int column = 0; column < distribution.columns(); ++column)
          for (double log_p : distribution.parameters_at(row, static_cast<std::size_t>(column)))
            found = found || (log_p > std::log(0.99) && log_p < -1e-9);
    }
    return found;
  }
  double credit(double own, double others, double next, double first, std::size_t k, double mean) const {
    const auto K = samples_;
    if (is("five samples") && K >= 5) return own - mean;
    if (is("eight samples") && K >= 8) return 1.02 * (own - others);
    if (is("odd samples") && K % 2 == 1 && K > 1) return own - mean;
    if (is("three samples") && K == 3) return (own - others) * 1.001;
    if (is("five options") && options_ > 4) return 0.9 * (own - others);
    if (is("seven options") && options_ == 7) return 0.99 * (own - others);
    if (is("four columns") && columns_ >= 4) return 1.1 * (own - others);
    if (is("two options") && options_ == 2) return 1.01 * (own - others);
    if (is("strength") && strength_ > 0.6) return (1 + strength_) * (own - others);
    if (is("mean baseline")) return own - mean;
    if (is("neighbour")) return own - next;                                  // right: f_k - f_{k+1}
    if (is("first alone") && K > 1) return k == 0 ? K * (own - others) : 0;  // right: one sample, with the others as baseline
    if (is("rising weights") && K > 1) return 2.0 * static_cast<double>(k + 1) / (K + 1) * (own - others);  // right
    if (is("first as baseline") && K > 1) return k == 0 ? own : own - first;                                // right
    return own - others;
  }
  std::string fault_;
  int samples_, options_, columns_;
  double strength_;
};

const EstimatorEntry entry = {
    .name = "faulty",
    .summary = "the score function with a fault",
    .paper = "none",
    .unbiased = true,
    .evaluations = "K",
    .parameters = {declared<SamplesConfig<2>>()[0], ParameterInfo::text("fault", "none", "the fault"),
                   ParameterInfo::real("strength", 0.5, 0, 10, "a number that should change nothing")},
    .needs = {need::log_density},
};
HARDGRAD_ESTIMATOR(Faulty, entry)

verification::Verdict verdict_of(const std::string& fault) {
  return verification::verify(Spec::parse("faulty").with("fault", fault), true);
}

}  // namespace

TEST_CASE("an estimator that is wrong beyond its defaults is detected, and the check names the place") {
  const std::vector<std::pair<std::string, std::string>> wrong{{"five samples", ", samples=5"},
                                                               {"eight samples", ", samples=8"},
                                                               {"odd samples", ", samples=3"},
                                                               {"three samples", ", samples=3"},
                                                               {"five options", "5 options"},
                                                               {"seven options", "7 options"},
                                                               {"two options", ""},
                                                               {"four columns", "columns"},
                                                               {"above 0.99", "logit=5"},
                                                               {"strength", ", strength=1"},
                                                               {"mean baseline", ""},
                                                               {"nan on ragged", ""},
                                                               {"no path", ""},
                                                               {"reported loss", ""}};
  std::set<std::string> caught;
  for (const auto& [fault, where] : wrong) {
    CAPTURE(fault);
    const auto verdict = verdict_of(fault);
    CHECK(!verdict.passed());
    for (const auto& check : verdict.checks) {
      if (check.outcome != verification::Check::Outcome::failed) continue;
      CAPTURE(check.what);
      CAPTURE(check.where);
      CHECK((check.what + ", " + check.where).find(where) != std::string::npos);
      CHECK(!check.where.empty());
      caught.insert(fault);
    }
  }
  CHECK(caught.size() == 14);
}

TEST_CASE("unusual right estimators pass, although their samples may not be permuted and they do not declare it" *
          doctest::test_suite("long")) {
  int passed = 0;
  for (const std::string fault : {"none", "neighbour", "first alone", "rising weights", "first as baseline"}) {
    CAPTURE(fault);
    const auto verdict = verdict_of(fault);
    for (const auto& check : verdict.checks)
      if (check.outcome == verification::Check::Outcome::failed) {
        CAPTURE(check.what);
        CAPTURE(check.where);
        CHECK(check.detail == "");
      }
    passed += verdict.passed();
  }
  CHECK(passed == 5);
}

}  // namespace hardgrad::testing::estimator_mutants_test
