// The keys of [tune] and the settings that it draws.
#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "experiments/sweeps/plan.hpp"
#include "experiments/sweeps/tuning.hpp"
#include "files.hpp"

namespace hardgrad::testing::tune_config_test {
using namespace measurement;
using namespace storage;
using namespace sweeps;
using namespace tasks;
using namespace training;

namespace {

const std::string head = R"(name = "t"
[grid]
task = "bits"
estimator = ["rloo", "gumbel_softmax"]
seed = [1, 2]
[train]
steps = 10
evaluate_split = "test"
[measure]
at = []
[tune]
)";
const std::string seeds = "seeds = [11, 12]\n";

std::string said(const std::string& tune, const std::vector<std::string>& sets = {}) { return complaint(head + tune, sets); }

std::string said_of_plan(const std::string& tune, const std::vector<std::string>& sets = {}) {
  try {
    TaskPool tasks;
    make_plan(config_of(head + tune, sets), tasks);
  } catch (const UsageError& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("an error in [tune] is reported in one line, with its place") {
  const std::string rate = "train.learning_rate = { low = 1e-3, high = 0.1 }\n", two = "train.learning_rate = [0.1, 0.2]\n";
  CHECK(said(seeds + "trials = 4\n" + rate) == "");
  CHECK(said(seeds + two) == "");
  struct Case {
    std::string tune, complaint;
  };
  const std::vector<Case> cases{
      {seeds, "sweep.toml:11:1: tune: names nothing to tune; add e.g. train.learning_rate = { low = 1e-4, high = 1e-1 }"},
      {two, "sweep.toml:11:1: tune.seeds: missing: give seeds for the trials that are not in the grid, such as [101, 102]"},
      {"seeds = [2]\n" + two,
       "sweep.toml:12:9: tune.seeds: 2 is a seed of the grid: its results would be optimistic for settings chosen by it"},
      {"seeds = [-1]\n" + two, "sweep.toml:12:10: tune.seeds: must be an integer of at least 0, got -1"},
      {"seeds = []\n" + two, "sweep.toml:12:9: tune.seeds: must be a list of seeds, such as [101, 102], got a list"},
      {"seeds = [7, 7]\n" + two, "sweep.toml:12:9: tune.seeds: 7 is given twice"},
      {seeds + "train.learning_rate = []\n", "sweep.toml:13:23: tune.train.learning_rate: must not be empty"},
      {seeds + "train.learning_rate = [0.1, 0.1]\n", "sweep.toml:13:29: tune.train.learning_rate: 0.1 is given twice"},
      {seeds + "train.learning_rate = [-1]\n", "sweep.toml:13:24: tune.train.learning_rate: value must be above 0, got -1"},
      {seeds + "train.learning_rate = 0.1\n",
       "sweep.toml:13:23: tune.train.learning_rate: must be a list of choices, or a range { low = ..., high = ... }, got 0.1"},
      {seeds + "trials = 3\ntrain.learning_rate = { low = 0.2, high = 0.1 }\n",
       "sweep.toml:14:43: tune.train.learning_rate: a range goes from low to high: 0.2 is not below 0.1"},
      {seeds + "trials = 3\ntrain.learning_rate = { low = 0.2 }\n",
       "sweep.toml:14:31: tune.train.learning_rate: a range needs both ends: { low = ..., high = ... }"},
      {seeds + "trials = 3\ntrain.warmup = { low = 0, high = 10 }\n",
       "sweep.toml:14:24: tune.train.warmup.low: a range is drawn log-uniformly, so low must be above 0, got 0; or set scale = "
       "\"linear\""},
      {seeds + "trials = 3\ntrain.warmup = { low = 0.5, high = 10 }\n",
       "sweep.toml:14:24: tune.train.warmup.low: must be an integer, got 0.5"},
      {seeds + "trials = 3\ntrain.warmup = { low = 1, high = 10, scale = \"square\" }\n",
       "sweep.toml:14:46: tune.train.warmup.scale: must be \"log\" or \"linear\", got \"square\""},
      {seeds + "trials = 3\ntrain.optimizer = { low = 1, high = 10 }\n",
       "sweep.toml:14:37: tune.train.optimizer: is not a number, so it has no range: give a list of choices (it is: choice)"},
      {seeds + rate,
       "sweep.toml:11:1: tune.trials: missing: the number of settings to sample, as train.learning_rate is a range"},
      {seeds + "trials = 0\n" + rate, "sweep.toml:13:10: tune.trials: must be an integer from 1 to 100000, got 0"},
      {seeds + "train.learning_rat = [1]\n",
       "sweep.toml:13:22: tune.train.learning_rat: unknown setting (did you mean \"train.learning_rate\"?)"},
      {seeds + "train.steps = [1, 2]\n",
       "sweep.toml:13:15: tune.train.steps: cannot be tuned: it does not affect training, or sets its length or criterion"},
      {seeds + "measure.replicates = [5]\n",
       "sweep.toml:13:22: tune.measure.replicates: cannot be tuned: it does not affect training, or sets its length or "
       "criterion"},
      {seeds + "estimator.temperatur = [1]\n",
       "sweep.toml:13:24: tune.estimator.temperatur: no estimator of the sweep has it (did you mean "
       "\"estimator.temperature\"?)"},
      {seeds + "estimator.temperature = [-1]\n",
       "sweep.toml:13:26: tune.estimator.temperature: gumbel_softmax: temperature must be "
       "at least 1e-06, got -1"},
      {seeds + two + "rounds = [0.5, 0.2]\n",
       "sweep.toml:14:16: tune.rounds: shares of the training must be above 0 and increase, got 0.2"},
      {seeds + two + "rounds = [0.5, 2]\n", "sweep.toml:14:16: tune.rounds: must be from 0 to 1, got 2"},
      {seeds + two + "rounds = []\n",
       "sweep.toml:14:10: tune.rounds: must be a list of shares of the training, such as [0.1, 0.3, 1], got a list"},
      {seeds + two + "keep = 0\n", "sweep.toml:14:8: tune.keep: the share of settings kept must be above 0, got 0"},
      {seeds + two + "split = \"train\"\n", "sweep.toml:14:9: tune.split: must be heldout or test, got \"train\""},
  };
  for (const auto& [tune, complaint] : cases) {
    INFO(tune);
    CHECK(said(tune) == complaint);
  }
  CHECK(said(seeds + two, {"train.learning_rate=1"}) ==
        "--set train.learning_rate: it is tuned; use --set tune.train.learning_rate=[...]");
  CHECK(
      said(seeds + two, {"grid.train.learning_rate=[1]"}).ends_with("it is an axis of the sweep: compared or tuned, not both"));
  CHECK(said(seeds + two + "[[override]]\nwhen = { task = \"bits\" }\nset = { train.learning_rate = 1 }\n")
            .ends_with("an [[override]] sets it: overridden or tuned, not both"));
  CHECK(said(seeds + "estimator.temperature = [1]\n", {"grid.estimator=[\"gumbel_softmax[temperature=0.3]\"]"})
            .ends_with("gumbel_softmax[temperature=0.3] sets it; remove it there or here"));
  CHECK(said(seeds + two, {"tune.trials=1.5"}) ==
        "--set tune.trials: tune.trials: must be an integer from 1 to 100000, got 1.5");
}

TEST_CASE("settings are not chosen on the split that judges the reported runs") {
  const auto tune = seeds + "train.learning_rate = [0.1, 0.2]\n";
  CHECK(said_of_plan(tune) == "");
  CHECK(said_of_plan(tune, {"train.evaluate_split=heldout"}).ends_with("set train.evaluate_split to test"));
  CHECK(said_of_plan(tune, {"tune.split=test"}).ends_with("set train.evaluate_split to heldout"));
  CHECK(said_of_plan(tune, {"tune.split=test", "train.evaluate_split=heldout"}) == "");
  CHECK(said_of_plan(tune, {"train.keep_best=true"}).find("train.keep_best: would choose the best evaluation on test") !=
        std::string::npos);
  CHECK(said_of_plan(tune, {"train.patience=2", "train.evaluate_every=1"}).find("train.patience: would end the training") !=
        std::string::npos);
  CHECK(said_of_plan(tune, {"train.target_loss=2", "train.evaluate_every=1"}).find("train.target_loss: would end") !=
        std::string::npos);
  // Settings chosen on one split may be judged on another.
  const std::string heldout = "train.evaluate_split=heldout", test = "train.final_split=test";
  CHECK(said_of_plan(tune, {"train.keep_best=true", heldout, test}) == "");
  CHECK(said_of_plan(tune, {"train.keep_best=true", heldout, "tune.split=test"})
            .find("train.keep_best: would choose the best evaluation on heldout, the split that judges the reported runs") !=
        std::string::npos);
  CHECK(said_of_plan(tune, {heldout, test, "tune.split=test"})
            .ends_with("reported runs, test; set train.final_split to heldout"));
  CHECK(said_of_plan(tune, {"train.steps=0"}).find("nothing is trained") != std::string::npos);
  CHECK(said_of_plan(tune, {"tune.metric=expected_los"}).find("did you mean \"expected_loss\"?") != std::string::npos);
}

TEST_CASE("the resolved configuration, read again, is the same search") {
  const auto text =
      head + seeds +
      "trials = 5\nrounds = [0.1, 0.5, 1]\nkeep = 0.4\nmetric = \"expected_loss\"\n"
      "train.learning_rate = { low = 1e-3, high = 0.1 }\ntrain.warmup = { low = 0, high = 9, scale = \"linear\" }\n"
      "train.optimizer = [\"sgd\", \"adam\"]\nestimator.temperature = [0.5, 1]\n";
  const auto config = config_of(text);
  const auto again = config_of(config.echo);
  CHECK(again.echo == config.echo);
  CHECK(again.tune->text() == config.tune->text());
  TaskPool tasks;
  CHECK(make_plan(again, tasks).hash == make_plan(config, tasks).hash);
  std::set<std::string> hashes{make_plan(config, tasks).hash};
  for (const char* set : {"tune.trials=6", "tune.keep=0.3", "tune.rounds=[1]", "tune.seeds=[13]", "tune.metric=loss",
                          "tune.train.warmup.high=8", "tune.estimator.temperature=[1]"})
    CHECK_MESSAGE(hashes.insert(make_plan(config_of(text, {set}), tasks).hash).second, set);
}

TEST_CASE("settings are a function of the seed and their names, within their ranges, and distinct") {
  TuneConfig tune;
  tune.axes = {{.name = "train.learning_rate", .choices = {}, .low = 1e-4, .high = 1e-1},
               {.name = "train.warmup", .choices = {}, .low = 0, .high = 9, .log = false, .whole = true}};
  tune.trials = 2000;
  const auto settings = settings_to_try(tune, 7, "rloo");
  REQUIRE(settings.size() == 2000);
  CHECK(std::set<TunedValues>(settings.begin(), settings.end()).size() == 2000);
  int low = 0, middle = 0, zero = 0;
  for (const auto& setting : settings) {
    const double rate = std::stod(setting.at("train.learning_rate")), warmup = std::stod(setting.at("train.warmup"));
    CHECK((rate >= 1e-4 && rate <= 1e-1 && warmup >= 0 && warmup <= 9 && warmup == std::floor(warmup)));
    low += rate < 1e-3;
    middle += rate >= 1e-3 && rate < 1e-2;
    zero += warmup == 0;
  }
  // Each of three decades has a third of the log-uniform numbers; about a nineteenth of the rounded uniform numbers is 0.
  // The tolerance is five standard deviations of counts of 2,000.
  CHECK(std::abs(low - 667) < 106);
  CHECK(std::abs(middle - 667) < 106);
  CHECK(std::abs(zero - 111) < 52);

  auto alone = tune;
  alone.axes.pop_back();
  alone.trials = 5;
  const auto few = settings_to_try(alone, 7, "exact");
  for (std::size_t i = 0; i < few.size(); ++i) CHECK(few[i].at("train.learning_rate") == settings[i].at("train.learning_rate"));
  CHECK(settings_to_try(alone, 8, "rloo") != few);

  alone.axes = {{.name = "train.optimizer", .choices = {"sgd", "adam"}}};
  CHECK(settings_to_try(alone, 7, "rloo").size() == 2);  // there are only two
}

TEST_CASE("without a number of trials all combinations are tried, including settings of the estimator") {
  const auto config = config_of(head + seeds + "train.learning_rate = [0.1, 0.2, 0.3]\nestimator.temperature = [0.5, 1]\n");
  CHECK(settings_to_try(*config.tune, 7, "rloo").size() == 3);
  const auto settings = settings_to_try(*config.tune, 7, "gumbel_softmax");
  REQUIRE(settings.size() == 6);
  CHECK(std::set<TunedValues>(settings.begin(), settings.end()).size() == 6);
  CHECK(config.tune->sizes(6) == std::vector<std::size_t>{6});
  auto tune = *config.tune;
  tune.rounds = {0.1, 0.3, 1};
  CHECK(tune.sizes(9) == std::vector<std::size_t>{9, 3});  // a single remaining setting needs no trial
  CHECK(tune.sizes(20) == std::vector<std::size_t>{20, 7, 3});
  CHECK(tune.sizes(1).empty());
}

}  // namespace hardgrad::testing::tune_config_test
