#include "experiments/tasks/loaders/csv_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "core/support/text.hpp"
#include "experiments/support/text.hpp"
#include "experiments/tasks/loaders/input_file.hpp"
#include "experiments/tasks/text.hpp"

namespace hardgrad::tasks {
namespace {

struct Field {
  std::string text;  ///< without the spaces around it
  std::size_t at;    ///< its column in the line, from 1
};

std::vector<Field> fields_of(const TextFile& file, std::size_t line) {
  const std::string_view text = file.lines[line];
  std::vector<Field> fields;
  for (std::size_t at = 0;; ++at) {  // a field begins at `at`
    const auto begin = at;
    std::string value;
    const auto first = std::min(text.find_first_not_of(" \t", at), text.size());
    if (first < text.size() && text[first] == '"') {
      for (at = first + 1;; ++at) {
        if (at >= text.size()) refuse_input(file.path, line + 1, first + 1, "a quote without an end on this line");
        if (text[at] != '"') {
          value += text[at];
        } else if (at + 1 < text.size() && text[at + 1] == '"') {
          value += text[at++];
        } else {
          break;
        }
      }
      const auto next = text.find_first_not_of(" \t", at + 1);
      if (next != std::string_view::npos && text[next] != ',')
        refuse_input(file.path, line + 1, next + 1, "expected a comma after the closing quote");
      at = std::min(next, text.size());
    } else {
      at = std::min(text.find(',', at), text.size());
      value = text.substr(begin, at - begin);
    }
    fields.push_back({std::string(trimmed(value)), begin + 1});
    if (at >= text.size()) return fields;
  }
}

double number_in(const TextFile& file, std::size_t line, const Field& field, const std::string& name, int& decimals) {
  static constexpr std::array missing{"", "na", "n/a", "nan", "null", "none", "-", "?"};
  if (std::find(missing.begin(), missing.end(), lower_case(field.text)) != missing.end())
    refuse_input(file.path, line + 1, field.at,
                 fmt::format("a missing value in column \"{}\"; give every number, or leave the row out", name.substr(0, 40)));
  std::string_view text = field.text;
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto value = number_of<double>(text);
  if (!value || !std::isfinite(*value))
    refuse_input(file.path, line + 1, field.at,
                 fmt::format("\"{}\" in column \"{}\" is not a number; give columns of numbers only", field.text.substr(0, 40),
                             name.substr(0, 40)));
  if (const auto point = text.find('.'); point != std::string_view::npos) {
    const auto digits = std::min(text.find_first_of("eE", point), text.size()) - point - 1;
    decimals = std::max(decimals, static_cast<int>(std::min<std::size_t>(digits, 9)));
  }
  return *value;
}

}  // namespace

CsvTable read_csv_table(const std::string& path) {
  const auto file = read_text(path);
  CsvTable table;
  std::vector<double> numbers;
  std::size_t rows = 0;
  for (std::size_t line = 0; line < file.lines.size(); ++line) {
    if (trimmed(file.lines[line]).empty()) continue;
    const auto fields = fields_of(file, line);
    if (table.names.empty()) {
      for (const auto& [text, at] : fields) {
        if (text.empty()) refuse_input(path, line + 1, at, "a column without a name; the first line names the columns");
        const auto name = lower_case(text);
        if (std::find(table.names.begin(), table.names.end(), name) != table.names.end())
          refuse_input(path, line + 1, at,
                       fmt::format("a second column \"{}\"; give every column a name of its own", name.substr(0, 40)));
        table.names.push_back(name);
      }
      continue;
    }
    if (fields.size() != table.names.size())
      refuse_input(path, line + 1, 0,
                   fmt::format("{} fields, but the first line names {} columns", fields.size(), table.names.size()));
    for (std::size_t j = 0; j < fields.size(); ++j)
      numbers.push_back(number_in(file, line, fields[j], table.names[j], table.decimals));
    ++rows;
  }
  if (rows == 0) refuse_input(path, 0, 0, "holds no row of numbers below a line of names");
  table.cells = shaped<double>({rows, table.names.size()}, std::move(numbers));
  return table;
}

}  // namespace hardgrad::tasks
