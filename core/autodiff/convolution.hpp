// Convolutions of pictures: a gather of windows and one product (im2col), both operations of their own.
//
// A picture of H x W places with C numbers each is H W rows of C columns, row by row; pictures follow each other. So what a
// convolution gives is again a matrix with a row for each place, which attention can choose among.
#pragma once

#include <cstddef>

#include "core/autodiff/tape.hpp"

namespace hardgrad {

/// A window of kernel x kernel places that moves by `stride`, beginning `padding` places outside the picture.
struct Windows {
  std::size_t height, width;  ///< of the picture
  std::size_t kernel, stride = 1, padding = 0;
  std::size_t rows() const { return (height + 2 * padding - kernel) / stride + 1; }
  std::size_t cols() const { return (width + 2 * padding - kernel) / stride + 1; }
};

/// y_{i,j,o} = b_o + sum_{u,v,c} W_{o,(u,v,c)} x_{i s - p + u, j s - p + v, c}, zero outside the picture: x [B H W, C], weight
/// [O, kernel kernel C], bias [1, O] or empty -> [B rows cols, O].
template <class T>
Var<T> convolution(Var<T> x, const Windows& windows, Var<T> weight, Var<T> bias = {});

}  // namespace hardgrad
