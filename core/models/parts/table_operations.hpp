// The operations of a programmer on a table (Neelakantan, Le & Sutskever 2016): the options of an instruction's first column,
// in this order.
#pragma once

#include <array>
#include <string_view>

namespace hardgrad {

enum class TableOperation { sum, count, difference, greater, lesser, both, either, assign, reset };

inline constexpr std::array<std::string_view, 9> table_operations{"sum", "count", "difference", "greater", "lesser",
                                                                  "and", "or",    "assign",     "reset"};

/// Whether an instruction's second column, a column of the table, matters.
constexpr bool reads_column(TableOperation operation) {
  using enum TableOperation;
  return operation == sum || operation == greater || operation == lesser || operation == assign;
}

}  // namespace hardgrad
