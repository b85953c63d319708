// Tables of numbers in CSV files (RFC 4180): a line of column names, then a line for every row.
#pragma once

#include <string>
#include <vector>

#include "core/support/array.hpp"

namespace hardgrad::tasks {

struct CsvTable {
  std::vector<std::string> names;  ///< [C] names of the columns, in lower case
  Array<double> cells;             ///< [R, C]
  int decimals = 0;                ///< largest number of digits after a decimal point, up to 9
};

/// Fields may be quoted, with "" for a quote. Empty lines are skipped. InputError, with line and column in bytes, for rows with
/// another number of fields than the header, missing values, fields that are not numbers, empty or repeated names, and a table
/// without rows.
CsvTable read_csv_table(const std::string& path);

}  // namespace hardgrad::tasks
