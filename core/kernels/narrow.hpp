// Loops over short rows, whose length is a constant to the compiler.
#pragma once

#include <cstddef>
#include <type_traits>

namespace hardgrad::kernels {

inline constexpr std::size_t narrow = 15;  ///< the longest of them

/// Calls f(cols) with the same value, as a compile-time constant if it is 1 to `narrow`.
template <std::size_t N = 1, class F>
inline void for_width(std::size_t cols, F&& f) {
  if (cols == N)
    f(std::integral_constant<std::size_t, N>{});
  else if constexpr (N < narrow)
    for_width<N + 1>(cols, f);
  else
    f(cols);
}

}  // namespace hardgrad::kernels
