// Pictures of a few coloured shapes, each in a cell of its own of a square grid, and what there is to say of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/random/key.hpp"

namespace hardgrad::tasks {

struct CaptionedScene {
  std::vector<std::uint8_t> image;   ///< [side, side, 3] red, green, blue, row by row
  std::vector<std::string> caption;  ///< "a red circle left of a blue square above a green cross"
  std::vector<int> gold;             ///< of each word of it the cell that shows it, -1 of words about none
};

struct ScenePainter {
  static constexpr std::size_t cell = 8;  ///< pixels to a side
  int grid = 4;                           ///< cells to a side
  int objects = 3;                        ///< most in a picture; at least one
  double noise = 0.1;                     ///< uniform, up to so much of full light, on every number

  std::size_t side() const { return cell * static_cast<std::size_t>(grid); }
  /// Objects are named in reading order, rows from the top; each is "left of" the next in its row, or "above" one in another.
  CaptionedScene paint(Key key) const;
};

}  // namespace hardgrad::tasks
