#include "core/autodiff/images.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/autodiff/require.hpp"

namespace hardgrad {
namespace {

/// The pixel before a point on an axis, and the distance from its centre to the point.
struct Interpolation {
  int pixel;
  double share;
};

/// First point of a window of side `window` centred on `place`.
Interpolation first_point(double place, int extent, int window) {
  place = std::clamp(place, -1e4, 1e4);  // the result is the same beyond the limit, and pixel indices stay in range
  const double centre = (place + 1) / 2 * extent - window / 2.0;  // in pixels; pixel i has its centre at i + 1/2
  const double before = std::floor(centre);
  return {static_cast<int>(before), centre - before};
}

}  // namespace

// v = (1-a)(1-b) I00 + (1-a) b I01 + a (1-b) I10 + a b I11; a and b grow by height/2 and width/2 pixels per unit of place:
// dv/dplace = (height/2 ((1-b) (I10 - I00) + b (I11 - I01)), width/2 ((1-a) (I01 - I00) + a (I11 - I10)))
template <class T>
Var<T> bilinear_patches(const Array<double>& images, std::span<const int> example, Var<T> place, int patch, int scales) {
  require_shapes(place.cols() == 2 && place.rows() == example.size(), "bilinear_patches", {place});
  const int height = static_cast<int>(extent(images, 1)), width = static_cast<int>(extent(images, 2));
  const std::size_t values = static_cast<std::size_t>(scales) * patch * patch;
  auto& tape = *place.tape;
  auto y = tape.output(example.size(), values, {place});
  const auto out = tape.mutable_value(y);
  const auto at = place.value();
  const auto slopes = tape.template scratch<T>(tape.needs_gradient(place) ? 2 * out.size() : 0);
  T* slope = slopes.data();
  for (std::size_t r = 0; r < example.size(); ++r) {
    const double* image = row_of(images, example[r]).data();
    const auto pixel = [&](int i, int j) { return i >= 0 && i < height && j >= 0 && j < width ? image[i * width + j] : 0.0; };
    T* to = out.row(r);
    if (std::isnan(at(r, 0)) || std::isnan(at(r, 1))) {  // NaN must stay visible
      std::fill_n(to, values, std::numeric_limits<T>::quiet_NaN());
      if (!slopes.empty()) slope = std::fill_n(slope, 2 * values, std::numeric_limits<T>::quiet_NaN());
      continue;
    }
    for (int s = 0; s < scales; ++s) {
      const int block = 1 << s;
      const auto top = first_point(at(r, 0), height, patch * block), left = first_point(at(r, 1), width, patch * block);
      const double a = top.share, b = left.share, share = 1.0 / (block * block);
      for (int i = 0; i < patch; ++i)
        for (int j = 0; j < patch; ++j) {
          double i00 = 0, i01 = 0, i10 = 0, i11 = 0;
          for (int u = top.pixel + i * block; u < top.pixel + (i + 1) * block; ++u)
            for (int v = left.pixel + j * block; v < left.pixel + (j + 1) * block; ++v) {
              i00 += pixel(u, v);
              i01 += pixel(u, v + 1);
              i10 += pixel(u + 1, v);
              i11 += pixel(u + 1, v + 1);
            }
          *to++ = static_cast<T>(share * ((1 - a) * ((1 - b) * i00 + b * i01) + a * ((1 - b) * i10 + b * i11)));
          if (slopes.empty()) continue;
          *slope++ = static_cast<T>(share * height / 2 * ((1 - b) * (i10 - i00) + b * (i11 - i01)));
          *slope++ = static_cast<T>(share * width / 2 * ((1 - a) * (i01 - i00) + a * (i11 - i10)));
        }
    }
  }
  tape.on_backward({y}, [place, y, slope = static_cast<const T*>(slopes.data())](Tape<T>& tape) {
    const auto g = tape.cotangent(y);
    tape.sink(place).accumulate([=](std::size_t i) {
      const std::size_t r = i / 2, axis = i % 2;
      double sum = 0;
      for (std::size_t v = 0; v < g.cols; ++v)
        sum += static_cast<double>(g(r, v)) * static_cast<double>(slope[2 * (r * g.cols + v) + axis]);
      return static_cast<T>(sum);
    });
  });
  return y;
}

template Var<float> bilinear_patches(const Array<double>&, std::span<const int>, Var<float>, int, int);
template Var<double> bilinear_patches(const Array<double>&, std::span<const int>, Var<double>, int, int);

}  // namespace hardgrad
