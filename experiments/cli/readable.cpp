#include "experiments/cli/readable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/support/text.hpp"
#include "experiments/cli/manual.hpp"
#include "experiments/cli/output.hpp"
#include "experiments/storage/atomic_file.hpp"

namespace hardgrad::cli {

void print_table(std::vector<std::vector<std::string>> rows, const std::string& alignment, std::size_t most) {
  std::vector<std::size_t> width;
  const auto length = [](const std::string& text) {  // of UTF-8, in characters
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), std::not_fn(continues_character)));
  };
  for (const auto& row : rows) {
    width.resize(std::max(width.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], length(row[i]));
  }
  if (most != std::string::npos) {
    std::size_t before = 0;
    for (std::size_t i = 0; i + 1 < width.size(); ++i) before += width[i] + 2;
    width.back() = 0;
    for (auto& row : rows)
      if (row.size() == width.size() && before < most) {
        row.back() = shortened(row.back(), most - before);
        width.back() = std::max(width.back(), length(row.back()));
      }
  }
  for (const auto& row : rows) {
    const bool heading = &row == &rows.front();
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string gap(width[i] - length(row[i]), ' ');
      const bool right = i < alignment.size() && alignment[i] == 'r';
      line += (i ? "  " : "") + (right ? gap + row[i] : row[i] + gap);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    put("{}\n", heading ? bold(line) : line);
  }
}

std::string short_number(double value) {
  return std::isnan(value) ? "-" : std::isinf(value) ? "infinite" : fmt::format("{:.3g}", value);
}

std::string size_text(double bytes) {
  const char* units[] = {"B", "kB", "MB", "GB", "TB"};
  int unit = 0;
  for (; bytes >= 1000 && unit < 4; ++unit) bytes /= 1000;
  return fmt::format("{:.3g} {}", bytes, units[unit]);
}

std::string leftovers_text(const std::vector<storage::Leftover>& leftovers) {
  if (leftovers.empty()) return {};
  double bytes = 0;
  for (const auto& leftover : leftovers) bytes += static_cast<double>(leftover.bytes);
  return fmt::format("{} that killed processes left half-written ({}): the next run removes {}",
                     counted(leftovers.size(), "file"), size_text(bytes), leftovers.size() == 1 ? "it" : "them");
}

}  // namespace hardgrad::cli
