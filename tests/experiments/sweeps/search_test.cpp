// A plan with [tune] grows by the results of its trials.
#include "experiments/sweeps/plan.hpp"

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

// Trials whose score is a function of the cell; the other cells have no result.
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

// Every cell, including later ones, has a unique number and keeps it.
void check_numbers(const Plan& plan, std::size_t all) {
  std::set<std::size_t> numbers;
  for (const auto* list : {&plan.cells, &plan.tuning->to_come})
    for (const auto& cell : *list) {
      CHECK(cell.number < all);
      CHECK(numbers.insert(cell.number).second);
    }
}

}  // namespace

TEST_CASE("trials run first, the best continue, and the best of these is reported") {
  Planned p;
  auto& plan = p.plan;
  CHECK(plan.cells.size() == 3 * 4 * 2);
  CHECK(plan.tuning->to_come.size() == 3 * (2 * 2 + 3));
  check_numbers(plan, 45);
  for (const auto& cell : plan.cells) {
    CHECK(cell.round == 1);
    CHECK(cell.settings.train.steps == 10);
    CHECK(cell.settings.train.evaluate_split == tasks::Split::heldout);
    CHECK(cell.settings.measure_at == "");
    CHECK((cell.axes.at("seed") == "11" || cell.axes.at("seed") == "12"));
  }
  // 0.2 is the best in the first round, 0.3 later.
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
  CHECK(cells_of(plan, "exact", 2).empty());  // searches are independent of each other
  CHECK(grow(plan, scored(score)));
  CHECK(plan.tuning->to_come.empty());
  check_numbers(plan, 45);
  const auto reported = cells_of(plan, "rloo", 0);
  REQUIRE(reported.size() == 3);
  for (const auto* cell : reported) {
    CHECK(rate(*cell) == 0.3);
    CHECK(cell->settings.train.steps == 100);
    CHECK(cell->settings.train.evaluate_split == tasks::Split::test);
    CHECK(cell->settings.measure_at == "start;end");
    CHECK(cell->seed() <= 3);
  }
  const Planned other({"train.evaluate_split=heldout", "train.final_split=test", "train.keep_best=true"});
  for (const auto& cell : other.plan.cells) CHECK(cell.settings.train.judging_split() == tasks::Split::heldout);
  // A reported run equals the run without [tune].
  TaskPool tasks;
  auto plain = sweep.substr(0, sweep.find("[tune]"));
  const auto same = make_plan(config_of(plain, {"grid.train.learning_rate=[0.3]"}), tasks);
  std::set<std::string> hashes;
  for (const auto& cell : same.cells) hashes.insert(cell.hash);
  for (const auto* cell : reported) CHECK(hashes.contains(cell->hash));
  // Its shard is known beforehand and does not depend on finished cells.
  Planned fresh;
  for (std::size_t k = 1; k <= 4; ++k) {
    const auto before = selected_cells(fresh.plan, {}, k, 4), after = selected_cells(plan, {}, k, 4);
    CHECK(before.size() + selected_cells(fresh.plan, {}, k, 4, true).size() == after.size());
    std::set<std::string> mine;
    for (const auto* cell : after) mine.insert(cell->hash);
    for (const auto* cell : before) CHECK(mine.contains(cell->hash));
  }
}

TEST_CASE("a trial has the schedule of the whole training, scaled down") {
  Planned p({"train.warmup=30", "train.schedule=step", "train.drop_every=3"});
  for (const auto& cell : p.plan.cells) {
    CHECK(cell.settings.train.optimizer.warmup == 3);
    CHECK(cell.settings.train.optimizer.drop_every == 1);  // 0 would mean never
  }
  grow(p.plan, scored([](const Cell& cell) { return rate(cell); }));
  CHECK(cells_of(p.plan, "rloo", 2).at(0)->settings.train.optimizer.warmup == 15);
  CHECK(cells_of(p.plan, "rloo", 0).at(0)->settings.train.optimizer.warmup == 30);
  // Without a decay in the schedule, the warm-up may be longer than the steps of the starting network.
  Planned short_start({"train.warmup=30", "train.start=rloo", "train.start_steps=4"});
  for (const auto& cell : short_start.plan.cells) CHECK(cell.settings.train.optimizer.warmup == 3);
  Planned falling({"train.warmup=13", "train.steps=14", "train.schedule=cosine", "measure.at=[]"});
  for (const auto& cell : falling.plan.cells)
    CHECK(cell.settings.train.optimizer.warmup < cell.settings.train.steps);  // both are rounded
}

TEST_CASE("every limit of a training is scaled to its trials") {
  Planned p({"train.steps=0", "train.most_rows=5000", "measure.at=[]"});
  for (const auto& cell : p.plan.cells) {
    CHECK(cell.settings.train.steps == 0);
    CHECK(cell.settings.train.rows == doctest::Approx(500));
  }
  grow(p.plan, scored([](const Cell& cell) { return rate(cell); }));
  CHECK(cells_of(p.plan, "rloo", 0).at(0)->settings.train.rows == 5000);
}

TEST_CASE("of equal scores the first is chosen, and if more is better, the largest") {
  Planned p;
  grow(p.plan, scored([](const Cell&) { return 1.0; }));
  CHECK(rate(*cells_of(p.plan, "rloo", 0).at(0)) == 0.1);
  p.plan.tuning->searches.at(0).higher_is_better = true;
  grow(p.plan, scored([](const Cell& cell) { return rate(cell); }));
  CHECK(rate(*cells_of(p.plan, "rloo", 0).at(0)) == 0.4);
  CHECK(rate(*cells_of(p.plan, "exact", 0).at(0)) == 0.1);
}

TEST_CASE("a setting with a failed trial is reported and never chosen, and if all fail, no run is reported") {
  Planned p;
  const auto burst = [](const Cell& cell) {  // one failed seed suffices
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

TEST_CASE("a chosen value at the edge of its range is reported, unless the range cannot be extended") {
  Planned p({"tune.train.learning_rate=[0.3]", "tune.train.warmup=[0, 10, 50]", "tune.train.optimizer=[\"sgd\", \"adam\"]"});
  const auto& tune = *p.plan.tuning->config->tune;
  const auto edge = [&](int best) {
    grow(p.plan, scored([&](const Cell& cell) { return std::abs(std::stod(cell.axes.at("train.warmup")) - best); }));
    return p.plan.tuning->searches.at(0).edge(tune);
  };
  CHECK(edge(50) == "train.warmup 50 is the largest tried (0 to 50)");
  CHECK(edge(10) == "");
  CHECK(edge(0) == "");  // a warm-up cannot be shorter
}

TEST_CASE("settings of an estimator are tuned for the estimators that have them") {
  Planned p({"tune.train.learning_rate=[0.3]", "tune.estimator.temperature=[0.7, 2]"});
  CHECK(p.plan.cells.size() == 2 * 2 + 2 * 3);  // the other estimators have no trials: they are reported directly
  grow(p.plan, scored([](const Cell& cell) { return cell.axes.at("estimator").find("0.7") != std::string::npos ? 0.0 : 1.0; }));
  const auto reported = cells_of(p.plan, "gumbel_softmax[temperature=0.7]", 0);
  REQUIRE(reported.size() == 3);
  CHECK(p.plan.tuning->searches.at(1).label() == "task=bits model=bits estimator=gumbel_softmax");
  CHECK(p.plan.tuning->searches.at(1).edge(*p.plan.tuning->config->tune) ==
        "estimator.temperature 0.7 is the least tried (0.7 to 2)");
}

TEST_CASE("the score of a trial is that of its last evaluation") {
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
