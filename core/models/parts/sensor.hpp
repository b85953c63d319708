// The glimpse sensor: patches of an image around the cells of a grid, at several scales.
//
// At cell (i, j) of a G x G grid and scale s, the window has side w = P 2^s. Its first row is
// floor(((2i + 1) height - w G + G) / (2 G)), its first column likewise. It is zero outside the image, and averaged over blocks
// of 2^s x 2^s pixels to P x P numbers.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "core/autodiff/tape.hpp"

namespace hardgrad {

struct Sensor {
  int grid, patch, scales, height, width;

  std::size_t cells() const { return static_cast<std::size_t>(grid) * grid; }
  /// Numbers per glimpse.
  std::size_t values() const { return static_cast<std::size_t>(scales) * patch * patch; }

  /// images [B, height, width] -> constant [R, values()]: the glimpse of image example[r] at cell[r].
  template <class T>
  Var<T> patches(Tape<T>& tape, const Array<double>& images, std::span<const int> example, std::span<const int> cell) const {
    auto out = tape.output(example.size(), values(), {});
    const auto to = tape.mutable_value(out);
    for (std::size_t r = 0; r < example.size(); ++r) glimpse(row_of(images, example[r]).data(), cell[r], to.row(r));
    return out;
  }

  /// The glimpses at all cells of all images: [B cells(), values()].
  template <class T>
  Var<T> every_patch(Tape<T>& tape, const Array<double>& images) const {
    std::vector<int> example(extent(images, 0) * cells()), cell(example.size());
    for (std::size_t n = 0; n < example.size(); ++n) {
      example[n] = static_cast<int>(n / cells());
      cell[n] = static_cast<int>(n % cells());
    }
    return patches(tape, images, example, cell);
  }

  /// First pixel of the window of side `window` at place i of an axis of `extent` pixels.
  int first(int i, int extent, int window) const {
    const int above = (2 * i + 1) * extent - window * grid + grid, below = 2 * grid;
    return above >= 0 ? above / below : -((-above + below - 1) / below);
  }

 private:
  template <class T>
  void glimpse(const double* image, int cell, T* out) const {
    for (int s = 0; s < scales; ++s, out += patch * patch) {
      const int block = 1 << s;
      const int top = first(cell / grid, height, patch * block), left = first(cell % grid, width, patch * block);
      const int begin = std::max(0, -left), end = std::max(begin, std::min(patch * block, width - left));  // within the image
      std::fill_n(out, patch * patch, T{0});
      for (int i = 0; i < patch; ++i) {
        T* row = out + i * patch;
        const int y0 = std::max(0, top + i * block), y1 = std::min(height, top + (i + 1) * block);
        if (block == 1) {
          for (int j = begin; j < end && y0 < y1; ++j) row[j] = static_cast<T>(image[y0 * width + left + j]);
          continue;
        }
        for (int j = begin / block; j * block < end; ++j) {
          double sum = 0;
          for (int y = y0; y < y1; ++y)
            for (int x = std::max(begin, j * block); x < std::min(end, (j + 1) * block); ++x)
              sum += image[y * width + left + x];
          row[j] = static_cast<T>(sum / (block * block));
        }
      }
    }
  }
};

}  // namespace hardgrad
