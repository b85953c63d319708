// A quotient, entry by entry.
#pragma once

#include "core/autodiff/tape.hpp"

namespace hardgrad {

/// a / b, both [R, C].
template <class T>
Var<T> divide(Var<T> a, Var<T> b);
/// Row r of x [R, C] over w [R, 1]: what a sum of weights is normalised by.
template <class T>
Var<T> divide_rows(Var<T> x, Var<T> w);

}  // namespace hardgrad
