#include "core/autodiff/convolution.hpp"

#include <algorithm>

#include "core/autodiff/product.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/require.hpp"

namespace hardgrad {

template <class T>
Var<T> convolution(Var<T> x, const Windows& w, Var<T> weight, Var<T> bias) {
  const auto places = w.height * w.width;
  const bool fits = w.stride > 0 && w.kernel > 0 && w.kernel <= std::min(w.height, w.width) + 2 * w.padding;
  require_shapes(fits && places > 0 && x.rows() % places == 0 && weight.cols() == w.kernel * w.kernel * x.cols(), "convolution",
                 {x, weight});
  const auto pictures = x.rows() / places;
  const auto index = x.tape->template scratch<int>(pictures * w.rows() * w.cols() * w.kernel * w.kernel);
  auto* to = index.data();
  for (std::size_t picture = 0; picture < pictures; ++picture)
    for (std::size_t i = 0; i < w.rows(); ++i)
      for (std::size_t j = 0; j < w.cols(); ++j)
        for (std::size_t u = 0; u < w.kernel; ++u)
          for (std::size_t v = 0; v < w.kernel; ++v) {
            const auto row = i * w.stride + u - w.padding, col = j * w.stride + v - w.padding;  // below zero: huge
            const bool inside = row < w.height && col < w.width;
            *to++ = inside ? static_cast<int>(picture * places + row * w.width + col) : -1;
          }
  return linear(reshape(gather_rows(x, std::span<const int>(index)), weight.cols()), weight, bias);
}

template Var<float> convolution(Var<float>, const Windows&, Var<float>, Var<float>);
template Var<double> convolution(Var<double>, const Windows&, Var<double>, Var<double>);

}  // namespace hardgrad
