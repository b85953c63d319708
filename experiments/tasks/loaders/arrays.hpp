// Arrays and images in files: MNIST's idx, text (.amat) and NumPy's .npy.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/support/array.hpp"
#include "experiments/tasks/loaders/input_file.hpp"

namespace hardgrad::tasks {

// MNIST's idx files (http://yann.lecun.com/exdb/mnist): big-endian header, then one byte per pixel or label.

/// Images [count, rows, cols], a byte per pixel.
struct IdxImages {
  std::size_t count = 0, rows = 0, cols = 0;
  std::string pixels;
  const std::uint8_t* image(std::size_t i) const {
    return reinterpret_cast<const std::uint8_t*>(pixels.data()) + i * rows * cols;
  }
  /// [rows, cols] the bytes of image i.
  auto greys(std::size_t i) const { return xt::adapt(image(i), rows * cols, xt::no_ownership(), std::array{rows, cols}); }
};

/// Reads images, plain or gzipped. InputError on a wrong magic number, a truncated header or body, a header that does not match
/// the number of bytes, and an empty set. Allocates no more than the file contains.
IdxImages read_idx_images(const std::string& path);
/// Reads labels [count] below `classes`; InputError likewise.
std::string read_idx_labels(const std::string& path, int classes);

// Images as text (.amat), the format of the fixed binarisation of MNIST (Larochelle & Murray 2011): a line per image, a number
// per pixel.

/// Square images of numbers in [0, 1], separated by spaces, row by row; stored as bytes, 255 for 1. InputError with line and
/// column for other numbers, for a line of another length than the first, or if the length is not a square.
IdxImages parse_amat(const TextFile& text);

// Arrays in NumPy's file format (.npy, versions 1 to 3): float32 or float64, little-endian, in C order.

/// InputError if the file is damaged, truncated, of another type or order, larger than `input_limit`, or has numbers that are
/// not finite.
Array<double> read_npy(const std::string& path);

}  // namespace hardgrad::tasks
