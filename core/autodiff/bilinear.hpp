// Patches of images around places that need not be whole pixels: differentiable in the place.
#pragma once

#include <span>

#include "core/autodiff/tape.hpp"
#include "core/support/array.hpp"

namespace hardgrad {

/// images [B, height, width], place [R, 2] (row, column), the image being [-1, 1]^2 -> [R, scales P P]: row r sees image
/// example[r] around its place. At scale s the window of P 2^s x P 2^s points one pixel apart is centred on the place,
/// interpolated bilinearly between pixels' centres, zero outside the image, and averaged over 2^s x 2^s blocks. Continuous in
/// the place, and differentiable but where a point crosses a pixel's centre. Images are constant.
template <class T>
Var<T> bilinear_patches(const Array<double>& images, std::span<const int> example, Var<T> place, int patch, int scales);

}  // namespace hardgrad
