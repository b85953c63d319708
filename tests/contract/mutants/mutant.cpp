#include "tests/contract/mutants/mutant.hpp"

#include <doctest/doctest.h>

#include "experiments/verification/estimates.hpp"
#include "experiments/verification/test_models.hpp"
#include "experiments/verification/verify.hpp"

namespace hardgrad::testing::mutants {

void check_rejected(EstimatorEntry entry, const std::vector<std::string>& faults) {
  const auto name = entry.name;
  Estimators::instance().add(std::move(entry));
  std::vector<Spec> specs;
  for (const auto& fault : faults) specs.push_back(Spec::parse(name).with("fault", fault));
  if (faults.empty()) specs.push_back(Spec::parse(name));
  for (const auto& spec : specs) {
    CAPTURE(spec.text);
    const auto verdict = verification::verify(spec, true);
    CHECK(!verdict.passed());
    CHECK(verdict.count(verification::Check::Outcome::failed) > 0);
  }
}

void check_accepted(const std::string& name) {
  CAPTURE(name);
  CHECK(verification::verify(Spec::parse(name)).passed());
}

EstimatorEntry mutant_of(const std::string& of) {
  auto entry = Estimators::instance().at(of);
  entry.name += "_mutant";
  entry.parameters.push_back(ParameterInfo::text("fault", "none", "the fault"));
  entry.parameters.push_back(ParameterInfo::text("of", of, "the estimator"));
  return entry;
}

void check_equal_without_fault(const std::string& of) {
  int compared = 0;
  for (const auto& [name, model, batch] : verification::test_models()) {
    const auto& structure = model->structure();
    if (!why_unsupported(Spec::parse(of), structure).empty()) continue;
    CAPTURE(of);
    CAPTURE(name);
    const auto estimate = [&](const std::string& spec) {
      const auto estimator = make_estimator<double>(Spec::parse(spec), structure, Key(1));
      verification::perturb_state(*estimator);
      return verification::estimate_of(*estimator, *model, batch, Key(2));
    };
    CHECK(verification::largest_difference(estimate(of + "_mutant"), estimate(of)) < 1e-9);
    ++compared;
  }
  CHECK(compared > 0);
}

}  // namespace hardgrad::testing::mutants
