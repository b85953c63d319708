// Images that need no file: digits, and captioned scenes of coloured shapes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/random/key.hpp"
#include "experiments/tasks/loaders/arrays.hpp"

namespace hardgrad::tasks {

// Digits drawn with seven-segment strokes in varying hands: a stand-in for MNIST that needs no file.

/// `count` images of `size` x `size` pixels. Image i shows the digit i mod 10 with height, width, slant, stroke and place keyed
/// by i.
IdxImages draw_digits(std::size_t count, int size, Key key);

// Generated pictures of a few coloured shapes, each in its own cell of a square grid, with captions.

struct CaptionedScene {
  std::vector<std::uint8_t> image;   ///< [side, side, 3] red, green, blue, row by row
  std::vector<std::string> caption;  ///< "a red circle left of a blue square above a green cross"
  std::vector<int> gold;             ///< for each word of the caption, the cell of its object; -1: none
};

struct ScenePainter {
  static constexpr std::size_t cell = 8;  ///< pixels per side
  int grid = 4;                           ///< cells per side
  int objects = 3;                        ///< most objects in a picture; at least 1
  double noise = 0.1;                     ///< uniform noise from 0 to this share of full intensity, on every number

  std::size_t side() const { return cell * static_cast<std::size_t>(grid); }
  /// The caption names the objects in reading order. Each is "left of" the next if it is in the same row, else "above" it.
  CaptionedScene paint(Key key) const;
};

}  // namespace hardgrad::tasks
