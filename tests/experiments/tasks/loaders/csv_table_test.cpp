// Tables in CSV files: valid ones, and every error.
#include "experiments/tasks/loaders/csv_table.hpp"

#include "tests/experiments/tasks/support.hpp"

namespace hardgrad::testing::csv_table_test {
using namespace tasks;

TEST_CASE("tables are read: plain, gzipped, with quotes, spaces, empty lines and both line endings") {
  Folder folder;
  const std::string text = "\xEF\xBB\xBFNation, \"Gold, total\",\"a \"\"quote\"\"\"\r\n1,2.50,-3e1\r\n\r\n +4 ,\"5\" , .125\n";
  for (const auto& path : {folder.write("a.csv", text), folder.write_gz("a.csv.gz", text)}) {
    const auto table = read_csv_table(path);
    CHECK(table.names == std::vector<std::string>{"nation", "gold, total", "a \"quote\""});
    CHECK(table.cells.shape() == std::vector<std::size_t>{2, 3});
    CHECK(table.cells.storage() == std::vector<double>{1, 2.5, -30, 4, 5, 0.125});
    CHECK(table.decimals == 3);
  }
}

TEST_CASE("a file that is not a table of numbers is rejected with its place") {
  Folder folder;
  const auto refused = [&](const std::string& text) {
    const auto path = folder.write("t.csv", text);
    return refusal(folder, [&] { read_csv_table(path); });
  };
  CHECK(refused("a,b\n1,2\n3\n") == "t.csv:3: 1 fields, but the first line names 2 columns");
  CHECK(refused("a,b\n1,2,3\n") == "t.csv:2: 3 fields, but the first line names 2 columns");
  for (const std::string missing : {"", " ", "NA", "n/a", "NaN", "null", "-", "?"})
    CHECK(refused("a,b\n1," + missing + "\n") ==
          "t.csv:2:3: a missing value in column \"b\"; give every number, or leave the row out");
  CHECK(refused("a,b\n1,two\n") == "t.csv:2:3: \"two\" in column \"b\" is not a number; give columns of numbers only");
  CHECK(has(refused("a\n1e999\n"), "t.csv:2:1: \"1e999\" in column \"a\" is not a number"));
  CHECK(has(refused("a\n1 000\n"), "is not a number"));
  CHECK(refused("a,,c\n1,2,3\n") == "t.csv:1:3: a column without a name; the first line names the columns");
  CHECK(refused("a,A\n1,2\n") == "t.csv:1:3: a second column \"a\"; give every column a name of its own");
  CHECK(refused("a,\"b\n1,2\n") == "t.csv:1:3: a quote without an end on this line");
  CHECK(refused("a,\"b\"c\n1,2\n") == "t.csv:1:6: expected a comma after the closing quote");
  CHECK(refused("a,b\n") == "t.csv: holds no row of numbers below a line of names");
  CHECK(refused("\n\n") == "t.csv: holds no row of numbers below a line of names");
}

}  // namespace hardgrad::testing::csv_table_test
