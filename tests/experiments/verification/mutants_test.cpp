// `hardgrad test` on models and tasks: right ones pass, and every mutant is detected by its check.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "experiments/verification/estimates.hpp"
#include "experiments/verification/verify.hpp"
#include "tests/experiments/verification/mutants.hpp"

namespace hardgrad::testing::mutants_test {
using namespace measurement;
using namespace tasks;
namespace {

const ModelEntry walker = {.name = "walker",
                           .summary = "walks",
                           .paper = "none",
                           .dependence = "sequential",
                           .kinds = "categorical",
                           .parameters = fault_parameter,
                           .needs = {"walks"}};
HARDGRAD_MODEL(Walker, walker)
const TaskEntry walks = {
    .name = "walks", .summary = "walks", .data = "none", .default_model = "walker", .parameters = fault_parameter};
HARDGRAD_TASK(Walks, walks)

using verification::Check;
using verification::Verdict;

/// The failed checks, and the message of the first.
std::pair<std::set<std::string>, std::string> failed(const Verdict& verdict) {
  std::pair<std::set<std::string>, std::string> found;
  for (const auto& check : verdict.checks)
    if (check.outcome == Check::Outcome::failed) {
      if (found.first.empty()) found.second = check.detail;
      found.first.insert(check.what);
    }
  return found;
}

/// A fault, its check, and a required part of the check's message.
struct Mutant {
  std::string fault, check, words;
};

void judge(const Mutant& mutant, const Verdict& verdict) {
  CAPTURE(mutant.fault);
  const auto [checks, why] = failed(verdict);
  CAPTURE(why);
  CHECK(checks.contains(mutant.check));
  CHECK(std::any_of(verdict.checks.begin(), verdict.checks.end(), [&](const auto& check) {
    return check.outcome == Check::Outcome::failed && check.what == mutant.check &&
           check.detail.find(mutant.words) != std::string::npos;
  }));
}

/// The number of checks with a mutant; `verify` runs with the given fault.
template <class Verify>
std::size_t judge_all(const std::vector<Mutant>& mutants, Verify verify) {
  std::set<std::string> checks;
  for (const auto& mutant : mutants) {
    judge(mutant, verify(mutant.fault));
    checks.insert(mutant.check);
  }
  return checks.size();
}

Spec with_fault(const char* name, const std::string& fault) { return Spec::parse(name).with("fault", fault); }

}  // namespace

TEST_CASE("a right model passes every check") {
  const auto verdict = verification::verify_model(Spec::parse("walker"));
  for (const auto& check : verdict.checks) {
    CAPTURE(check.what);
    CAPTURE(check.detail);
    CHECK(check.outcome == Check::Outcome::passed);
  }
  CHECK(verdict.checks.size() == 11);
}

TEST_CASE("every mutant of a model is detected by its check") {
  const std::vector<Mutant> mutants{
      {"steps", "sites", "site `place` is asked too many times: 2, declared 1"},
      {"site name", "sites", "site `place` is asked, but not declared"},
      {"columns", "sites", "columns: 2, declared 1"},
      {"options", "sites", "options: 3, declared 2"},
      {"state width", "sites", "state of the wrong width: 2, declared 3"},
      {"state", "sites", "one row of state"},
      {"cost rows", "sites", "a cost has 8 rows, but is given for 4 rows"},
      {"unasked site", "sites", "site `nowhere` is declared, but never has a choice"},
      {"throws", "sites", "out of luck"},
      {"rewards", "sites", "a loss is positive"},
      {"too many", "sites", "more options than columns"},
      {"dependence", "reach", "reaches later choices, declared: later costs"},
      {"joint cost", "reach", "moves cost 2, whose rows do not come from it"},
      {"chained", "reach", "question 2 is asked on rows that come from question 1"},
      {"column costs", "reach", "reaches costs of its own question (cost 1), declared: costs of its own column"},
      {"outcomes", "outcomes", "there are more"},
      {"posterior support", "posterior", "to outcomes that the prior gives 0"},
      {"posterior moves", "posterior", "under the prior the mean loss is"},
      {"gradient", "gradient", "options, parameter embedding.weight"},
      {"repeated", "repeated", "a second time"},
      {"float", "repeated", "in float"},
      {"not finite", "repeated", "has a loss of"},
      {"batch leak", "batching", "example 2 alone differs from the batch"},
      {"padding leak", "padding", "without padding"},
      {"sample leak", "samples", "differs from the sample alone"},
      {"shared state", "sharing", "differs without shared states"},
      {"hard answers", "one-hot", "with all weight on them"},
  };
  const auto checks =
      judge_all(mutants, [](const auto& fault) { return verification::verify_model(with_fault("walker", fault)); });
  CHECK(checks == 11);  // every check has a mutant
}

TEST_CASE("every estimator rejects a model that breaks its declaration, in one line") {
  const auto task = make_task(Spec::parse("walks"), Key(1));
  const auto batch = task->batch(Split::train, {0, 1, 2});
  int refusals = 0;
  for (const char* fault : {"steps", "columns", "options", "state width", "cost rows"})
    for (const auto& name : Estimators::instance().names()) {
      const auto spec = Spec::parse(name);
      const auto model = make_model<double>(with_fault("walker", fault), task->dimensions(), Key(1), wants_posterior(spec));
      if (!why_unsupported(spec, model->structure()).empty()) continue;
      const auto estimator = make_estimator<double>(spec, model->structure(), Key(1));
      CAPTURE(name);
      CAPTURE(std::string(fault));
      std::string said;
      try {
        verification::gradient_of(*estimator, *model, batch, Key(2));
      } catch (const Error& e) {
        said = e.what();
      }
      const bool refused = said.starts_with("the model does not run as it declares: ");
      CHECK((refused || (fault == std::string("cost rows") && said.empty())));  // with one sample the rows are equally many
      refusals += refused;
    }
  CHECK(refusals > 150);
}

TEST_CASE("a right task passes every check") {
  const auto verdict = verification::verify_task(Spec::parse("walks"));
  CAPTURE(failed(verdict).second);
  CHECK(verdict.passed());
  CHECK(verdict.checks.size() == 2 * 4 + 3);  // fields, order, padding, dimensions of two splits; ids, seed, training
}

TEST_CASE("every mutant of a task is detected by its check") {
  const std::vector<Mutant> mutants{
      {"empty", "fields", "the training split is empty"},
      {"fields", "fields", "field y has the shape [13] for 12 examples"},
      {"not finite", "fields", "field y has a number that is nan"},
      {"order", "order", "differs at another place in a batch: field places differs"},
      {"padding", "padding", "example 1 alone differs from the batch: field word differs"},
      {"ids", "ids", "has the id 0 of a different example"},
      {"seed", "seed", "a second time with the same seed"},
      {"training ids", "training", "their ids differ"},
      {"training noise", "training", "a second time with the same key"},
      {"dimensions", "dimensions", "it needs sizes named walks, the task has none"},
      {"metrics", "dimensions", "two metrics have the name error"},
      {"infinite metric", "dimensions", "metric error is inf"},
  };
  CHECK(judge_all(mutants, [](const auto& fault) { return verification::verify_task(with_fault("walks", fault)); }) == 7);
}

TEST_CASE("every model of the registry passes, on each of its scenes") {
  int models = 0, checks = 0;
  for (const auto& name : Models::instance().names()) {
    if (name == "walker") continue;
    const auto verdict = verification::verify_model(Spec::parse(name));
    CAPTURE(name);
    CAPTURE(failed(verdict).second);
    CHECK(verdict.passed());
    CHECK(verdict.count(Check::Outcome::passed) >= 8);
    ++models;
    checks += verdict.count(Check::Outcome::passed);
  }
  CHECK(models == 21);
  CHECK(checks >= 200);
}

TEST_CASE("settings that change a network's function leave it right") {
  int passed = 0;
  for (const std::string spec :
       {"translator[dropout=0.4,feed=sampled,heads=2]", "translator[attention=none]", "translator[null=true,score=general]",
        "translator[source=twice,encoder=forward]", "memory_reader[tying=layerwise]", "memory_reader[tying=free_answers]",
        "ponderer[law=act]", "turing_machine[controller=feedforward]", "sentence_pair[attention=both]",
        "tape_machine[input=forward]", "belief_network[options=3,layers=2]", "translator[encoder=none,readout=context]",
        "captioner[posterior=sentence]", "attentive_reader[kind=uniform]", "translator[picks=2,feed=sampled]",
        "captioner[picks=2]", "attentive_reader[kind=impatient,picks=2]",
        "transformer[width=4,inner=3,scorer=indexer,imitation=0.5]", "transformer[width=4,picks=0]"}) {
    const auto verdict = verification::verify_model(Spec::parse(spec));
    CAPTURE(spec);
    CAPTURE(failed(verdict).second);
    CHECK(verdict.passed());
    passed += verdict.passed();
  }
  CHECK(passed == 19);
}

TEST_CASE("every task of the registry passes, in a small version") {
  const std::vector<const char*> small{"algorithm",
                                       "answers[symbols=2,size=2]",
                                       "bits",
                                       "canvas[size=8,canvas=12,examples=20]",
                                       "caption[grid=2,objects=1]",
                                       "cloze[facts=2]",
                                       "countdown",
                                       "features[kind=switch]",
                                       "gaussians",
                                       "glimpse[size=12]",
                                       "images[size=8,examples=40]",
                                       "induction",
                                       "letters[stories=20]",
                                       "not_gate",
                                       "pairs[kind=phrase,words=2,examples=40]",
                                       "parse[examples=100]",
                                       "puzzle[size=3]",
                                       "qa",
                                       "recall",
                                       "reviews[longest=6,examples=40]",
                                       "sequences",
                                       "subsets",
                                       "tables[columns=2,max_rows=3]",
                                       "patches[size=8,examples=40]",
                                       "transduce[examples=100]",
                                       "translation[max_length=5]"};
  std::set<std::string> seen{"walks"};
  for (const std::string spec : small) {
    const auto verdict = verification::verify_task(Spec::parse(spec));
    CAPTURE(spec);
    CAPTURE(failed(verdict).second);
    CHECK(verdict.passed());
    seen.insert(Spec::parse(spec).name);
  }
  for (const auto& name : Tasks::instance().names()) {
    CAPTURE(name);
    CHECK(seen.contains(name));
  }
}

}  // namespace hardgrad::testing::mutants_test
