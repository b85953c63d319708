// Convolutions of images: products of windows with weights, and sums of shifted planes.
#pragma once

#include <span>

#include "core/kernels/lanes.hpp"

namespace hardgrad::kernels {

// Products of the windows of an image with weights, read from the image in place: no matrix of all windows is made.
//
// A register holds one number for each of `width<T>` channels. Window j of a line begins at x[j right] and has `run` numbers.

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

// Sums of shifted planes, for convolutions. A plane has all pixels of one channel, so that a register holds pixels that are
// adjacent and full registers do not depend on the number of channels.

/// Channels and registers of pixels that are summed at once: with one number and a line of registers, 28 of 32 registers with
/// AVX-512, else 11 of 16.
template <class T>
inline constexpr std::size_t plane_channels = width<T> * sizeof(T) == 64 ? 8 : 4;
template <class T>
inline constexpr std::size_t plane_registers = width<T> * sizeof(T) == 64 ? 3 : 2;
/// Planes are processed in pieces of this many pixels.
template <class T>
inline constexpr std::size_t plane_piece = plane_registers<T>* width<T>;

/// Calls f<N>(first) for the channels from `first` on, N at once, up to `channels`.
template <std::size_t N, class F>
inline void for_channels(std::size_t channels, F f, std::size_t first = 0) {
  for (; first + N <= channels; first += N) f.template operator()<N>(first);
  if constexpr (N > 1) for_channels<N - 1>(channels, f, first);
}

/// out_c[i] = start[c] + sum over t of weight(t, c) x_t[i] for c < `channels` and i < `pixels`, a multiple of `plane_piece`;
/// weight [planes x, channels]; out_c begins at out + c `apart`.
template <class T>
inline void combine_planes(std::span<const T* const> x, const T* weight, const T* start, std::size_t channels,
                           std::size_t pixels, T* out, std::size_t apart) {
  constexpr std::size_t P = plane_registers<T>;
  for (std::size_t i = 0; i < pixels; i += plane_piece<T>)
    for_channels<plane_channels<T>>(channels, [&]<std::size_t N>(std::size_t first) {
      Batch<T> sums[N][P];
      for (std::size_t c = 0; c < N; ++c)
        for (std::size_t p = 0; p < P; ++p) sums[c][p] = Batch<T>(start[first + c]);
      const T* by = weight + first;
      for (const T* plane : x) {
        Batch<T> some[P];
        for (std::size_t p = 0; p < P; ++p) some[p] = Batch<T>::load_unaligned(plane + i + p * width<T>);
        for (std::size_t c = 0; c < N; ++c) {
          const Batch<T> w(by[c]);
          for (std::size_t p = 0; p < P; ++p) sums[c][p] = xsimd::fma(w, some[p], sums[c][p]);
        }
        by += channels;
      }
      for (std::size_t c = 0; c < N; ++c)
        for (std::size_t p = 0; p < P; ++p) sums[c][p].store_unaligned(out + (first + c) * apart + i + p * width<T>);
    });
}

/// sums(c, t) [width<T>] += sum over i < `pixels` of g_c[i] x_t[i], a lane for every width<T>-th pixel: sums [channels, planes x];
/// `pixels` is a multiple of width<T>; g_c begins at g + c `apart`.
template <class T>
inline void correlate_planes(std::span<const T* const> x, const T* g, std::size_t channels, std::size_t pixels,
                             std::size_t apart, T* sums) {
  for_channels<plane_channels<T>>(channels, [&]<std::size_t N>(std::size_t first) {
    const auto some = [&]<std::size_t P>(std::size_t t) {
      Batch<T> now[N][P];
      for (auto& of_channel : now)
        for (auto& sum : of_channel) sum = Batch<T>(T{0});
      const T* planes[P];
      for (std::size_t p = 0; p < P; ++p) planes[p] = x[t + p];
      const T* of = g + first * apart;
      for (std::size_t i = 0; i < pixels; i += width<T>) {
        Batch<T> pixel[P];
        for (std::size_t p = 0; p < P; ++p) pixel[p] = Batch<T>::load_unaligned(planes[p] + i);
        for (std::size_t c = 0; c < N; ++c) {
          const auto slope = Batch<T>::load_unaligned(of + c * apart + i);
          for (std::size_t p = 0; p < P; ++p) now[c][p] = xsimd::fma(slope, pixel[p], now[c][p]);
        }
      }
      for (std::size_t c = 0; c < N; ++c)
        for (std::size_t p = 0; p < P; ++p) {
          T* to = sums + ((first + c) * x.size() + t + p) * width<T>;
          (Batch<T>::load_unaligned(to) + now[c][p]).store_unaligned(to);
        }
    };
    std::size_t t = 0;
    for (; t + plane_registers<T> <= x.size(); t += plane_registers<T>) some.template operator()<plane_registers<T>>(t);
    for (; t < x.size(); ++t) some.template operator()<1>(t);
  });
}

}  // namespace hardgrad::kernels
