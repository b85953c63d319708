// The precision of a network's numbers, and its rounding.
#pragma once

#include <limits>

#include "core/support/named.hpp"

namespace hardgrad {

enum class Precision : char { float32, float64 };
inline constexpr Named<Precision> precisions[] = {{"float", Precision::float32}, {"double", Precision::float64}};

template <class T>
inline constexpr Precision precision_of = sizeof(T) == 4 ? Precision::float32 : Precision::float64;

constexpr double epsilon_of(Precision precision) {
  return precision == Precision::float32 ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
}
/// Relative rounding of a gradient that is computed in it; smaller biases are not tested.
constexpr double rounding_of(Precision precision) { return precision == Precision::float32 ? 1e-4 : 1e-9; }

}  // namespace hardgrad
