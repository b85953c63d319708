// Products of the windows of an image with weights, read from the image in place: no matrix of all windows is made.
//
// A register holds one number for each of `width<T>` channels. Window j of a line begins at x[j right] and has `run` numbers.
#pragma once

#include <span>

#include "core/kernels/lanes.hpp"

namespace hardgrad::kernels {

/// One line of the windows, and its weights [run, width<T>].
template <class T>
struct WindowLine {
  const T *x, *weight;
};

/// out_j (+)= start + sum over lines and n < run of x[j right + n] weight[n], for `count` windows. start [width<T>]; out has
/// rows of `channels` numbers; the first `used` of each are written.
template <class T>
inline void multiply_windows(std::span<const WindowLine<T>> lines, std::size_t right, std::size_t run, std::size_t count,
                             const T* start, T* out, std::size_t channels, std::size_t used, bool store) {
  const auto block = [&]<std::size_t P>(std::size_t j) {
    Batch<T> sums[P];
    for (auto& sum : sums) sum = Batch<T>::load_unaligned(start);
    for (const auto& [x, weight] : lines)
      for (std::size_t n = 0; n < run; ++n) {
        const auto w = Batch<T>::load_unaligned(weight + n * width<T>);
        for (std::size_t p = 0; p < P; ++p) sums[p] = xsimd::fma(Batch<T>(x[(j + p) * right + n]), w, sums[p]);
      }
    for (std::size_t p = 0; p < P; ++p) {
      alignas(64) T all[width<T>];
      sums[p].store_aligned(all);
      T* to = out + (j + p) * channels;
      for (std::size_t c = 0; c < used; ++c) to[c] = store ? all[c] : to[c] + all[c];
    }
    return j + P;
  };
  std::size_t j = 0;
  while (j + 8 <= count) j = block.template operator()<8>(j);
  while (j + 4 <= count) j = block.template operator()<4>(j);
  while (j < count) j = block.template operator()<1>(j);
}

/// to[n] += sum over `count` windows of x[j right + n] g_j, for n < run; g [count, width<T>], to [run, width<T>].
template <class T>
inline void add_window_gradients(const T* x, std::size_t right, std::size_t run, std::size_t count, const T* g, T* to) {
  const auto block = [&]<std::size_t Q>(std::size_t n) {
    Batch<T> sums[Q];
    for (auto& sum : sums) sum = Batch<T>(T{0});
    for (std::size_t j = 0; j < count; ++j) {
      const auto g_j = Batch<T>::load_unaligned(g + j * width<T>);
      for (std::size_t q = 0; q < Q; ++q) sums[q] = xsimd::fma(Batch<T>(x[j * right + n + q]), g_j, sums[q]);
    }
    for (std::size_t q = 0; q < Q; ++q) {
      T* sum = to + (n + q) * width<T>;
      (Batch<T>::load_unaligned(sum) + sums[q]).store_unaligned(sum);
    }
    return n + Q;
  };
  std::size_t n = 0;
  while (n + 8 <= run) n = block.template operator()<8>(n);
  while (n < run) n = block.template operator()<1>(n);
}

}  // namespace hardgrad::kernels
