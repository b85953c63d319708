// Several heads of attention as columns of one site (Vaswani et al. 2017, sec. 3.2.2): every head has its own keys and values,
// and chooses its own item.
//
// Head h of example b is number b H + h, with as many items as b. Values of the heads' items are stored head by head. With one
// head nothing is rearranged.
#pragma once

#include <vector>

#include "core/autodiff/attention.hpp"
#include "core/autodiff/product.hpp"
#include "core/autodiff/rearrange.hpp"

namespace hardgrad {

class Heads {
 public:
  Heads() = default;
  Heads(const Items& items, int heads) : heads_(heads) {
    std::vector<int> count;
    for (std::size_t b = 0; b < items.examples(); ++b) count.insert(count.end(), heads, items.count(static_cast<int>(b)));
    items_ = Items(count);
    for (std::size_t b = 0; b < items.examples(); ++b)
      for (int h = 0; h < heads; ++h)
        for (int i = 0; i < items.count(static_cast<int>(b)); ++i)
          place_.push_back(items.row(static_cast<int>(b), i) * heads + h);
  }

  /// The items of every head of every example.
  const Items& items() const { return items_; }
  /// [N H] the heads of the examples [N].
  std::vector<int> of(std::span<const int> example) const {
    std::vector<int> head;
    head.reserve(example.size() * heads_);
    for (int b : example)
      for (int h = 0; h < heads_; ++h) head.push_back(b * heads_ + h);
    return head;
  }

  /// x [N, H C] of N queries -> [N H, C]: head h has the columns from h C on.
  template <class T>
  Var<T> queries(Var<T> x) const {
    return heads_ == 1 ? x : reshape(x, x.cols() / heads_);
  }
  /// x [N, C] -> [N H, C]: every head has all columns.
  template <class T>
  Var<T> same_query(Var<T> x) const {
    if (heads_ == 1) return x;
    std::vector<int> row(x.rows() * heads_);
    for (std::size_t n = 0; n < row.size(); ++n) row[n] = static_cast<int>(n) / heads_;
    return gather_rows(x, std::span<const int>(row));
  }
  /// x [items, H C] -> [heads' items, C]: head h has the columns from h C on.
  template <class T>
  Var<T> keys(Var<T> x) const {
    if (heads_ == 1) return x;
    return gather_rows(reshape(x, x.cols() / heads_), std::span<const int>(place_));
  }
  /// W^h x of each head's items: x [items, I], W = [W^1, .., W^H] [O, H I] -> [heads' items, O].
  template <class T>
  Var<T> values(Var<T> x, Var<T> weight) const {
    if (heads_ == 1) return linear(x, weight);
    // Reorder the rows (o, h) to (h, o): one product for all heads.
    std::vector<int> row;
    for (int h = 0; h < heads_; ++h)
      for (std::size_t o = 0; o < weight.rows(); ++o) row.push_back(static_cast<int>(o) * heads_ + h);
    return keys(linear(x, gather_rows(reshape(weight, x.cols()), std::span<const int>(row))));
  }

 private:
  int heads_ = 1;
  Items items_;
  std::vector<int> place_;  // [heads' items] item * H + head
};

}  // namespace hardgrad
