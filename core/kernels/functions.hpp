// exp, tanh and the logistic function on SIMD registers: -inf, inf and NaN behave as in <cmath>.
#pragma once

#include "core/kernels/lanes.hpp"

namespace hardgrad::kernels {

template <class T>
inline Batch<T> exp(const Batch<T>& x) {
  return xsimd::exp(x);
}

template <class T>
inline Batch<T> tanh(const Batch<T>& x) {
  return xsimd::tanh(x);
}

/// 1 / (1 + exp(-x)); exp(-x) = inf gives an exact 0.
template <class T>
inline Batch<T> sigmoid(const Batch<T>& x) {
  return Batch<T>(T{1}) / (Batch<T>(T{1}) + kernels::exp<T>(-x));
}

}  // namespace hardgrad::kernels
