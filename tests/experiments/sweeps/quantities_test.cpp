// The table of quantities: every variable of a merged result has a row, and the facts of the row or of the task.
#include "experiments/measurement/quantities.hpp"

#include <doctest/doctest.h>

#include <set>

#include "experiments/storage/result_files.hpp"
#include "runs.hpp"

namespace hardgrad::testing::quantities_test {
using namespace measurement;
using storage::text;

const std::string every_kind = R"(
name = "toy"
seed = 3
[[zip]]
task = ["puzzle[kind=parity,size=4]", "answers", "bits"]
model = ["ponderer[hidden=4,steps=3]", "writer", "bits"]
[grid]
estimator = ["rloo"]
train.learning_rate = [0.01, 0.1]
seed = [1]
[train]
steps = 2
batch = 2
log_every = 1
evaluate_every = 1
evaluate_examples = 4
[measure]
method = "sampled"
at = ["end"]
replicates = 8
batch = 2
)";

storage::Archive merged(const std::string& sweep) {
  TestFolder folder;
  const auto out = folder / "out";
  run(out, {}, sweep);
  const auto cells = cells_in(out);
  std::vector<storage::CellRecord> records;
  for (const auto& hash : cells.hashes()) records.push_back(cells.read(hash));
  return storage::merge(records);
}

TEST_CASE("the table has each name once, and names only quantities that it has") {
  std::set<std::string_view> names;
  for (const auto& row : quantities()) {
    CHECK_MESSAGE(names.insert(row.name).second, row.name);
    if (*row.exact_twin) CHECK_MESSAGE(find_quantity(row.exact_twin)->measured, row.name);
  }
  for (std::string_view name : {"variance", "heldout_elbo", "metric_x", "variance_interval", "cost_x"})
    CHECK_MESSAGE(find_quantity(name), name);
  CHECK_FALSE(find_quantity("another"));
}

TEST_CASE("every variable of a result has a row, and its facts") {
  const auto archive = merged(every_kind);
  const auto& data = archive.group("");
  std::size_t metrics = 0, axes = 0, others = 0;
  for (const auto& variable : data.variables) {
    const auto fact = [&](const char* name) { return text(variable.attributes, name); };
    if (!fact("grid_axis").empty() && variable.name != "seed") {
      ++axes;
      continue;
    }
    const auto* row = find_quantity(variable.name);
    REQUIRE_MESSAGE(row, variable.name);
    CHECK_MESSAGE(!fact("long_name").empty(), variable.name);
    if (fact("family") == "metric") {
      ++metrics;
      continue;
    }
    ++others;
    CHECK_MESSAGE(fact("better") == (row->better == Better::lower    ? "lower"
                                     : row->better == Better::higher ? "higher"
                                                                     : ""),
                  variable.name);
    CHECK_MESSAGE(fact("exact_twin") == row->exact_twin, variable.name);
    CHECK_MESSAGE(fact("interval").empty() == (row->interval == Bounds::none), variable.name);
    if (row->measured) CHECK_MESSAGE(storage::number(variable.attributes, "digits") == 3, variable.name);
  }
  CHECK(metrics == 9);  // puzzle's seven, answers' two
  CHECK(axes == 4);
  CHECK(others >= 70);
  for (const auto& variable : data.variables)  // an interval is of a quantity that declares one
    if (text(variable.attributes, "family") == "interval")
      CHECK_MESSAGE(find_quantity(text(variable.attributes, "key"))->interval != Bounds::none, variable.name);
}

TEST_CASE("metrics say what their tasks declare") {
  const auto archive = merged(every_kind);
  const auto& data = archive.group("");
  const auto fact = [&](const char* metric, const char* name) { return text(data.variable(metric)->attributes, name); };
  for (const auto* name : {"metric_steps", "metric_steps_easier", "metric_steps_harder"}) {
    CHECK_MESSAGE(fact(name, "better") == "lower", name);
    CHECK_MESSAGE(fact(name, "units") == "step", name);
  }
  CHECK(fact("metric_length", "better") == "lower");
  CHECK(fact("metric_length", "units") == "words");
  CHECK(fact("heldout_expected_loss", "better") == "lower");
  CHECK(storage::number(data.variable("heldout_expected_loss")->attributes, "preference") == 1);
  CHECK(fact("metric_accuracy", "better") == "higher");
  CHECK(storage::number(data.variable("metric_accuracy")->attributes, "share") == 1);
  CHECK_FALSE(storage::find(data.variable("metric_length")->attributes, "share"));
}

TEST_CASE("the precision is a fact of a result") {
  for (const std::string precision : {"float", "double"}) {
    const auto archive = merged("precision = \"" + precision + "\"\n" + every_kind);
    const auto& facts = archive.group("").attributes;
    CHECK(text(facts, "precision") == precision);
    CHECK(storage::number(facts, "rounding") == 64 * std::pow(2, precision == "double" ? -52 : -23));
  }
}

}  // namespace hardgrad::testing::quantities_test
