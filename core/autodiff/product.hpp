// Matrix products into memory of the tape; large ones use BLAS.
#pragma once

#include <span>

#include "core/autodiff/tape.hpp"

namespace hardgrad {

/// The first `cols` columns of a matrix with `stride` columns.
template <class T>
struct Block {
  T* data;
  std::size_t rows, cols, stride;

  template <class U>
  Block(MatrixView<U> whole) : data(whole.data), rows(whole.rows), cols(whole.cols), stride(whole.cols) {}
  template <class U>
  Block(MatrixView<U> whole, std::size_t columns) : Block(whole) {
    cols = columns;
  }
};

/// c (+)= alpha op(a) op(b): the only call of BLAS. beta 0 stores, 1 adds.
template <class T>
void gemm(const Block<const T>& a, bool transpose_a, const Block<const T>& b, bool transpose_b, const Block<T>& c,
          T beta = T{0}, T alpha = T{1});

/// out = x W' + b; b may be empty.
template <class T>
void put_linear(MatrixView<const T> x, MatrixView<const T> weight, MatrixView<const T> bias, MatrixView<T> out);
/// x [R, I] W' + b: W [O, I], b [1, O] or empty -> [R, O].
template <class T>
Var<T> linear(Var<T> x, Var<T> weight, Var<T> bias = {});
/// In a closure: (+)= the gradients of y = x W' + b (b may be empty) in x, W and b, given the cotangent slope [R, O] of y, or
/// diag(factor) slope with factor [R], if given: rows with factor 0 are not read.
template <class T>
void linear_backward(Tape<T>& tape, Var<T> x, Var<T> weight, Var<T> bias, MatrixView<const T> slope,
                     std::span<const T> factor = {});
/// base [R, O] + x [R, I] W': the second product of a recurrent step, in the memory of `base` (see Tape::output_over).
template <class T>
Var<T> add_linear(Var<T> base, Var<T> x, Var<T> weight);
/// a [R, I] b [I, C] -> [R, C]
template <class T>
Var<T> matmul(Var<T> a, Var<T> b);

}  // namespace hardgrad
