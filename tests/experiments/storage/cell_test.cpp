// Cells are written to a file and read back.
#include "experiments/storage/cell.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "core/support/error.hpp"
#include "experiments/storage/check.hpp"
#include "folder.hpp"
#include "sample.hpp"

namespace hardgrad::testing::cell_test {
using namespace measurement;
using namespace storage;
using namespace tasks;
using namespace training;

namespace {

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

void check_same(const CellRecord& a, const CellRecord& b) {
  CHECK(a.axes == b.axes);
  CHECK(a.status == b.status);
  CHECK(a.reason == b.reason);
  CHECK(a.log == b.log);
  CHECK(a.plan_hash == b.plan_hash);
  CHECK(a.cell_hash == b.cell_hash);
  CHECK(a.configuration == b.configuration);
  CHECK(a.run_settings == b.run_settings);
  CHECK(a.checkpoint == b.checkpoint);
  CHECK(a.costs == b.costs);
  CHECK(a.provenance == b.provenance);
  CHECK(a.result.seconds == b.result.seconds);
  CHECK(a.result.rows == b.result.rows);
  CHECK(a.result.attention_values == b.result.attention_values);
  REQUIRE(a.result.log.size() == b.result.log.size());
  for (std::size_t i = 0; i < a.result.log.size(); ++i) {
    CHECK(a.result.log[i].step == b.result.log[i].step);
    CHECK(same(a.result.log[i].loss, b.result.log[i].loss));
    CHECK(a.result.log[i].seconds == b.result.log[i].seconds);
    CHECK(a.result.log[i].gradient_norm == b.result.log[i].gradient_norm);
    CHECK(same(a.result.log[i].rows, b.result.log[i].rows));
    CHECK(same(a.result.log[i].attention_values, b.result.log[i].attention_values));
    CHECK(same(a.result.log[i].cpu_seconds, b.result.log[i].cpu_seconds));
  }
  REQUIRE(a.result.evaluations.size() == b.result.evaluations.size());
  for (std::size_t i = 0; i < a.result.evaluations.size(); ++i) {
    CHECK(a.result.evaluations[i].step == b.result.evaluations[i].step);
    CHECK(a.result.evaluations[i].losses == b.result.evaluations[i].losses);
    CHECK(a.result.evaluations[i].metrics == b.result.evaluations[i].metrics);
  }
  REQUIRE(a.result.measurements.size() == b.result.measurements.size());
  for (std::size_t i = 0; i < a.result.measurements.size(); ++i) {
    CHECK(a.result.measurements[i].step == b.result.measurements[i].step);
    const auto &m = a.result.measurements[i].measurement, &n = b.result.measurements[i].measurement;
    CHECK(m.estimator == n.estimator);
    CHECK(m.target == n.target);
    CHECK(m.status == n.status);
    CHECK(m.reason == n.reason);
    CHECK(same(m.variance, n.variance));
    CHECK(same(m.squared_bias, n.squared_bias));
    CHECK(same(m.outcomes, n.outcomes));
    CHECK(same(m.work_normalised_variance, n.work_normalised_variance));
    CHECK(same(m.attention_entropy, n.attention_entropy));
    CHECK(m.bias_against == n.bias_against);
    CHECK(m.intervals == n.intervals);
    CHECK(m.variance_by_group == n.variance_by_group);
    CHECK(m.mean == n.mean);
    CHECK(m.variances == n.variances);
  }
}

}  // namespace

TEST_CASE("a complete cell is read back unchanged") {
  Folder folder;
  for (const auto& record : sample_sweep(2)) {
    write_cell(folder / "cell.h5", record);
    check_same(read_cell(folder / "cell.h5"), record);
    CHECK(check_file(folder / "cell.h5").empty());
    const auto summary = peek_cell(folder / "cell.h5");
    CHECK(summary.plan_hash == record.plan_hash);
    CHECK(summary.cell_hash == record.cell_hash);
    CHECK(summary.status == record.status);
  }
}

TEST_CASE("odd cells: empty, odd names, NaN, repeated steps, large means") {
  Folder folder;
  CellRecord record;
  record.axes = {{"seed", "0xffffffffffffffff"}, {"a b/c", "x"}, {"status", "y"}, {"rows", "z"}};
  record.cell_hash = "h";
  record.provenance = {{"cpu", "c"}};
  write_cell(folder / "cell.h5", record);
  check_same(read_cell(folder / "cell.h5"), record);

  record.result.evaluations = {{3, {{"a/b", 1.0}}, {{"token accuracy", 0.5}}}};
  record.result.log = {{1, NAN, 0, 0}, {2, INFINITY, 0, 0}};
  write_cell(folder / "cell.h5", record);
  check_same(read_cell(folder / "cell.h5"), record);

  record.result.log = {{5, 1, 0, 0}, {2, 2, 0, 0}, {5, 3, 0, 0}};
  Measurement big;
  big.mean.assign(1001, 1.0);
  record.result.measurements = {{4, big}, {0, big}, {4, big}};
  write_cell(folder / "cell.h5", record);
  const auto back = read_cell(folder / "cell.h5");
  REQUIRE(back.result.log.size() == 2);
  CHECK(back.result.log[1].loss == 3);
  REQUIRE(back.result.measurements.size() == 2);
  CHECK(back.result.measurements[0].measurement.mean.empty());
}

TEST_CASE("a cell is done only if plan and hash match") {
  Folder folder;
  const auto record = sample_cell("qa", "memory_reader", "nvil", 1, 2, 0);
  write_cell(folder / "cell.h5", record);
  CHECK(check_cell(folder / "cell.h5", record.plan_hash, record.cell_hash) == "");
  CHECK(check_cell(folder / "cell.h5", "other").find("another plan") != std::string::npos);
  CHECK(check_cell(folder / "cell.h5", "", "other").find("another cell") != std::string::npos);
  CHECK(check_cell(folder / "none.h5").find("No such file") != std::string::npos);
}

TEST_CASE("a seed that is not a number is named") {
  Folder folder;
  auto record = sample_cell("qa", "memory_reader", "nvil", 1, 2, 0);
  for (const char* bad : {"", "-1", "1.5", "abc", "99999999999999999999"}) {
    record.axes["seed"] = bad;
    CHECK(message<InputError>([&] { write_cell(folder / "cell.h5", record); }).find(bad) != std::string::npos);
  }
}

}  // namespace hardgrad::testing::cell_test
