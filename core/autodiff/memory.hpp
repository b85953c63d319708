// A separate memory for each row: N cells of W numbers, rows r N .. r N + N - 1 of a matrix [R N, W]. Heads read it by
// attention (attention.hpp) and write to it here. In matrices of heads, head h of row r is row r H + h. (Graves, Wayne &
// Danihelka 2014, Neural Turing machines, sec. 3.)
#pragma once

#include "core/autodiff/tape.hpp"

namespace hardgrad {

/// x_r / sqrt(|x_r|^2 + floor): rows [R, C] scaled to length 1, so that their products are cosines. Rows of zeros stay zero.
template <class T>
Var<T> unit_rows(Var<T> x, T floor);
/// Circular convolution of every row: out[r, i] = sum_j shift[r, j] w[r, (i - j + K) mod N], w [R, N], shift [R, 2 K + 1] for
/// shifts from -K to K -> [R, N].
template <class T>
Var<T> circular_shift(Var<T> w, Var<T> shift);
/// M'_i = M_i (.) prod_h (1 - w_hi erase_h) + sum_h w_hi add_h for the cells i of each row: memory [R N, W], w [R H, N], erase
/// and add [R H, W] -> [R N, W].
template <class T>
Var<T> write_cells(Var<T> memory, Var<T> w, Var<T> erase, Var<T> add);

}  // namespace hardgrad
