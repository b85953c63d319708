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

/// Lines of at most `width` characters, `height` of them with the axis: the least and largest numbers beside them. Where curves
/// meet, the first of them is seen. A single line if there is nothing to draw.
std::vector<std::string> plot(const std::vector<Series>& series, int width, int height);

}  // namespace hardgrad::cli
