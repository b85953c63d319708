// Results as text: one tidy table per combination of axes.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>

#include "core/support/error.hpp"
#include "experiments/storage/archive.hpp"
#include "experiments/storage/atomic_file.hpp"
#include "experiments/storage/csv.hpp"

namespace hardgrad::storage {
namespace {

std::string quoted(const std::string& s) {
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
          char buffer[40];
          std::snprintf(buffer, sizeof buffer, "%.17g", static_cast<double>(v[i]));
          return buffer;
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

// One row per run and label of `axes`, for the rows in `present`.
std::string table(const Dataset& data, const std::vector<std::string>& axes) {
  std::vector<const Variable*> labels, columns;
  for (const auto& v : data.variables) {
    if (v.axes == std::vector<std::string>{"run"} && axes.size() > 1 && find(v.attributes, "grid_axis")) labels.push_back(&v);
    if (v.axes == axes) columns.push_back(&v);
    // Intervals become two columns.
    auto with_bound = axes;
    with_bound.push_back("bound");
    if (v.axes == with_bound) columns.push_back(&v);
  }
  if (columns.empty()) return "";
  const auto* bound = data.axis("bound");
  std::string out;
  const auto add = [&](const std::string& field) {
    if (!out.empty() && out.back() != '\n') out += ',';
    out += field;
  };
  std::vector<std::size_t> extent;
  std::size_t count = 1;
  for (const auto& a : axes) {
    add(a);
    extent.push_back(data.axis(a)->size());
    count *= extent.back();
  }
  for (auto* v : labels) add(quoted(v->name));
  for (auto* v : columns) {
    if (v->axes.size() == axes.size())
      add(quoted(v->name));
    else
      for (std::size_t k = 0; k < bound->size(); ++k) add(quoted(v->name + "_" + cell_text(bound->labels, k)));
  }
  out += '\n';
  for (std::size_t i = 0; i < count; ++i) {
    bool present = axes.size() == 1;  // a row without any number does not exist for its run
    for (auto* v : columns)
      if (auto* numbers = std::get_if<std::vector<double>>(&v->values); numbers && v->axes.size() == axes.size())
        present = present || !std::isnan((*numbers)[i]);
      else if (v->name == "measurement_status")
        present = present || std::get<std::vector<std::uint8_t>>(v->values)[i] != 2;
    if (!present) continue;
    std::string row;
    std::size_t rest = i, run = i;
    std::vector<std::string> places(axes.size());
    for (std::size_t a = axes.size(); a-- > 0; rest /= extent[a]) {
      places[a] = cell_text(data.axis(axes[a])->labels, rest % extent[a]);
      if (a == 0) run = rest % extent[a];
    }
    for (const auto& p : places) row += (row.empty() ? "" : ",") + p;
    for (auto* v : labels) row.append(",").append(value_text(*v, run));
    for (auto* v : columns) {
      const auto n = v->axes.size() == axes.size() ? 1 : bound->size();
      for (std::size_t k = 0; k < n; ++k) row.append(",").append(value_text(*v, i * n + k));
    }
    out += row + '\n';
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
      {"measurement_targets.csv", {"run", "measurement_step", "target"}}};
  for (const auto& [name, axes] : tables) {
    bool there = true;
    for (const auto& a : axes) there = there && data.axis(a);
    const auto text = there ? table(data, axes) : "";
    if (text.empty()) continue;
    written.push_back((std::filesystem::path(folder) / name).string());
    write_file(written.back(), text);
  }
  return written;
}

}  // namespace hardgrad::storage
