// Attention: scores of a query against the items of its own example, and mixtures of these items. Examples may have different
// numbers of items; row r of the queries belongs to example[r]. Consecutive rows of one example form one matrix product.
#pragma once

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "core/autodiff/tape.hpp"

namespace hardgrad {

/// Assigns the rows of a matrix to examples: item i of example b is row first[b] + i; examples follow each other.
class Items {
 public:
  Items() = default;
  /// Example b has count[b] items.
  explicit Items(std::span<const int> count) : first_(count.size() + 1, 0) {
    std::partial_sum(count.begin(), count.end(), first_.begin() + 1);
    for (int n : count) most_ = std::max(most_, static_cast<std::size_t>(n));
  }
  Items(std::size_t examples, std::size_t each) : Items(std::vector<int>(examples, static_cast<int>(each))) {}

  std::size_t examples() const { return first_.size() - 1; }
  std::size_t total() const { return first_.back(); }
  std::size_t most() const { return most_; }  ///< S: largest number of items of an example
  int row(int example, int i) const { return first_[example] + i; }
  int count(int example) const { return first_[example + 1] - first_[example]; }
  std::span<const int> first() const { return first_; }  ///< [B + 1]
  bool operator==(const Items&) const = default;

 private:
  std::vector<int> first_{0};
  std::size_t most_ = 0;
};

/// e[r, i] = query_r . key_{example r, i}: query [R, D], keys [items, D] -> [R, S], 0 beyond an example's items.
template <class T>
Var<T> dot_scores(Var<T> query, Var<T> keys, std::span<const int> example, const Items& items);
/// e[r, i] = v_h . tanh(query_r + key_{example r, i}) with h = r mod H: v [H, D] -> [R, S],
/// 0 beyond an example's items. With H = 1 all rows share v. With H attention heads,
/// consecutive rows are the heads of one query. The backward pass recomputes the tanh.
template <class T>
Var<T> additive_scores(Var<T> query, Var<T> keys, Var<T> v, std::span<const int> example, const Items& items);
/// z[r] = sum_i weights[r, i] values_{example r, i}: weights [R, S], values [items, D] -> [R, D].
template <class T>
Var<T> mix(Var<T> weights, Var<T> values, std::span<const int> example, const Items& items);

/// log a[r, i] with a = 1 / (1 + |x_r - y_{example r, i}|), the Euclidean distance (Yin et al. 2016, sec. 4): x [R, D], y
/// [items, D] -> [R, S], -inf beyond an example's items. Equal items take no gradient, since the distance has a kink there.
template <class T>
Var<T> match_scores(Var<T> x, Var<T> y, std::span<const int> example, const Items& items);

// Memories of N cells of W numbers: memory p has the rows p N .. p N + N - 1 of a matrix [P N, W]. Row r = 0..R-1 has memory
// of[r], so that rows need no copy before they write. Heads read it by attention (attention.hpp) and write to it here. In
// matrices of heads, head h of row r is row r H + h. (Graves, Wayne & Danihelka 2014, Neural Turing machines, sec. 3.)

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
