// Checking and exporting.
#include "experiments/storage/cell.hpp"
#include "experiments/storage/result_files.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "core/support/error.hpp"
#include "folder.hpp"
#include "sample.hpp"

namespace hardgrad::testing::check_test {
using namespace measurement;
using namespace storage;
using namespace tasks;
using namespace training;

TEST_CASE("CSV tables have one row per run and label, and numbers that read back exactly") {
  Folder folder;
  auto records = sample_sweep(1);
  records[0].log = "two\nlines, \"quoted\"";
  records[1].log = "=cmd|' /C calc'!A0", records[2].log = "@SUM(A1)", records[3].log = "-0.5", records[4].log = "+1+2";
  write_merged(folder / "r.h5", records);
  const auto written = export_csv(folder / "r.h5", folder / "out/csv");
  CHECK(written.size() == 7);
  CHECK(slurp(folder / "out/csv/configuration.toml") == records[0].configuration);
  const auto count = [](const std::string& s) { return std::count(s.begin(), s.end(), '\n'); };

  const auto runs = slurp(folder / "out/csv/runs.csv");
  CHECK(count(runs) == 24 + 1 + 1);  // runs, the header, the line break inside quotes
  CHECK(runs.find("\"two\nlines, \"\"quoted\"\"\"") != std::string::npos);
  CHECK(runs.find("skipped") != std::string::npos);
  // Text that a spreadsheet would take for a formula gets an apostrophe, a number none.
  for (const char* text : {",'=cmd|", ",'@SUM(A1)", ",-0.5", ",'+1+2"}) CHECK(runs.find(text) != std::string::npos);

  const auto training = slurp(folder / "out/csv/training.csv");
  CHECK(count(training) == 1 + 23 * 31);  // one run was skipped
  std::istringstream lines(training);
  std::string header, row;
  std::getline(lines, header);
  std::getline(lines, row);
  CHECK(header ==
        "run,step,seed,estimator,model,optimizer.learning_rate,task,train_loss,train_seconds,gradient_norm,"
        "train_rows,train_attention_values,train_cpu_seconds");
  CHECK(row.find("0,0,1,exact,bits,0.003,bits,") == 0);
  CHECK(std::stod(row.substr(28)) == records[0].result.log[0].loss);

  const auto measurements = slurp(folder / "out/csv/measurements.csv");
  CHECK(measurements.find("variance_interval_low,variance_interval_high") != std::string::npos);
  CHECK(measurements.find("more than the cap") != std::string::npos);  // skipped measurements are listed with their reason
  CHECK(count(measurements) == 1 + 23 * 3);
}

TEST_CASE("exporting reports files that it cannot read or write") {
  Folder folder;
  spill(folder / "a.cells", cell_bytes(sample_cell("qa", "m", "nvil", 1, 1, 0), 1));
  CHECK(message<InputError>([&] { export_csv(folder / "a.cells", folder / "csv"); }).find("merge them first") !=
        std::string::npos);
  write_merged(folder / "r.h5", sample_sweep(1));
  CHECK(message<UsageError>([&] { export_csv(folder / "r.h5", folder / "a.cells"); }).find("cannot be created") !=
        std::string::npos);
}

TEST_CASE("files of another version and incomplete files are named") {
  Folder folder;
  Archive archive{.kind = "sculpture"};
  archive.groups.push_back({"", {}});
  write_archive(folder / "odd.h5", archive, false);
  CHECK(check_file(folder / "odd.h5").at(0).find("unknown kind") != std::string::npos);
  archive.kind = "result";
  write_archive(folder / "bare.h5", archive, false);
  CHECK(check_file(folder / "bare.h5").at(0).find("no axis run") != std::string::npos);
  archive.status = "";
  write_archive(folder / "unfinished.h5", archive, false);
  CHECK(check_file(folder / "unfinished.h5").at(0).find("is incomplete") != std::string::npos);
}

}  // namespace hardgrad::testing::check_test
