// Merging: the union of the runs' data, labelled, with NaN for missing values.
#include "experiments/storage/result_files.hpp"

#include <doctest/doctest.h>
#include <malloc.h>

#include <cmath>

#include "core/support/error.hpp"
#include "experiments/storage/cell.hpp"
#include "folder.hpp"
#include "same.hpp"
#include "sample.hpp"

namespace hardgrad::testing::merge_test {
using namespace measurement;
using namespace storage;
using namespace tasks;
using namespace training;

TEST_CASE("costs have their units") {
  auto record = sample_cell("bits", "bits", "rloo[samples=4]", 1, 1, 0);
  record.costs = {{"cpu_seconds", 1.5}, {"start_cpu_seconds", 0}, {"tape_bytes", 4096}, {"missed_hints", 2}, {"start_rows", 1}};
  const auto archive = merge({record});
  const auto& data = archive.group("");
  for (const auto& [name, units] : {std::pair{"cost_cpu_seconds", "s"},
                                    {"cost_start_cpu_seconds", "s"},
                                    {"cost_tape_bytes", "bytes"},
                                    {"cost_missed_hints", "1"},
                                    {"cost_start_rows", "1"}})
    CHECK_MESSAGE(text(data.variable(name)->attributes, "units") == units, name);
}

TEST_CASE("numbers are at the positions of their labels") {
  auto first = sample_cell("qa", "memory_reader", "nvil", 1, 2, 0);
  auto second = sample_cell("bits", "bits", "rloo[samples=4]", 2, 1, 0);
  first.result.log = {{10, 1.5, 0.1, 3}, {30, 1.25, 0.3, 2}};
  second.result.log = {{20, 7, 0.2, 4}};
  second.result.evaluations = {{50, {{"elbo", 2}}, {{"accuracy", 0.75}}}};
  second.result.measurements.erase(second.result.measurements.begin());
  second.axes["extra"] = "yes";
  const auto archive = merge({first, second});
  const auto& data = archive.group("");
  CHECK(std::get<std::vector<std::int64_t>>(data.axis("step")->labels) == std::vector<std::int64_t>{10, 20, 30});
  const auto& loss = *data.values<double>("train_loss");
  CHECK(loss[0] == 1.5);
  CHECK(std::isnan(loss[1]));
  CHECK(loss[2] == 1.25);
  CHECK(std::isnan(loss[3]));
  CHECK(loss[4] == 7);
  CHECK(data.values<double>("heldout_elbo")->back() != data.values<double>("heldout_elbo")->front());
  // evaluation steps 0, 50, 100, 200, 300
  CHECK(data.values<double>("heldout_elbo")->at(5 + 1) == 2);
  CHECK(data.values<double>("metric_accuracy")->at(5 + 1) == 0.75);
  CHECK(*data.values<std::string>("extra") == std::vector<std::string>{"", "yes"});
  CHECK(*data.values<std::int64_t>("seed") == std::vector<std::int64_t>{1, 2});
  CHECK(data.values<std::string>("seed_hex")->at(1) == "0x0000000000000002");
  CHECK(data.values<std::uint8_t>("measurement_status")->at(3) == 2);
  CHECK(std::isnan(data.values<double>("variance")->at(3)));
  const auto& m = second.result.measurements[0].measurement;  // at step 150: index 1 of run 1
  CHECK(data.values<double>("variance")->at(4) == m.variance);
  CHECK(data.variable("variance_interval")->axes == std::vector<std::string>{"run", "measurement_step", "bound"});
  CHECK(data.values<double>("variance_interval")->at(2 * 4) == m.intervals.at("variance")[0]);
  CHECK(data.values<double>("variance_interval")->at(2 * 4 + 1) == m.intervals.at("variance")[1]);
  CHECK(std::get<std::vector<std::string>>(data.axis("bound")->labels) == std::vector<std::string>{"low", "high"});
  CHECK(std::get<std::vector<std::string>>(data.axis("parameter_group")->labels) ==
        std::vector<std::string>{"decoder", "encoder"});
  CHECK(data.values<double>("variance_by_group")->at(2 * 4 + 1) == m.variance_by_group.at("encoder"));
  CHECK(data.values<double>("bias_against")->at(2 * 4 + 1) == m.bias_against.at("marginal_likelihood"));
  CHECK(text(data.attributes, "coordinates").find("task") != std::string::npos);
  CHECK(text(data.attributes, "blas_kernel") == "SkylakeX");
  CHECK(data.values<std::string>("configuration")->at(0) == first.configuration);
}

TEST_CASE("merging stored cells equals merging the cells") {
  Folder folder;
  const auto records = sample_sweep(2);
  std::vector<CellRecord> read;
  for (const auto& record : records) {
    read.push_back(cell_in(cell_bytes(record, 1), "file"));
    read.back().configuration = record.configuration;  // from the plan
  }
  auto a = merge(records), b = merge(read);
  for (auto* archive : {&a, &b})
    std::erase_if(archive->groups[0].data.attributes, [](const auto& x) { return x.first == "created_at"; });
  CHECK(same(a, b));
  write_merged(folder / "merged.h5", records);
  CHECK(check_file(folder / "merged.h5").empty());
}

TEST_CASE("provenance that differs is kept per run") {
  auto first = sample_cell("qa", "memory_reader", "nvil", 1, 2, 0), second = first;
  second.cell_hash = "other";
  second.provenance["cpu"] = "another processor";
  const auto archive = merge({first, second});
  CHECK(text(archive.group("").attributes, "cpu") == "various");
  CHECK(archive.group("").values<std::string>("provenance_cpu")->at(1) == "another processor");
}

TEST_CASE("cells of different sweeps are rejected, missing ones are reported") {
  Folder folder;
  auto first = sample_cell("qa", "memory_reader", "nvil", 1, 2, 0), second = first;
  CHECK(message<InputError>([&] { merge({first, second}); }).find("twice") != std::string::npos);
  second.cell_hash = "other";
  second.plan_hash = "another";
  CHECK(message<InputError>([&] { merge({first, second}); }).find("different plans") != std::string::npos);
  CHECK_THROWS_AS(merge({}), InputError);
  write_merged(folder / "part.h5", {first}, {.configuration = "", .plan_hash = "", .planned = 3});
  const auto problems = check_file(folder / "part.h5");
  REQUIRE(problems.size() == 1);
  CHECK(problems[0].find("1 of 3 cells") != std::string::npos);
}

TEST_CASE("cells without any result merge") {
  auto records = sample_sweep(1);
  for (auto& record : records) record.result = {};
  const auto archive = merge(records);
  CHECK_FALSE(archive.group("").axis("step"));
  CHECK(archive.group("").axis("run")->size() == records.size());
}

namespace {

std::size_t allocated() {
  const auto info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

}  // namespace

TEST_CASE("merging holds one block of cells, and only the data that the result contains") {
  constexpr std::size_t cells = 100, large = 1 << 20;
  const auto before = allocated();
  const std::string control(large, 'c');
  if (allocated() - before < large) {
    MESSAGE("skipped: this allocator does not report allocated memory");
    return;
  }
  Folder folder;
  std::size_t most = 0;
  const auto start = allocated();
  const auto each = [&](const auto& f) {
    for (std::size_t i = 0; i < cells; ++i) {
      auto record = sample_cell("qa", "memory_reader", "nvil", 1, 2, 0);
      record.cell_hash = std::to_string(i);
      record.log.assign(large, 'l');
      record.configuration.assign(large, 'x');
      record.identity.assign(large, 'x');
      record.provenance["flags"].assign(large, 'x');
      for (auto& point : record.result.measurements) point.measurement.mean.assign(large / sizeof(double), 1);
      f(std::move(record));
      most = std::max(most, allocated() - start);
    }
  };
  CHECK(write_merged(folder / "merged.h5", each, {.block = 2}) == cells);
  CHECK(most < cells / 2 * large);  // two records and their columns, and the cache of HDF5, which is at most 32 MB
  const auto merged = read_archive(folder / "merged.h5", "result");
  CHECK(merged.group("").values<std::string>("configuration")->at(0).size() == large);
  CHECK(merged.group("").values<std::string>("log")->back().size() == large);
}

TEST_CASE("blocks of any size give the same result as all cells at once") {
  Folder folder;
  auto records = sample_sweep(2);
  for (std::size_t i = 0; i < 3; ++i) {
    records[i].tuning = TuningRole{.round = 1, .setting = static_cast<int>(i), .estimator = "rloo"};
    records[i + 3].provenance["cpu"] = "processor " + std::to_string(i);
  }
  const auto content = [](Archive archive) {
    std::erase_if(archive.groups[0].data.attributes, [](const auto& x) { return x.first == "created_at"; });
    return archive;
  };
  const auto expected = content(merge(records));
  for (const std::size_t block : {1, 2, 5, 1000}) {
    const auto path = folder / ("merged" + std::to_string(block) + ".h5");
    CHECK(write_merged(path, records, {.block = block}) == records.size());
    CHECK(same(content(read_archive(path, "result")), expected));
  }
}

}  // namespace hardgrad::testing::merge_test
