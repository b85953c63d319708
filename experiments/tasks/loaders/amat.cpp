#include "experiments/tasks/loaders/amat.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/support/text.hpp"
#include "experiments/support/text.hpp"
#include "experiments/tasks/text.hpp"

namespace hardgrad::tasks {

IdxImages parse_amat(const TextFile& text) {
  IdxImages images;
  for (std::size_t i = 0; i < text.lines.size(); ++i) {
    const std::string_view line = text.lines[i];
    if (trimmed(line).empty()) continue;
    const auto before = images.pixels.size();
    for (const auto& [pixel, column] : pieces_of(line)) {
      const double value = number_of<double>(pixel).value_or(-1);
      if (!(value >= 0 && value <= 1))
        refuse_input(text.path, i + 1, column,
                     fmt::format("a pixel must be a number from 0 to 1, got \"{}\"", pixel.substr(0, 20)));
      images.pixels += static_cast<char>(std::lround(255 * value));
    }
    const auto pixels = images.pixels.size() - before;
    if (images.count == 0) {
      images.rows = images.cols = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(pixels))));
      if (images.rows * images.cols != pixels)
        refuse_input(text.path, i + 1, 0, fmt::format("{} numbers; a line must be a square image of n x n", pixels));
    } else if (pixels != images.rows * images.cols) {
      refuse_input(
          text.path, i + 1, 0,
          fmt::format("{} numbers, but the first image has {}x{}; is it truncated?", pixels, images.rows, images.cols));
    }
    ++images.count;
  }
  if (images.count == 0) refuse_input(text.path, 0, 0, "holds no images");
  return images;
}

}  // namespace hardgrad::tasks
