// An estimator never takes more rows than it states, and takes as many on some network.
#include <doctest/doctest.h>

#include <set>

#include "core/estimator/evaluations.hpp"
#include "experiments/verification/estimates.hpp"
#include "experiments/verification/test_models.hpp"

namespace hardgrad::testing::stated_rows_test {
namespace {

using verification::perturb_state;
using verification::TestModel;

/// Rows for each question and example: the widest question of every run.
double taken(const Estimator<double>& estimator, const TestModel& tested, bool learning) {
  Tape<double> tape;
  KeyedRandomness random(Key(3));
  const auto estimate = estimator.draw({tape, *tested.model, tested.batch, random, learning});
  return estimate.total([&](const auto& run) {
    std::size_t widest = 0;
    for (const auto& step : run.steps()) widest = std::max(widest, step.choice.rows->size());
    return static_cast<double>(widest) / tested.batch.examples();
  });
}

/// The estimator with its defaults, with each flag inverted, with each other choice, and with more samples.
std::vector<Spec> variants(const std::string& name) {
  const auto& entry = Estimators::instance().at(name);
  std::vector<Spec> all{Spec::parse(name)};
  for (const auto& parameter : entry.parameters) {
    if (parameter.name == "kl" || parameter.name == "target") continue;
    if (parameter.type == ParameterInfo::Type::boolean)
      all.push_back(all[0].with(parameter.name, std::get<bool>(parameter.fallback) ? "false" : "true"));
    for (const auto& choice : parameter.choices) all.push_back(all[0].with(parameter.name, choice));
    if (parameter.name == "samples") all.push_back(all[0].with("samples", "6"));
  }
  return all;
}

TEST_CASE("every estimator takes at most its stated rows, and on some network as many") {
  std::set<std::string> visited, tight;
  int pairs = 0;
  for (const auto& name : Estimators::instance().names())
    for (const auto& spec : variants(name))
      for (const auto& tested : verification::test_models()) {
        const auto& structure = tested.model->structure();
        if (!why_unsupported(spec, structure).empty()) continue;
        std::unique_ptr<Estimator<double>> estimator;
        try {
          estimator = make_estimator<double>(spec, structure, Key(1));
        } catch (const UsageError&) {
          continue;  // an invalid combination of settings
        }
        perturb_state(*estimator);
        for (const bool learning : {false, true}) {
          CAPTURE(spec.text);
          CAPTURE(tested.name);
          CAPTURE(learning);
          const auto stated = stated_rows(spec, structure, learning);
          REQUIRE(stated.has_value());
          const double rows = taken(*estimator, tested, learning);
          CAPTURE(rows);
          CHECK(rows <= *stated);
          visited.insert(name);
          if (rows == *stated) tight.insert(name);
          ++pairs;
        }
      }
  for (const auto& name : visited)
    if (!tight.contains(name)) MESSAGE(name << " always takes fewer rows than it states");
  CHECK(visited.size() == Estimators::instance().names().size());
  CHECK(tight == visited);
  CHECK(pairs > 1500);
}

TEST_CASE("a formula is evaluated, and other text is rejected") {
  const std::vector<ParameterInfo> declared{ParameterInfo::integer("samples", 3, 1, 10, ""),
                                            ParameterInfo::flag("twice", true, ""),
                                            ParameterInfo::choice("how", "a", {"a", "b"}, "")};
  const Settings settings("e", declared, Spec::parse("e"));
  Structure structure;
  structure.sites = {{.name = "s", .options = 4, .times = 2, .scope = DependenceScope::later_costs, .columns = 3}};
  const auto rows = [&](const char* text) { return stated_rows(text, settings, structure); };
  CHECK(rows("K") == 3);
  CHECK(rows("2 K + 1") == 7);
  CHECK(rows("S (S - 1) / 2 + 1") == 7);
  CHECK(rows("S^D") == 64);
  CHECK(rows("1 + (K - 1) T; 5 if sequential") == 13);
  CHECK(rows("1; 2 if shared; 3 if joint and twice; 4 if how=b; 5 if learning") == 3);
  for (const char* text : {"", "K rows", "rows: K", "2 (K", "K if", "K if odd", "3K2 x", "K; S if twice if shared"}) {
    CAPTURE(text);
    CHECK_FALSE(rows(text).has_value());
  }
}

}  // namespace
}  // namespace hardgrad::testing::stated_rows_test
