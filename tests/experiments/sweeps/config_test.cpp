// A sweep's file is either fully parsed or rejected with the place of the error. --set follows the same rules.
#include "experiments/sweeps/config.hpp"

#include <nlohmann/json.hpp>

#include <doctest/doctest.h>

#include <algorithm>

#include "files.hpp"

namespace hardgrad::testing::config_test {
using namespace measurement;
using namespace sweeps;
using namespace tasks;
using namespace training;

namespace {
const std::string good = "[grid]\ntask = \"bits\"\nestimator = [\"rloo[samples=2]\", \"exact\"]\nseed = [1, 2]\n";
}

TEST_CASE("the canonical spelling leaves out the values of a preset, not the defaults that replace them") {
  const auto canonical = [](const std::string& settings) { return canonical_spec("estimator", "policy_gradient" + settings); };
  CHECK(canonical("[preset=ppo,lambda=1]") == "policy_gradient[preset=ppo,lambda=1]");
  CHECK(canonical("[preset=ppo,lambda=0.95,samples=4]") == "policy_gradient[preset=ppo]");
  CHECK(canonical("[lambda=1]") == "policy_gradient");
  CHECK(nlohmann::json::parse(settings_json("estimator", "policy_gradient[preset=ppo]"))["lambda"] == 0.95);
}

TEST_CASE("bad configurations are rejected with place, key and remedy") {
  struct Case {
    const char* text;
    const char* message;
  };
  const Case cases[] = {
      {"", "sweep.toml: is empty: a sweep names at least a task and an estimator, in a table [grid]"},
      {" \n\n", "sweep.toml: is empty: a sweep names at least a task and an estimator, in a table [grid]"},
      {"[grid]\ntask = \"bits\"\nestimator = [\n  \"rloo\",\n  \"rlo\"]\n",
       "sweep.toml:5:3: grid.estimator: unknown estimator \"rlo\" (did you mean \"rloo\"?)"},
      {"[grid]\ntask = \"bitz\"\nestimator = \"rloo\"\n",
       "sweep.toml:2:8: grid.task: unknown task \"bitz\" (did you mean \"bits\"?)"},
      {"[grid]\ntask = \"bits\"\nestimator = \"rloo[samples=1]\"\n",
       "sweep.toml:3:13: grid.estimator: rloo: samples must be at least 2, got 1"},
      {"[grid]\ntask = \"bits\"\nestimator = \"rloo[sample=3]\"\n",
       "sweep.toml:3:13: grid.estimator: rloo: unknown parameter \"sample\" (did you mean \"samples\"?)"},
      {"[grid]\ntask = \"bits\"\nmodel = \"bits[bits=x]\"\nestimator = \"rloo\"\n",
       "sweep.toml:3:9: grid.model: bits: bits must be an integer, got \"x\""},
      {"[grid]\ntask = \"bits\"\nestimator = 3\n",
       "sweep.toml:3:13: grid.estimator: must be text such as \"name[key=value]\", got 3"},
      {"[grid]\ntask = \"bits\"\nestimator = []\n", "sweep.toml:3:13: grid.estimator: must not be empty"},
      {"[grid]\ntask = \"bits\"\nestimator = [\"exact\", \"exact\"]\n",
       "sweep.toml:3:23: grid.estimator: exact is given twice"},
      {"[grid]\ntask = \"bits\"\nestimator = [\"rloo\", \"rloo[samples=4]\"]\n",
       "sweep.toml:3:22: grid.estimator: rloo is given twice"},
      {"[grid]\ntask = \"bits\"\nestimator = \"exact\"\nseed = -1\n",
       "sweep.toml:4:8: grid.seed: must be an integer of at least 0, got -1"},
      {"[grid]\ntask = \"bits\"\nestimator = \"exact\"\nseed = \"1\"\n",
       "sweep.toml:4:8: grid.seed: must be an integer of at least 0, got \"1\""},
      {"[grid]\ntask = \"bits\"\n", "sweep.toml: grid.estimator: missing; put estimator = [...] into [grid]"},
      {"[train]\nsteps = -1\n", "sweep.toml:2:9: train.steps: value must be at least 0, got -1"},
      {"[train]\nsteps = \"10\"\n", "sweep.toml:2:9: train.steps: must be an integer, got \"10\""},
      {"[train]\nsteps = 1.5\n", "sweep.toml:2:9: train.steps: must be an integer, got 1.5"},
      {"[train]\nlearning_rate = 0\n", "sweep.toml:2:17: train.learning_rate: value must be above 0, got 0"},
      {"[train]\nlearning_rate = inf\n", "sweep.toml:2:17: train.learning_rate: value must be a finite number, got \"inf\""},
      {"[train]\noptimizer = \"adm\"\n",
       "sweep.toml:2:13: train.optimizer: value must be one of sgd, rmsprop, adam, got \"adm\" (did you mean "
       "\"adam\"?)"},
      {"[train]\ndecode = 1\n", "sweep.toml:2:10: train.decode: must be true or false, got 1"},
      {"[train]\nstep = 5\n", "sweep.toml:2:1: train.step: unknown key (did you mean \"train.steps\"?)"},
      {"[train]\nsteps = [5]\n", "sweep.toml:2:9: train.steps: must be an integer, got a list"},
      {"[measure]\nat = [\"begin\"]\n",
       "sweep.toml:2:6: measure.at: must be steps, \"start\", \"end\" or shares such as \"50%\", got "
       "\"begin\""},
      {"[measure]\nat = [-3]\n",
       "sweep.toml:2:6: measure.at: must be steps, \"start\", \"end\" or shares such as \"50%\", got \"-3\""},
      {"[measure]\nreplicates = 1\n", "sweep.toml:2:14: measure.replicates: value must be at least 2, got 1"},
      {"[trian]\nsteps = 5\n", "sweep.toml:1:2: trian: unknown key (did you mean \"train\"?)"},
      {"train = 5\n", "sweep.toml:1:9: train: must be a table, got 5"},
      {"precision = \"duble\"\n",
       "sweep.toml:1:13: precision: must be float or double, got \"duble\" (did you mean \"double\"?)"},
      {"seed = -4\n", "sweep.toml:1:8: seed: must be an integer of at least 0, got -4"},
      {"name = \"a/b\"\n", "sweep.toml:1:8: name: must be a plain name, it becomes a folder"},
      {"plugins = [\"x.so\"]\n", "sweep.toml:1:12: plugins: plugin x.so: no such file; give the path of a shared library"},
      {"[zip]\ntask = [\"bits\"]\n", "sweep.toml:1:1: zip: must be written [[zip]], one block each"},
      {"[[zip]]\ntask = [\"bits\", \"not_gate\"]\nmodel = [\"bits\"]\n",
       "sweep.toml:2:8: zip.task: lists walked together must be equally long: model has 1, task has 2"},
      {"[grid]\ntask = \"bits\"\n[[zip]]\ntask = [\"bits\"]\n", "sweep.toml:4:8: zip.task: this axis is given twice"},
      {"[grid]\ntaks = \"bits\"\n", "sweep.toml:2:8: grid.taks: unknown axis (did you mean \"task\"?)"},
      {"[grid]\ntrain.stepz = [1]\n", "sweep.toml:2:15: grid.train.stepz: unknown axis (did you mean \"train.steps\"?)"},
  };
  for (const auto& c : cases) {
    INFO(c.text);
    CHECK(complaint(c.text) == c.message);
  }
  const Case with_grid[] = {
      {"[[exclude]]\nestimator = \"rlo\"\n",
       "sweep.toml:6:13: exclude.estimator: unknown estimator \"rlo\" (did you mean \"rloo\"?)"},
      {"[[exclude]]\ntrain.steps = 3\n",
       "sweep.toml:6:15: exclude.train.steps: no such axis in this sweep (there are: estimator, model, seed, "
       "task)"},
      {"[[exclude]]\n", "sweep.toml:5:1: exclude: must name at least one axis"},
      {"[[override]]\nwhen = { seed = 1 }\n", "sweep.toml:5:1: override: needs both when = {...} and set = {...}"},
      {"[[override]]\nwhen = { seed = 1 }\nset = { train.steps = -1 }\n",
       "sweep.toml:7:23: override.set.train.steps: value must be at least 0, got -1"},
      {"[[override]]\nwhen = { seed = 1 }\nset = { train.stps = 1 }\n",
       "sweep.toml:7:22: override.set.train.stps: unknown setting (did you mean \"train.steps\"?)"},
      {"[[override]]\nwehn = { seed = 1 }\n", "sweep.toml:6:1: override.wehn: unknown key (did you mean \"when\"?)"},
  };
  for (const auto& c : with_grid) {
    INFO(c.text);
    CHECK(complaint(good + c.text) == c.message);
  }
  CHECK(complaint(good) == "");
}

TEST_CASE("invalid TOML is rejected with its place, a missing file is an input error") {
  const auto message = complaint("[grid\ntask = 1\n");
  INFO(message);
  CHECK(message.starts_with("sweep.toml:1:"));
  CHECK(message.find('\n') == std::string::npos);
  CHECK(complaint("a = 1\na = 2\n").starts_with("sweep.toml:2:"));
  CHECK(complaint("name = \"\xff\"\n").starts_with("sweep.toml:1:"));
  CHECK_THROWS_AS(read_config("/nonexistent/sweep.toml"), InputError);
  CHECK_THROWS_AS(read_config("/tmp"), InputError);
}

TEST_CASE("--set overrides anything and is checked by the same rules") {
  const auto config = config_of(good + "[train]\nsteps = 5\n[[override]]\nwhen = { seed = 1 }\nset = { train.steps = 7 }\n",
                                {"train.steps=9", "train.optimizer=sgd", "seed=12", "grid.estimator=rloo[samples=8]",
                                 "grid.train.learning_rate=[0.1, 0.01]", "measure.at=[\"start\", 3]", "name=other"});
  CHECK(config.base.train.steps == 9);
  CHECK(config.overrides.at(0).set.empty());  // it would have overridden --set
  CHECK(config.base.train.optimizer.rule == UpdateRule::sgd);
  CHECK(config.base.measure_at == "start;3");
  CHECK(config.seed == 12);
  CHECK(config.name == "other");
  bool rate = false, estimator = false;
  for (const auto& group : config.axes)
    for (const auto& axis : group) {
      if (axis.name == "train.learning_rate") rate = axis.values == std::vector<std::string>{"0.1", "0.01"};
      if (axis.name == "estimator") estimator = axis.values == std::vector<std::string>{"rloo[samples=8]"};
    }
  CHECK(rate);
  CHECK(estimator);

  CHECK(complaint(good, {"train.steps=-1"}) == "--set train.steps: train.steps: value must be at least 0, got -1");
  CHECK(complaint(good, {"train.stps=1"}) == "--set train.stps: train.stps: unknown key (did you mean \"train.steps\"?)");
  CHECK(complaint(good, {"trian.steps=1"}) == "--set trian.steps: trian: unknown key (did you mean \"train\"?)");
  CHECK(complaint(good, {"grid.estimator=[\"rlo\"]"}) ==
        "--set grid.estimator: grid.estimator: unknown estimator \"rlo\" (did you mean \"rloo\"?)");
  CHECK(complaint(good, {"train.steps"}) == "--set: expected a.b=VALUE, got \"train.steps\"");
  CHECK(complaint(good, {"zip.task=1"}) == "--set zip.task: [[zip]] blocks can only be changed in the file");
  CHECK(complaint(good + "train.steps = [1, 2]\n", {"train.steps=3"}) ==
        "--set train.steps: it is an axis of the sweep; use --set grid.train.steps=...");
  // A quoted axis and a nested one are the same.
  CHECK(config_of(good + "\"train.steps\" = [1, 2]\n", {"grid.train.steps=3"}).axes.size() == 4);
}

TEST_CASE("every setting can be set, but only within its range") {
  for (const auto& setting : settings_table()) {
    INFO(setting.path);
    CellSettings cell;
    CHECK(setting.get(cell) == setting.info.fallback);
    setting.set(cell, setting.info.fallback);
    CHECK(setting.get(cell) == setting.info.fallback);
    CHECK_FALSE(setting.info.help.empty());
    CHECK(checked_setting(setting, to_string(setting.info.fallback)) == setting.info.fallback);
    if (setting.info.low > -1e18) CHECK_THROWS_AS(checked_setting(setting, "-5"), UsageError);
  }
}

TEST_CASE("points of measurement") {
  CellSettings cell;
  cell.train.steps = 200;
  cell.measure_at = "start;50%;end;100;7";
  CHECK(cell.resolved().measure_at == std::vector<int>{0, 7, 100, 200});
  CHECK(cell.resolved().optimizer.total_steps == 200);
  cell.measure_at = "";
  CHECK(cell.resolved().measure_at.empty());
  cell.measure_at = "201";
  CHECK_THROWS_AS(cell.resolved(), UsageError);
}

TEST_CASE("the echoed configuration is the same sweep") {
  const auto config = config_of("name = \"e\"\nseed = 3\nprecision = \"double\"\n" + good +
                                    "train.learning_rate = [0.1, 0.001]\n[[zip]]\ntrain.steps = [4, "
                                    "8]\nmeasure.at = [\"end\", [0, 3]]\n"
                                    "[[exclude]]\nestimator = \"ex*\"\nseed = 2\n[[override]]\nwhen = { seed "
                                    "= [1, 2] }\nset = { train.batch = 2 }\n",
                                {"train.clip=0.3"});
  const auto again = config_of(config.echo);
  CHECK(again.echo == config.echo);
  CHECK(again.base.train.optimizer.clip == 0.3);
  CHECK(config.echo.find("\nclip = 0.3\n") != std::string::npos);  // not 0.29999999999999999
  CHECK(again.axes.size() == config.axes.size());
  CHECK(again.excludes.size() == 1);
  CHECK(again.overrides.size() == 1);
}

TEST_CASE("a text with any characters is the same as an axis and as a setting") {
  for (const auto* name : {"train.start", "train.anneal", "train.monitor", "train.apart"})
    for (const std::string text : {"soft[linear_start=5]", "a, b.h5", "lambda_e=0,x=1", ""}) {
      const auto config = config_of(good + "[[zip]]\n" + name + " = [\"" + text + "\"]\n");
      const auto found =
          std::find_if(config.axes.begin(), config.axes.end(), [&](const auto& group) { return group.front().name == name; });
      REQUIRE(found != config.axes.end());
      const auto& axis = found->front();
      CHECK(axis.values == std::vector{text});
      CHECK(checked_setting(*find_setting(name), text) == Value(text));
    }
}

TEST_CASE("patterns") {
  CHECK(pattern_matches("rloo", "rloo[samples=4]"));
  CHECK(pattern_matches("rloo*", "rloo[samples=4]"));
  CHECK(pattern_matches("*samples=?]", "rloo[samples=4]"));
  CHECK(pattern_matches("rloo[samples=4]", "rloo[samples=4]"));
  CHECK_FALSE(pattern_matches("rlo", "rloo"));
  CHECK_FALSE(pattern_matches("rloo[samples=2]", "rloo[samples=4]"));
  CHECK_FALSE(pattern_matches("exact", "exact_marginal"));
}

TEST_CASE("settings as JSON, with any bytes in a text") {
  CHECK(settings_json("task", "qa[path=a\xC6]").find("\"path\":\"a\xEF\xBF\xBD\"") != std::string::npos);
  CHECK(settings_json("task", "qa[path=a\xC3\x86]").find("\"path\":\"a\xC3\x86\"") != std::string::npos);
}

}  // namespace hardgrad::testing::config_test
