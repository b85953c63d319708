// exp, log, tanh and the logistic function on SIMD registers. -inf, inf and NaN behave as in <cmath>.
#pragma once

#include <type_traits>

#include "core/kernels/lanes.hpp"

namespace hardgrad::kernels {

template <class T>
inline Batch<T> exp(const Batch<T>& x) {
  return xsimd::exp(x);
}

template <class T>
inline Batch<T> log(const Batch<T>& x) {
  return xsimd::log(x);
}

/// out[i] = exp(in[i]); may be in place.
template <class T>
inline void exp_all(const T* in, T* out, std::size_t n) {
  map(in, out, n, [](const Batch<T>& v) { return kernels::exp<T>(v); });
}

/// log(1 + x), precise for small x.
template <class T>
inline Batch<T> log1p(const Batch<T>& x) {
  return xsimd::log1p(x);
}

/// log(1 + x) for x in [0, 1], e.g. x = exp(-|y|). In float: x P(x), a minimax fit with relative error 5e-9 (1.4e-7 with
/// rounding).
template <class T>
inline Batch<T> log1p_unit(const Batch<T>& x) {
  if constexpr (!std::is_same_v<T, float>) {
    return xsimd::log1p(x);
  } else {
    constexpr float c[] = {-0.4999990165233612f,  0.3332996368408203f,   -0.24954134225845337f,
                           0.1967593878507614f,   -0.15305592119693756f, 0.10603653639554977f,
                           -0.05695951730012894f, 0.019851453602313995f, -0.0032440233044326305f};
    Batch<T> p(c[8]);
    for (int k = 7; k >= 0; --k) p = xsimd::fma(p, x, Batch<T>(c[k]));
    return xsimd::fma(p * x, x, x);
  }
}

/// tanh(x). In float: x P(x^2) / Q(x^2), a minimax fit on |x| < 9.02 with relative error 2e-8 (3e-7 with rounding). Beyond, the
/// fit exceeds 1 and is clipped to 1, to which tanh rounds.
template <class T>
inline Batch<T> tanh(const Batch<T>& x) {
  if constexpr (!std::is_same_v<T, float>) {
    return xsimd::tanh(x);
  } else {
    using B = Batch<T>;
    const B a = xsimd::max(B(-9.5f), xsimd::min(B(9.5f), x));  // both return a NaN second operand
    const B z = a * a;
    const auto horner = [&](float c4, float c3, float c2, float c1) {
      return xsimd::fma(xsimd::fma(xsimd::fma(xsimd::fma(B(c4), z, B(c3)), z, B(c2)), z, B(c1)), z, B(1.f));
    };
    const B p = horner(1.331887933275766e-08f, 2.0583336663548835e-05f, 3.4940256737172604e-03f, 0.13379710912704468f);
    const B q = horner(7.761938718431338e-07f, 3.2830782583914697e-04f, 2.5871040299534798e-02f, 0.46713024377822876f);
    return xsimd::max(B(-1.f), xsimd::min(B(1.f), a * p / q));
  }
}

/// 1 / (1 + exp(-x)); exp(-x) = inf gives an exact 0.
template <class T>
inline Batch<T> sigmoid(const Batch<T>& x) {
  return Batch<T>(T{1}) / (Batch<T>(T{1}) + kernels::exp<T>(-x));
}

}  // namespace hardgrad::kernels
