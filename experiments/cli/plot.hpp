// Curves drawn with letters, for terminals.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace hardgrad::cli {

/// A curve, drawn with one character (ASCII).
struct Series {
  char mark;
  std::vector<std::pair<double, double>> points;  ///< x, y in order of x
};

/// `height` lines of at most `width` characters, including the axis, with the smallest and largest values beside them. Where
/// curves meet, the first is visible. A single line if there is nothing to draw.
std::vector<std::string> plot(const std::vector<Series>& series, int width, int height);

}  // namespace hardgrad::cli
