// Lazy sums of gathered matrices: `i.after(u) + i.read(memory)` is one pass over memory, without intermediate matrices.
#pragma once

#include <array>
#include <span>
#include <utility>
#include <vector>

#include "core/autodiff/cross_entropy.hpp"
#include "core/autodiff/product.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/reduce.hpp"

namespace hardgrad {

/// Addends of the same shape [R, C], each selected rows of a matrix. They are added on conversion to a matrix. An empty sum is
/// a valid addend.
template <class T>
class Sum {
 public:
  Sum() = default;
  /// All rows of x.
  Sum(Var<T> x) : Sum(x, std::span<const int>{}) {}
  /// Rows index[r] of x; -1 adds nothing; an empty index means all rows in order. A span must outlive the sum.
  Sum(Var<T> x, std::span<const int> index) : addends_{{{x, {}, index}}}, count_(x ? 1 : 0) {}
  Sum(Var<T> x, std::vector<int>&& index) : addends_{{{x, std::move(index), {}}}}, count_(x ? 1 : 0) {}

  friend Sum operator+(Sum a, Sum b) {
    if (a.count_ + b.count_ > a.addends_.size()) a = Sum(Var<T>(a));
    if (a.count_ + b.count_ > a.addends_.size()) b = Sum(Var<T>(b));
    for (std::size_t j = 0; j < b.count_; ++j) a.addends_[a.count_++] = std::move(b.addends_[j]);
    return a;
  }

  explicit operator bool() const { return count_ > 0; }
  std::size_t rows() const {
    if (count_ == 0) return 0;
    const auto index = addends_[0].index();
    return index.empty() ? addends_[0].x.rows() : index.size();
  }
  /// Rows of the matrices that are added.
  std::size_t rows_of_addends() const {
    std::size_t total = 0;
    for (std::size_t j = 0; j < count_; ++j) total += addends_[j].x.rows();
    return total;
  }
  /// f(sum) = the sum of f(addend), for a linear f of the rows of a matrix.
  template <class F>
  Sum mapped(F f) && {
    for (std::size_t j = 0; j < count_; ++j) addends_[j].x = f(addends_[j].x);
    return std::move(*this);
  }
  /// [R, C]; a single addend with an empty index is returned without a copy.
  operator Var<T>() const {
    if (count_ == 1 && addends_[0].index().empty()) return addends_[0].x;
    return gathered(false);
  }
  /// max(0, sum) [R, C]
  friend Var<T> relu(const Sum& sum) { return sum.gathered(true); }

 private:
  struct Addend {
    Var<T> x;
    std::vector<int> own;
    std::span<const int> lent;
    std::span<const int> index() const { return own.empty() ? lent : own; }
  };
  Var<T> gathered(bool rectified) const {
    if (count_ == 0) return {};
    const auto part = [&](std::size_t j) { return Gathered<T>{addends_[j].x, addends_[j].index()}; };
    return gather_sum<T>(rows(), {part(0), part(1), part(2), part(3)}, rectified);
  }

  std::array<Addend, 4> addends_;
  std::size_t count_ = 0;
};

/// Sums of every `count` of the rows index [R count] of x -> [R, C].
template <class T>
Sum<T> sum_of_rows(Var<T> x, std::vector<int> index, std::size_t count) {
  if (count == 1) return {x, std::move(index)};
  return bag(x, std::span<const int>(index), count);
}

/// Cross-entropy of the logits u W', u [R, I] and W [V, I], label [R]. If the addends of u have fewer rows, they are multiplied
/// by W, and u itself is not formed.
template <class T>
Classified<T> linear_cross_entropy(Sum<T> u, Var<T> weight, std::span<const int> label) {
  if (u.rows_of_addends() >= u.rows()) return linear_cross_entropy<T>(u, weight, Var<T>{}, label);
  return cross_entropy<T>(std::move(u).mapped([&](Var<T> x) { return linear(x, weight); }), label);
}

}  // namespace hardgrad
