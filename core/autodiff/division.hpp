// Elementwise quotients.
#pragma once

#include "core/autodiff/tape.hpp"

namespace hardgrad {

/// a / b, both [R, C].
template <class T>
Var<T> divide(Var<T> a, Var<T> b);
/// Row r of x [R, C] divided by w [R, 1], e.g. to normalise a weighted sum.
template <class T>
Var<T> divide_rows(Var<T> x, Var<T> w);

}  // namespace hardgrad
