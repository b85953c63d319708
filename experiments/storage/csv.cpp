// Results as text: one tidy table per combination of axes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/support/error.hpp"
#include "experiments/storage/archive.hpp"
#include "experiments/storage/atomic_file.hpp"
#include "experiments/storage/result_files.hpp"

namespace hardgrad::storage {
namespace {

std::string quoted(std::string s) {
  // A spreadsheet takes text that begins so for a formula, which may run a program: an apostrophe makes it text. Numbers stay.
  char* end = nullptr;
  if (!s.empty() && std::strchr("=+-@\t\r", s[0]) && (std::strtod(s.c_str(), &end), *end)) s.insert(0, "'");
  if (s.find_first_of(",\"\r\n") == std::string::npos) return s;
  std::string out = "\"";
  for (char c : s) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

// The value at a position. Numbers are exact when read back; NaN is empty.
std::string cell_text(const Values& values, std::size_t i) {
  return std::visit(
      [&](const auto& v) -> std::string {
        using E = typename std::decay_t<decltype(v)>::value_type;
        if constexpr (std::is_same_v<E, std::string>) {
          return quoted(v[i]);
        } else if constexpr (std::is_floating_point_v<E>) {
          if (std::isnan(v[i])) return "";
          return fmt::format("{:.17g}", static_cast<double>(v[i]));
        } else {
          return std::to_string(v[i]);
        }
      },
      values);
}

// Flags as names.
std::string value_text(const Variable& v, std::size_t i) {
  const auto meanings = text(v.attributes, "flag_meanings");
  auto* codes = std::get_if<std::vector<std::uint8_t>>(&v.values);
  if (!codes || meanings.empty()) return cell_text(v.values, i);
  std::size_t from = 0;
  for (unsigned k = 0; k < (*codes)[i] && from != std::string::npos; ++k) from = meanings.find(' ', from + 1);
  if (from == std::string::npos) return cell_text(v.values, i);
  from += meanings[from] == ' ';
  return meanings.substr(from, meanings.find(' ', from) - from);
}

struct Column {
  const Variable* variable;
  std::string title;
  std::size_t width = 1, place = 0;  // numbers of the variable in a row, and which of them
};

// One row per run and label of `axes`. A row without any number does not exist for its run.
std::string table(const Dataset& data, const std::vector<std::string>& axes) {
  std::vector<Column> labels, columns;
  auto with_bound = axes;
  with_bound.push_back("bound");
  for (const auto& v : data.variables) {
    if (v.axes == std::vector<std::string>{"run"} && axes.size() > 1 && find(v.attributes, "grid_axis"))
      labels.push_back({&v, quoted(v.name)});
    if (v.axes == axes) columns.push_back({&v, quoted(v.name)});
    if (v.axes != with_bound) continue;  // an interval has a column for each end
    const auto& ends = *data.axis("bound");
    for (std::size_t k = 0; k < ends.size(); ++k)
      columns.push_back({&v, quoted(v.name + "_" + cell_text(ends.labels, k)), ends.size(), k});
  }
  if (columns.empty()) return "";
  auto row = axes;
  for (const auto* list : {&labels, &columns})
    for (const auto& column : *list) row.push_back(column.title);
  auto out = fmt::format("{}\n", fmt::join(row, ","));
  std::size_t count = 1;
  for (const auto& a : axes) count *= data.axis(a)->size();
  for (std::size_t i = 0; i < count; ++i) {
    const auto present = [i](const Column& column) {
      if (column.variable->name == "measurement_status")
        return std::get<std::vector<std::uint8_t>>(column.variable->values)[i] != 2;
      const auto* numbers = std::get_if<std::vector<double>>(&column.variable->values);
      return numbers && column.width == 1 && !std::isnan((*numbers)[i]);
    };
    if (axes.size() > 1 && std::none_of(columns.begin(), columns.end(), present)) continue;
    row.assign(axes.size(), "");
    std::size_t run = i;
    for (std::size_t a = axes.size(); a-- > 0;) {
      const auto& axis = *data.axis(axes[a]);
      row[a] = cell_text(axis.labels, run % axis.size());
      if (a > 0) run /= axis.size();
    }
    for (const auto& label : labels) row.push_back(value_text(*label.variable, run));
    for (const auto& column : columns) row.push_back(value_text(*column.variable, i * column.width + column.place));
    out += fmt::format("{}\n", fmt::join(row, ","));
  }
  return out;
}

}  // namespace

std::vector<std::string> export_csv(const std::string& path, const std::string& folder) {
  const auto archive = read_archive(path, "result");
  const auto& data = archive.group("");
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error || !std::filesystem::is_directory(folder))
    throw UsageError(folder + ": the folder cannot be created: " + (error ? error.message() : "a file has its name"));
  std::vector<std::string> written;
  const std::pair<const char*, std::vector<std::string>> tables[] = {
      {"runs.csv", {"run"}},
      {"training.csv", {"run", "step"}},
      {"evaluations.csv", {"run", "evaluation_step"}},
      {"measurements.csv", {"run", "measurement_step"}},
      {"measurement_groups.csv", {"run", "measurement_step", "parameter_group"}},
      {"measurement_sites.csv", {"run", "measurement_step", "site"}},
      {"measurement_targets.csv", {"run", "measurement_step", "target"}}};
  for (const auto& [name, axes] : tables) {
    if (!std::all_of(axes.begin(), axes.end(), [&](const auto& name) { return data.axis(name); })) continue;
    const auto text = table(data, axes);
    if (text.empty()) continue;
    written.push_back((std::filesystem::path(folder) / name).string());
    write_file(written.back(), text);
  }
  if (const auto* configuration = data.values<std::string>("configuration")) {
    written.push_back((std::filesystem::path(folder) / "configuration.toml").string());
    write_file(written.back(), configuration->front());
  }
  return written;
}

}  // namespace hardgrad::storage
