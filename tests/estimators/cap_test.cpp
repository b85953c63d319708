// `cap`: no run of any estimator takes more rows.
#include <doctest/doctest.h>

#include <set>

#include "experiments/verification/estimates.hpp"
#include "experiments/verification/test_models.hpp"

namespace hardgrad::testing::cap_test {
namespace {

using verification::gradient_of;

/// The error message of an estimate with this cap; empty if there is none.
std::string said(const Spec& spec, double cap, const verification::TestModel& tested) {
  const auto capped = spec.with("cap", std::to_string(cap));
  const auto estimator = make_estimator<double>(capped, tested.model->structure(), Key(1));
  try {
    gradient_of(*estimator, *tested.model, tested.batch, Key(2));
  } catch (const NotExact& e) {
    return e.what();
  }
  return "";
}

TEST_CASE("every estimator fails at a cap below its number of rows, and succeeds at a cap equal to it") {
  std::set<std::string> visited;
  for (const auto& name : Estimators::instance().names()) {
    const auto spec = Spec::parse(name);
    for (const auto& tested : verification::test_models()) {
      if (!why_unsupported(spec, tested.model->structure()).empty()) continue;
      if (tested.batch.examples() < 2) continue;
      CAPTURE(name);
      CAPTURE(tested.name);
      CHECK(said(spec, 1, tested).find("rows") != std::string::npos);
      CHECK(said(spec, 1e6, tested) == "");
      visited.insert(name);
    }
  }
  CHECK(visited.size() >= Estimators::instance().names().size() - 3);
}

TEST_CASE("the error message names the number of rows, the place and a remedy") {
  for (const auto& tested : verification::test_models())
    if (tested.name.starts_with("recurrent")) {
      const auto why = said(Spec::parse("reinforce[samples=4]"), 20, tested);
      CAPTURE(why);
      CHECK(why.find("a run takes more than 20 rows of the network (24 up to choice 2)") != std::string::npos);
      CHECK(why.find("or raise the setting `cap`") != std::string::npos);
      return;
    }
  FAIL("no such network");
}

}  // namespace
}  // namespace hardgrad::testing::cap_test
