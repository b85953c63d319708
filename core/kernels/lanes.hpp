// Loops over whole SIMD registers. The incomplete last register goes through a padded copy, so that a result does not depend on
// the number's position in the array.
#pragma once

// GCC 12 warns about its own AVX-512 intrinsics (GCC bug 105593), wherever they are inlined.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <algorithm>
#include <cstddef>
#include <xsimd/xsimd.hpp>

namespace hardgrad::kernels {

template <class T>
using Batch = xsimd::batch<T>;
template <class T>
inline constexpr std::size_t width = Batch<T>::size;

/// A full register of an array.
template <class T>
struct FullLane {
  std::size_t at;
  Batch<T> load(const T* p) const { return Batch<T>::load_unaligned(p + at); }
  void store(T* p, const Batch<T>& x) const { x.store_unaligned(p + at); }
};

/// The last `count` numbers of an array, fewer than a register holds; loads are padded with zeros.
template <class T>
struct PartLane {
  std::size_t at, count;
  Batch<T> load(const T* p) const {
    alignas(64) T padded[width<T>] = {};
    for (std::size_t i = 0; i < count; ++i) padded[i] = p[at + i];
    return Batch<T>::load_aligned(padded);
  }
  void store(T* p, const Batch<T>& x) const {
    alignas(64) T padded[width<T>];
    x.store_aligned(padded);
    for (std::size_t i = 0; i < count; ++i) p[at + i] = padded[i];
  }
};

/// Calls f(lane) for each register of n numbers.
template <class T, class F>
inline void for_lanes(std::size_t n, F&& f) {
  std::size_t i = 0;
  for (; i + width<T> <= n; i += width<T>) f(FullLane<T>{i});
  if (i < n) f(PartLane<T>{i, n - i});
}

/// out[i] = f(in[i]); may be in place.
template <class T, class F>
inline void map(const T* in, T* out, std::size_t n, F&& f) {
  for_lanes<T>(n, [&](auto lane) { lane.store(out, f(lane.load(in))); });
}

}  // namespace hardgrad::kernels
