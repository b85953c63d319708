// How a plan with [tune] grows from what its trials came to.
#include "experiments/sweeps/search.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "experiments/sweeps/tuning.hpp"
#include "files.hpp"

namespace hardgrad::testing::search_test {
using namespace measurement;
using namespace storage;
using namespace sweeps;
using namespace tasks;
using namespace training;

namespace {

const std::string sweep = R"(
name = "s"
[grid]
task = "bits"
estimator = ["rloo", "gumbel_softmax", "exact"]
seed = [1, 2, 3]
[train]
steps = 100
evaluate_split = "test"
[measure]
at = ["start", "end"]
[tune]
seeds = [11, 12]
rounds = [0.1, 0.5]
keep = 0.5
train.learning_rate = [0.1, 0.2, 0.3, 0.4]
)";

struct Planned {
  TaskPool tasks;
  Plan plan;
  explicit Planned(const std::vector<std::string>& sets = {}) { plan = make_plan(config_of(sweep, sets), tasks); }
};

double rate(const Cell& cell) { return std::stod(cell.axes.at("train.learning_rate")); }

// Trials whose score is a function of the cell; of the others nothing is known.
Outcomes scored(std::function<std::optional<double>(const Cell&)> score) {
  return [score](const Cell& cell) -> std::optional<Outcome> {
    const auto found = score(cell);
    if (!found) return {};
    return Outcome{*found, "heldout_expected_loss", std::isfinite(*found) ? "" : "it burst"};
  };
}

std::vector<const Cell*> cells_of(const Plan& plan, const std::string& estimator, std::size_t round) {
  std::vector<const Cell*> found;
  for (const auto& cell : plan.cells)
    if (cell.axes.at("estimator") == estimator && cell.round == round) found.push_back(&cell);
  return found;
}

// Every cell has a number of its own, those to come too, and keeps it.
void check_numbers(const Plan& plan, std::size_t all) {
  std::set<std::size_t> numbers;
  for (const auto* list : {&plan.cells, &plan.tuning->to_come})
    for (const auto& cell : *list) {
      CHECK(cell.number < all);
      CHECK(numbers.insert(cell.number).second);
    }
}

}  // namespace

TEST_CASE("trials come first, the best go on, and the best of these is reported") {
  Planned p;
  auto& plan = p.plan;
  CHECK(plan.cells.size() == 3 * 4 * 2);
  CHECK(plan.tuning->to_come.size() == 3 * (2 * 2 + 3));
  check_numbers(plan, 45);
  for (const auto& cell : plan.cells) {
    CHECK(cell.round == 1);
    CHECK(cell.settings.train.steps == 10);
    CHECK(cell.settings.train.evaluate_split == "heldout");
    CHECK(cell.settings.measure_at == "");
    CHECK((cell.axes.at("seed") == "11" || cell.axes.at("seed") == "12"));
  }
  // 0.2 is best at first, 0.3 later.
  const auto score = [](const Cell& cell) {
    return std::abs(rate(cell) - (cell.round == 1 ? 0.21 : 0.3)) + 0.01 * static_cast<double>(cell.seed());
  };
  const auto of_rloo = scored([&](const Cell& cell) -> std::optional<double> {
    if (cell.axes.at("estimator") != "rloo" || cell.round == 2) return {};
    return score(cell);
  });
  CHECK(grow(plan, of_rloo));
  CHECK_FALSE(grow(plan, of_rloo));
  check_numbers(plan, 45);
  const auto second = cells_of(plan, "rloo", 2);
  REQUIRE(second.size() == 4);
  for (const auto* cell : second) {
    CHECK((rate(*cell) == 0.2 || rate(*cell) == 0.3));
    CHECK(cell->settings.train.steps == 50);
  }
  CHECK(cells_of(plan, "exact", 2).empty());  // each goes at its own pace
  CHECK(grow(plan, scored(score)));
  CHECK(plan.tuning->to_come.empty());
  check_numbers(plan, 45);
  const auto reported = cells_of(plan, "rloo", 0);
  REQUIRE(reported.size() == 3);
  for (const auto* cell : reported) {
    CHECK(rate(*cell) == 0.3);
    CHECK(cell->settings.train.steps == 100);
    CHECK(cell->settings.train.evaluate_split == "test");
    CHECK(cell->settings.measure_at == "start;end");
    CHECK(cell->seed() <= 3);
  }
  const Planned other({"train.evaluate_split=heldout", "train.final_split=test", "train.keep_best=true"});
  for (const auto& cell : other.plan.cells) CHECK(cell.settings.train.judging_split() == "heldout");
  // A reported run is the run that it would be without [tune].
  TaskPool tasks;
  auto plain = sweep.substr(0, sweep.find("[tune]"));
  const auto same = make_plan(config_of(plain, {"grid.train.learning_rate=[0.3]"}), tasks);
  std::set<std::string> hashes;
  for (const auto& cell : same.cells) hashes.insert(cell.hash);
  for (const auto* cell : reported) CHECK(hashes.contains(cell->hash));
  // Its shards are known beforehand, whatever is over.
  Planned fresh;
  for (std::size_t k = 1; k <= 4; ++k) {
    const auto before = selected_cells(fresh.plan, {}, k, 4), after = selected_cells(plan, {}, k, 4);
    CHECK(before.size() + selected_cells(fresh.plan, {}, k, 4, true).size() == after.size());
    std::set<std::string> mine;
    for (const auto* cell : after) mine.insert(cell->hash);
    for (const auto* cell : before) CHECK(mine.contains(cell->hash));
  }
}

TEST_CASE("a trial has the schedule of the whole training in miniature") {
  Planned p({"train.warmup=30", "train.schedule=step", "train.drop_every=3"});
  for (const auto& cell : p.plan.cells) {
    CHECK(cell.settings.train.optimizer.warmup == 3);
    CHECK(cell.settings.train.optimizer.drop_every == 1);  // 0 would be never
  }
  grow(p.plan, scored([](const Cell& cell) { return rate(cell); }));
  CHECK(cells_of(p.plan, "rloo", 2).at(0)->settings.train.optimizer.warmup == 15);
  CHECK(cells_of(p.plan, "rloo", 0).at(0)->settings.train.optimizer.warmup == 30);
  // What begins short may warm up for longer, where the rate need not go down within it.
  Planned short_start({"train.warmup=30", "train.start=rloo", "train.start_steps=4"});
  for (const auto& cell : short_start.plan.cells) CHECK(cell.settings.train.optimizer.warmup == 3);
  Planned falling({"train.warmup=13", "train.steps=14", "train.schedule=cosine", "measure.at=[]"});
  for (const auto& cell : falling.plan.cells)
    CHECK(cell.settings.train.optimizer.warmup < cell.settings.train.steps);  // both rounded
}

TEST_CASE("whatever ends a training ends its trials at the same share") {
  Planned p({"train.steps=0", "train.most_rows=5000", "measure.at=[]"});
  for (const auto& cell : p.plan.cells) {
    CHECK(cell.settings.train.steps == 0);
    CHECK(cell.settings.train.rows == doctest::Approx(500));
  }
  grow(p.plan, scored([](const Cell& cell) { return rate(cell); }));
  CHECK(cells_of(p.plan, "rloo", 0).at(0)->settings.train.rows == 5000);
}

TEST_CASE("equal scores: the first, and where more is better the largest") {
  Planned p;
  grow(p.plan, scored([](const Cell&) { return 1.0; }));
  CHECK(rate(*cells_of(p.plan, "rloo", 0).at(0)) == 0.1);
  p.plan.tuning->searches.at(0).higher_is_better = true;
  grow(p.plan, scored([](const Cell& cell) { return rate(cell); }));
  CHECK(rate(*cells_of(p.plan, "rloo", 0).at(0)) == 0.4);
  CHECK(rate(*cells_of(p.plan, "exact", 0).at(0)) == 0.1);
}

TEST_CASE("a setting with a failed trial is never chosen, and said, and where all fail nothing is reported") {
  Planned p;
  const auto burst = [](const Cell& cell) {  // one seed is enough
    return rate(cell) < 0.3 && cell.seed() == 12 ? not_a_number : 1 - rate(cell);
  };
  grow(p.plan, scored(burst));
  for (const auto* cell : cells_of(p.plan, "rloo", 2)) CHECK(rate(*cell) >= 0.3);
  CHECK(rate(*cells_of(p.plan, "rloo", 0).at(0)) == 0.4);
  CHECK(p.plan.tuning->searches.at(0).failures.size() == 2);
  const auto lines = tuning_lines(p.plan);
  REQUIRE(lines.size() == 3);
  CHECK(
      lines[0] ==
      "tuned: task=bits model=bits estimator=rloo: train.learning_rate=0.4, the best of 4 settings; train.learning_rate 0.4 is "
      "the "
      "largest tried (0.1 to 0.4): look further; 2 of its trials failed and were never chosen, the first: task=bits model=bits "
      "estimator=rloo seed=12 train.learning_rate=0.1 round=1: it burst");

  grow(p.plan, scored([](const Cell& cell) { return cell.axes.at("estimator") == "exact" ? not_a_number : rate(cell); }));
  const auto none = cells_of(p.plan, "exact", 0);
  REQUIRE(none.size() == 3);
  for (const auto* cell : none)
    CHECK(cell->skip == "no setting can be chosen: none of 4 has a finite result in round 1 of the search (it burst)");
  CHECK(cells_of(p.plan, "exact", 2).empty());
  check_numbers(p.plan, 45);
  CHECK(cells_of(p.plan, "rloo", 0).at(0)->skip == "");
  for (const auto& line : tuning_lines(p.plan)) CHECK(line.find("nan") == std::string::npos);
}

TEST_CASE("the edge of what was tried is said, unless nothing can lie beyond") {
  Planned p({"tune.train.learning_rate=[0.3]", "tune.train.warmup=[0, 10, 50]", "tune.train.optimizer=[\"sgd\", \"adam\"]"});
  const auto& tune = *p.plan.tuning->config->tune;
  const auto edge = [&](int best) {
    grow(p.plan, scored([&](const Cell& cell) { return std::abs(std::stod(cell.axes.at("train.warmup")) - best); }));
    return p.plan.tuning->searches.at(0).edge(tune);
  };
  CHECK(edge(50) == "train.warmup 50 is the largest tried (0 to 50)");
  CHECK(edge(10) == "");
  CHECK(edge(0) == "");  // no warm-up is shorter
}

TEST_CASE("an estimator's own settings are tuned where it has them") {
  Planned p({"tune.train.learning_rate=[0.3]", "tune.estimator.temperature=[0.7, 2]"});
  CHECK(p.plan.cells.size() == 2 * 2 + 2 * 3);  // nothing is to be tried of the others: they are reported at once
  grow(p.plan, scored([](const Cell& cell) { return cell.axes.at("estimator").find("0.7") != std::string::npos ? 0.0 : 1.0; }));
  const auto reported = cells_of(p.plan, "gumbel_softmax[temperature=0.7]", 0);
  REQUIRE(reported.size() == 3);
  CHECK(p.plan.tuning->searches.at(1).label() == "task=bits model=bits estimator=gumbel_softmax");
  CHECK(p.plan.tuning->searches.at(1).edge(*p.plan.tuning->config->tune) ==
        "estimator.temperature 0.7 is the least tried (0.7 to 2)");
}

TEST_CASE("what a trial came to is its last evaluation's") {
  CellRecord record;
  record.result.evaluations = {{5, {{"expected_loss", 9.0}}, {}},
                               {10, {{"expected_loss", 2.0}, {"soft", 3.0}}, {{"accuracy", 0.5}}}};
  CHECK(outcome_of(record, "loss").score == 2.0);
  CHECK(outcome_of(record, "loss").quantity == "heldout_expected_loss");
  CHECK(outcome_of(record, "soft").score == 3.0);
  CHECK(outcome_of(record, "accuracy").quantity == "metric_accuracy");
  CHECK(outcome_of(record, "bleu").reason == "its evaluation has no bleu; it has: expected_loss, soft, accuracy");
  CHECK(std::isnan(outcome_of(record, "bleu").score));
  record.result.evaluations.back().losses["expected_loss"] = not_a_number;
  CHECK(outcome_of(record, "loss").reason == "heldout_expected_loss is not finite");
  record.result.evaluations.clear();
  CHECK(outcome_of(record, "loss").reason == "nothing was evaluated");
  record.status = CellStatus::failed;
  record.reason = "the loss is not finite";
  CHECK(outcome_of(record, "loss").reason == "the loss is not finite");
}

}  // namespace hardgrad::testing::search_test
