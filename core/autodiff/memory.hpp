// Memories of N cells of W numbers: memory p has the rows p N .. p N + N - 1 of a matrix [P N, W]. Row r = 0..R-1 has memory
// of[r], so that rows need no copy before they write. Heads read it by attention (attention.hpp) and write to it here. In
// matrices of heads, head h of row r is row r H + h. (Graves, Wayne & Danihelka 2014, Neural Turing machines, sec. 3.)
#pragma once

#include "core/autodiff/tape.hpp"

namespace hardgrad {

/// q_h . M_i / sqrt((|q_h|^2 + floor) (|M_i|^2 + floor)) for each head and each of the N cells of its row: query [R H, W], memory
/// [P N, W] -> [R H, N].
template <class T>
Var<T> cosines(Var<T> query, Var<T> memory, std::span<const int> of, std::size_t N, T floor);
/// Circular convolution of every row: out[r, i] = sum_j shift[r, j] w[r, (i - j + K) mod N], w [R, N], shift [R, 2 K + 1] for
/// shifts from -K to K -> [R, N].
template <class T>
Var<T> circular_shift(Var<T> w, Var<T> shift);
/// M'_i = M_i (.) prod_h (1 - w_hi erase_h) + sum_h w_hi add_h for the cells i of each row: memory [P N, W], w [R H, N], erase
/// and add [R H, W] -> [R N, W], a memory for each row.
template <class T>
Var<T> write_cells(Var<T> memory, std::span<const int> of, Var<T> w, Var<T> erase, Var<T> add);

}  // namespace hardgrad
