// The mean window of an image under weights of its places, without forming the window of each place.
#pragma once

#include <algorithm>
#include <span>

#include "core/autodiff/require.hpp"
#include "core/models/parts/sensor.hpp"

namespace hardgrad {

/// x[r] = sum_c weights[r, c] (the sensor's window at cell c of image example[r]): images [B, height width], constant;
/// weights [R, cells] -> [R, P P]. The sensor must have one scale.
template <class T>
Var<T> mean_window(const Sensor& sensor, Var<T> images, std::span<const int> example, Var<T> weights) {
  require_shapes(sensor.scales == 1 && weights.cols() == sensor.cells() && weights.rows() == example.size(), "mean_window",
                 {images, weights});
  // f(first pixel in the window, first pixel in the image, count) for each line of cell c's window within the image.
  const auto lines = [sensor](int c, auto f) {
    const int top = sensor.first(c / sensor.grid, sensor.height, sensor.patch);
    const int left = sensor.first(c % sensor.grid, sensor.width, sensor.patch);
    const int from = std::max(0, -left), to = std::min(sensor.patch, sensor.width - left);
    for (int i = std::max(0, -top); i < std::min(sensor.patch, sensor.height - top); ++i)
      f(i * sensor.patch + from, (top + i) * sensor.width + left + from, to - from);
  };
  auto& tape = *weights.tape;
  const auto x = tape.output(example.size(), sensor.values(), {weights});
  const auto out = tape.mutable_value(x);
  std::fill_n(out.data, out.size(), T{0});
  for (std::size_t r = 0; r < example.size(); ++r)
    for (std::size_t c = 0; c < sensor.cells(); ++c) {
      const T w = weights.value()(r, c);
      if (w == 0) continue;  // a NaN weight is not skipped
      lines(static_cast<int>(c), [&, image = images.value().row(example[r])](int pixel, int of_image, int count) {
        for (int j = 0; j < count; ++j) out(r, pixel + j) += w * image[of_image + j];
      });
    }
  tape.on_backward({x}, [=, whose = tape.keep(example)](Tape<T>& tape) {
    const auto g = tape.cotangent(x);
    const auto pixels = images.value();
    tape.sink(weights).accumulate([&](std::size_t i) {
      const std::size_t r = i / sensor.cells();
      T sum = 0;
      lines(static_cast<int>(i % sensor.cells()), [&, image = pixels.row(whose[r])](int pixel, int of_image, int count) {
        for (int j = 0; j < count; ++j) sum += g(r, pixel + j) * image[of_image + j];
      });
      return sum;
    });
  });
  return x;
}

}  // namespace hardgrad
