#include "experiments/cli/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace hardgrad::cli {
namespace {

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  /// 0 to 1
  double place(double value) const { return high > low ? (value - low) / (high - low) : 0.5; }
};

}  // namespace

std::vector<std::string> plot(const std::vector<Series>& series, int width, int height) {
  Range x, y;
  for (const auto& s : series)
    for (const auto& [at, value] : s.points)
      if (std::isfinite(at) && std::isfinite(value)) x.add(at), y.add(value);
  if (!(x.low <= x.high)) return {"(nothing logged yet)"};
  const auto top = fmt::format("{:.4g}", y.high), bottom = fmt::format("{:.4g}", y.low);
  const int margin = static_cast<int>(std::max(top.size(), bottom.size())) + 1;
  const int columns = std::max(8, width - margin - 1), rows = std::max(3, height - 2);
  std::vector<std::string> grid(static_cast<std::size_t>(rows), std::string(static_cast<std::size_t>(columns), ' '));
  const auto column = [&](double at) { return static_cast<int>(std::lround(x.place(at) * (columns - 1))); };
  const auto row = [&](double value) { return static_cast<int>(std::lround((1 - y.place(value)) * (rows - 1))); };
  for (const auto& s : series) {
    const std::pair<double, double>* before = nullptr;
    for (const auto& point : s.points) {
      if (!std::isfinite(point.first) || !std::isfinite(point.second)) continue;
      const int to = column(point.first), from = before ? column(before->first) : to;
      for (int c = std::min(before ? from + 1 : to, to); c <= to; ++c) {  // linear interpolation
        const double share = to > from ? static_cast<double>(c - from) / (to - from) : 1;
        const double value = before ? before->second + share * (point.second - before->second) : point.second;
        auto& place = grid[static_cast<std::size_t>(row(value))][static_cast<std::size_t>(c)];
        if (place == ' ') place = s.mark;
      }
      before = &point;
    }
  }
  std::vector<std::string> lines;
  lines.reserve(rows + 2);
  for (int r = 0; r < rows; ++r)
    lines.push_back(fmt::format("{:>{}}|{}",
                                r == 0          ? top
                                : r == rows - 1 ? bottom
                                                : "",
                                margin, grid[static_cast<std::size_t>(r)]));
  lines.push_back(fmt::format("{:>{}}+{}", "", margin, std::string(static_cast<std::size_t>(columns), '-')));
  const auto left = fmt::format("{:.6g}", x.low), right = fmt::format("{:.6g}", x.high);
  lines.push_back(fmt::format("{:>{}} {}{:>{}}", "", margin, left, right,
                              std::max<int>(static_cast<int>(right.size()), columns - static_cast<int>(left.size()))));
  return lines;
}

}  // namespace hardgrad::cli
