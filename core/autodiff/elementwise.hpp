// Elementwise operations. All matrices of one call have the same shape [R, C] unless stated otherwise.
#pragma once

#include "core/autodiff/tape.hpp"

namespace hardgrad {

template <class T>
Var<T> add(Var<T> a, Var<T> b);
template <class T>
Var<T> subtract(Var<T> a, Var<T> b);
template <class T>
Var<T> multiply(Var<T> a, Var<T> b);
/// factor * a + shift
template <class T>
Var<T> affine(Var<T> a, T factor, T shift = T{0});
/// One column of x [R C, S], scaled and shifted, in rows of C: factor * x[r C + j, column] + shift -> [R, C].
template <class T>
Var<T> affine_column(Var<T> x, std::size_t column, std::size_t cols, T factor, T shift = T{0});
/// x [R, C] plus the row b [1, C].
template <class T>
Var<T> add_row(Var<T> x, Var<T> b);
/// Row r of x [R, C] times w [R, 1].
template <class T>
Var<T> scale_rows(Var<T> x, Var<T> w);
template <class T>
Var<T> tanh(Var<T> a);
template <class T>
Var<T> sigmoid(Var<T> a);
template <class T>
Var<T> relu(Var<T> a);
/// a where it is positive, slope * a elsewhere.
template <class T>
Var<T> leaky_relu(Var<T> a, T slope);
template <class T>
Var<T> exp(Var<T> a);
template <class T>
Var<T> cos(Var<T> a);
/// Natural logarithm.
template <class T>
Var<T> log(Var<T> a);
template <class T>
Var<T> square(Var<T> a);
/// log(1 + exp a), without overflow.
template <class T>
Var<T> softplus(Var<T> a);

/// a / b, both [R, C].
template <class T>
Var<T> divide(Var<T> a, Var<T> b);
/// Row r of x [R, C] divided by w [R, 1], e.g. to normalise a weighted sum.
template <class T>
Var<T> divide_rows(Var<T> x, Var<T> w);

}  // namespace hardgrad
