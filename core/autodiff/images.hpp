// Images: convolutions, and patches around real-valued places.
//
// An image of H x W pixels with C channels is H W rows of C columns, in row-major order; images follow each other. The result
// of a convolution is again a matrix with one row per place, so that attention can choose among the places.
#pragma once

#include <cstddef>
#include <span>

#include "core/autodiff/tape.hpp"
#include "core/support/array.hpp"

namespace hardgrad {

/// A window of kernel x kernel pixels that moves by `stride` and begins `padding` pixels outside the image.
struct Windows {
  std::size_t height, width;  ///< of the image
  std::size_t kernel, stride = 1, padding = 0;
  std::size_t rows() const { return (height + 2 * padding - kernel) / stride + 1; }
  std::size_t cols() const { return (width + 2 * padding - kernel) / stride + 1; }
};

/// y_{i,j,o} = b_o + sum_{u,v,c} W_{o,(u,v,c)} x_{i s - p + u, j s - p + v, c}, zero outside the image: x [B H W, C], weight
/// [O, kernel kernel C], bias [1, O] or empty -> [B rows cols, O].
template <class T>
Var<T> convolution(Var<T> x, const Windows& windows, Var<T> weight, Var<T> bias = {});

/// images [B, height, width], place [R, 2] (row, column) with the image as [-1, 1]^2 -> [R, scales P P]:
/// row r is a patch of image example[r] around its place. At scale s a window of P 2^s x P 2^s points,
/// one pixel apart, is centred on the place. Values are interpolated bilinearly between pixel centres,
/// are zero outside the image, and are averaged over 2^s x 2^s blocks. The result is continuous in the
/// place, and differentiable except where a point crosses a pixel centre. Images are constant.
template <class T>
Var<T> bilinear_patches(const Array<double>& images, std::span<const int> example, Var<T> place, int patch, int scales);

}  // namespace hardgrad
