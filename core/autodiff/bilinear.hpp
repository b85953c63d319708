// Patches of images around real-valued places, differentiable in the place.
#pragma once

#include <span>

#include "core/autodiff/tape.hpp"
#include "core/support/array.hpp"

namespace hardgrad {

/// images [B, height, width], place [R, 2] (row, column) with the image as [-1, 1]^2 -> [R, scales P P]:
/// row r is a patch of image example[r] around its place. At scale s a window of P 2^s x P 2^s points,
/// one pixel apart, is centred on the place. Values are interpolated bilinearly between pixel centres,
/// are zero outside the image, and are averaged over 2^s x 2^s blocks. The result is continuous in the
/// place, and differentiable except where a point crosses a pixel centre. Images are constant.
template <class T>
Var<T> bilinear_patches(const Array<double>& images, std::span<const int> example, Var<T> place, int patch, int scales);

}  // namespace hardgrad
