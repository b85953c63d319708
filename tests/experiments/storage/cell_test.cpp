// Cells are stored and read back.
#include "experiments/storage/cell_store.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <utility>

#include "core/support/error.hpp"
#include "experiments/storage/result_files.hpp"
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
  CHECK(a.run_settings == b.run_settings);
  CHECK(a.checkpoint == b.checkpoint);
  CHECK(a.costs == b.costs);
  CHECK(a.precision == b.precision);
  CHECK(a.result.metrics == b.result.metrics);
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
    REQUIRE(a.result.evaluations[i].losses.size() == b.result.evaluations[i].losses.size());
    for (const auto& [name, value] : a.result.evaluations[i].losses)
      CHECK(same(value, b.result.evaluations[i].losses.at(name)));
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

TEST_CASE("a complete cell is read back unchanged, by any process") {
  Folder folder;
  CellStore ours(folder.string());
  auto sweep = sample_sweep(2);
  for (auto& record : sweep) record.checkpoint_hash = "0123456789abcdef";
  for (const auto& record : sweep) ours.append(record);
  const CellStore theirs(folder.string());
  CHECK(theirs.files() == 1);
  CHECK(theirs.hashes().size() == sweep.size());
  for (const auto* cells : {&std::as_const(ours), &theirs})
    for (const auto& record : sweep) {
      check_same(cells->read(record.cell_hash), record);
      const auto entry = cells->find(record.cell_hash);
      REQUIRE(entry);
      CHECK(entry->checksum_ok);
      CHECK(entry->cell.plan_hash == record.plan_hash);
      CHECK(entry->cell.status == record.status);
      CHECK(entry->cell.attempt == 1);
      CHECK(entry->cell.checkpoint == record.checkpoint);
      CHECK(check_file(entry->path).empty());
    }
  CHECK(message<InputError>([&] { theirs.read("none"); }).find("holds no cell none") != std::string::npos);
}

TEST_CASE("odd cells: empty, odd names, NaN, repeated steps, large means") {
  CellRecord record;
  record.axes = {{"seed", "0xffffffffffffffff"}, {"a b/c", "x"}, {"status", "y"}, {"rows", "z"}};
  record.cell_hash = "h";
  record.provenance = {{"cpu", "c"}};
  const auto stored = [](const CellRecord& r) { return cell_in(cell_bytes(r, 1), "file"); };
  check_same(stored(record), record);

  record.result.evaluations = {{3, {{"elbo", 1.0}}, {{"token accuracy", 0.5}, {"a/b", 1.0}}}};
  record.result.evaluations.push_back({4, {{"elbo", NAN}, {"soft", 2}}, {}});  // a NaN is no missing number
  record.result.log = {{1, NAN, 0, 0}, {2, INFINITY, 0, 0}};
  check_same(stored(record), record);

  record.result.log = {{5, 1, 0, 0}, {2, 2, 0, 0}, {5, 3, 0, 0}};
  Measurement big;
  big.mean.assign(1001, 1.0);
  record.result.measurements = {{4, big}, {0, big}, {4, big}};
  const auto back = stored(record);
  REQUIRE(back.result.log.size() == 2);
  CHECK(back.result.log[1].loss == 3);
  REQUIRE(back.result.measurements.size() == 2);
  CHECK(back.result.measurements[0].measurement.mean.empty());
  CHECK(cell_bytes(back, 1) == cell_bytes(record, 1));
}

TEST_CASE("a trivial cell takes three kilobytes, and a step fewer than its six numbers") {
  auto record = sample_cell("qa", "memory_reader", "nvil", 1, 2, 0);
  const auto bytes = cell_bytes(record, 1).size(), steps = record.result.log.size();
  record.result.log.resize(1);
  record.result.evaluations.clear();
  record.result.measurements.resize(1);
  CHECK(cell_bytes(record, 1).size() < 3000);
  CHECK(bytes < 3000 + 48 * steps + 8 * 40 * record.result.measurements.size() + 2000);
}

TEST_CASE("the last attempt at a cell counts, in whichever file it is") {
  Folder folder;
  auto record = sample_cell("qa", "memory_reader", "nvil", 1, 2, 0);
  const auto hash = record.cell_hash;
  CellStore first(folder.string()), second(folder.string());
  record.status = CellStatus::failed;
  first.append(record);
  CHECK_FALSE(second.find(hash));
  second.refresh();
  CHECK(second.find(hash)->cell.status == CellStatus::failed);
  record.status = CellStatus::ok;
  second.append(record);
  CHECK(second.find(hash)->cell.attempt == 2);
  first.refresh();
  CHECK(first.find(hash)->cell.status == CellStatus::ok);
  const CellStore third(folder.string());
  CHECK(third.files() == 2);
  CHECK(third.read(hash).status == CellStatus::ok);
  std::filesystem::remove(third.find(hash)->path);
  first.refresh();
  CHECK(first.find(hash)->cell.status == CellStatus::failed);
}

TEST_CASE("shares without a common cell do not read each other's files") {
  Folder folder;
  const auto record = sample_cell("qa", "memory_reader", "nvil", 1, 2, 0);
  CellStore(folder.string(), {"a", 3, 4}).append(record);
  for (const auto& [shard, reads] : {std::pair{Shard{}, true},
                                     {Shard{"a", 3, 4}, true},
                                     {Shard{"a", 1, 4}, false},
                                     {Shard{"b", 1, 4}, true},  // numbers mean other cells there
                                     {Shard{"a", 1, 2}, true},  // 1, 3, 5 ...
                                     {Shard{"a", 2, 2}, false},
                                     {Shard{"a", 1, 3}, true},
                                     {Shard{"a", 5, 6}, true},
                                     {Shard{"a", 4, 6}, false}})
    CHECK_MESSAGE(CellStore(folder.string(), shard).find(record.cell_hash).has_value() == reads,
                  shard.numbering << shard.shard << "/" << shard.shards);
  CellStore(folder.string()).append(record);
  CHECK(CellStore(folder.string(), {"a", 1, 4}).find(record.cell_hash)->cell.attempt == 2);
}

TEST_CASE("a seed that is not a number is named") {
  auto record = sample_cell("qa", "memory_reader", "nvil", 1, 2, 0);
  for (const char* bad : {"", "-1", "1.5", "abc", "99999999999999999999"}) {
    record.axes["seed"] = bad;
    CHECK(message<InputError>([&] { cell_bytes(record, 1); }).find(bad) != std::string::npos);
  }
}

}  // namespace hardgrad::testing::cell_test
