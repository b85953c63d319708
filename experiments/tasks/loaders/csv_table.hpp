// Tables of numbers in CSV files (RFC 4180): a line of names, then a line for every row.
#pragma once

#include <string>
#include <vector>

#include "core/support/array.hpp"

namespace hardgrad::tasks {

struct CsvTable {
  std::vector<std::string> names;  ///< [C] of the columns, in lower case
  Array<double> cells;             ///< [R, C]
  int decimals = 0;                ///< most digits after the point of a number, up to 9
};

/// Fields may stand in quotes, in which "" is a quote; empty lines are passed over. InputError, with line and column in bytes,
/// on rows of another number of fields than the header, on missing values, on what is no number, on names that are empty or
/// occur twice, and if there is no row.
CsvTable read_csv_table(const std::string& path);

}  // namespace hardgrad::tasks
