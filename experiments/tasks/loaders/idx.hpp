// MNIST's idx files (http://yann.lecun.com/exdb/mnist): big-endian header, then one byte per pixel or label.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace hardgrad::tasks {

/// Images [count, rows, cols], a byte per pixel.
struct IdxImages {
  std::size_t count = 0, rows = 0, cols = 0;
  std::string pixels;
  const std::uint8_t* image(std::size_t i) const {
    return reinterpret_cast<const std::uint8_t*>(pixels.data()) + i * rows * cols;
  }
};

/// Reads images, plain or gzipped. InputError on a wrong magic number, a truncated header or body, a header that does not match
/// the number of bytes, and an empty set. Allocates no more than the file contains.
IdxImages read_idx_images(const std::string& path);
/// Reads labels [count] below `classes`; InputError likewise.
std::string read_idx_labels(const std::string& path, int classes);

}  // namespace hardgrad::tasks
