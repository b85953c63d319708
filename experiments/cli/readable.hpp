// Formats numbers, counts and tables for people.
#pragma once

#include <string>
#include <vector>

#include "core/support/text.hpp"

namespace hardgrad::storage {
struct Leftover;
}

namespace hardgrad::cli {

/// Prints aligned columns; the first row is the heading. Columns marked 'r' in `alignment` are right-aligned. The last column
/// is shortened so that no line is wider than `most` characters.
void print_table(std::vector<std::vector<std::string>> rows, const std::string& alignment,
                 std::size_t most = std::string::npos);
/// "1.23e-05", "-" for NaN
std::string short_number(double value);
/// "12 B", "3.2 GB"
std::string size_text(double bytes);
/// Number and size of half-written files of killed processes, and how to remove them; empty if there are none.
std::string leftovers_text(const std::vector<storage::Leftover>& leftovers);

}  // namespace hardgrad::cli
