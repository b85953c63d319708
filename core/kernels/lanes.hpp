// Loops over whole SIMD registers. The incomplete last register overlaps the one before, or goes through a padded copy if there
// is none, so that a result does not depend on the number's position in the array.
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

/// The sum of a register's numbers.
template <class T>
T lane_sum(const Batch<T>& x) {
#if XSIMD_VERSION_MAJOR < 9
  return xsimd::hadd(x);
#else
  return xsimd::reduce_add(x);
#endif
}

/// A full register of an array.
template <class T>
struct FullLane {
  std::size_t at;
  Batch<T> load(const T* p) const { return Batch<T>::load_unaligned(p + at); }
  Batch<T> load_own(const T* p) const { return load(p); }
  void store(T* p, const Batch<T>& x) const { x.store_unaligned(p + at); }
};

/// The last register of an array that is longer than a register. Of its numbers only `own` are stored; the others belong to the
/// register before.
template <class T>
struct LastLane {
  std::size_t at;
  xsimd::batch_bool<T> own;
  Batch<T> load(const T* p) const { return Batch<T>::load_unaligned(p + at); }
  /// 0 for the others, so that sums over all registers count each number once
  Batch<T> load_own(const T* p) const { return xsimd::select(own, load(p), Batch<T>(T{0})); }
  void store(T* p, const Batch<T>& x) const { xsimd::select(own, x, load(p)).store_unaligned(p + at); }
};

/// An array of `count` numbers, fewer than a register holds; loads are padded with zeros.
template <class T>
struct PartLane {
  std::size_t count;
  Batch<T> load(const T* p) const {
    alignas(64) T padded[width<T>] = {};
    for (std::size_t i = 0; i < count; ++i) padded[i] = p[i];
    return Batch<T>::load_aligned(padded);
  }
  Batch<T> load_own(const T* p) const { return load(p); }
  void store(T* p, const Batch<T>& x) const {
    alignas(64) T padded[width<T>];
    x.store_aligned(padded);
    for (std::size_t i = 0; i < count; ++i) p[i] = padded[i];
  }
};

/// True from entry `first` of a register on.
template <class T>
inline xsimd::batch_bool<T> from_entry(std::size_t first) {
  alignas(64) T entries[width<T>];
  for (std::size_t i = 0; i < width<T>; ++i) entries[i] = static_cast<T>(i);
  return Batch<T>::load_aligned(entries) >= Batch<T>(static_cast<T>(first));
}

/// Calls f(lane) for each register of n numbers.
template <class T, class F>
inline void for_lanes(std::size_t n, F&& f) {
  if (n < width<T>) {
    if (n > 0) f(PartLane<T>{n});
    return;
  }
  std::size_t i = 0;
  for (; i + width<T> <= n; i += width<T>) f(FullLane<T>{i});
  if (i < n) f(LastLane<T>{n - width<T>, from_entry<T>(width<T> - (n - i))});
}

/// out[i] = f(in[i]); may be in place.
template <class T, class F>
inline void map(const T* in, T* out, std::size_t n, F&& f) {
  for_lanes<T>(n, [&](auto lane) { lane.store(out, f(lane.load(in))); });
}

}  // namespace hardgrad::kernels
