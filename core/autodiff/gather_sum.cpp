#include "core/autodiff/gather_sum.hpp"

#include <array>

#include "core/autodiff/require.hpp"
#include "core/kernels/narrow.hpp"

namespace hardgrad {
namespace {

constexpr std::size_t most_parts = 4;

/// A matrix whose rows are chosen by an index.
template <class Matrix>
struct Indexed {
  Matrix x;
  const int* index;  // null: the identity
};
template <class Matrix>
using Parts = std::array<Indexed<Matrix>, most_parts>;

/// to = x_0 + .. + x_{n-1} in one pass.
template <std::size_t n, bool rectified, class T, class Cols>
void sum_rows(std::array<const T*, most_parts> x, Cols cols, T* __restrict to) {
  for (std::size_t c = 0; c < cols; ++c) {
    T total = x[0][c];
    for (std::size_t j = 1; j < n; ++j) total += x[j][c];
    to[c] = rectified && total < T{0} ? T{0} : total;  // NaN stays NaN
  }
}

/// to[r] = sum_j x_j[index_j[r]], or its positive part
template <bool rectified, class T, class Cols>
void add_up(const Parts<const T*> addends, std::size_t count, std::size_t rows, Cols cols, T* to) {
  for (std::size_t r = 0; r < rows; ++r, to += cols) {
    std::array<const T*, most_parts> x;
    std::size_t n = 0;
    for (std::size_t j = 0; j < count; ++j)
      if (const int i = addends[j].index ? addends[j].index[r] : static_cast<int>(r); i >= 0) x[n++] = addends[j].x + i * cols;
    switch (n) {
      case 0: std::fill_n(to, cols, T{0}); break;
      case 1: sum_rows<1, rectified>(x, cols, to); break;
      case 2: sum_rows<2, rectified>(x, cols, to); break;
      case 3: sum_rows<3, rectified>(x, cols, to); break;
      default: sum_rows<4, rectified>(x, cols, to);
    }
  }
}

/// x_j[index_j[r]] += g[r], or its entries where y[r] > 0
template <bool rectified, class T, class Cols>
void scatter(const Parts<T*> parts, std::size_t count, std::size_t rows, Cols cols, const T* g, const T* y) {
  for (std::size_t r = 0; r < rows; ++r, g += cols, y += cols)
    for (std::size_t j = 0; j < count; ++j) {
      if (parts[j].index[r] < 0) continue;
      T* __restrict to = parts[j].x + parts[j].index[r] * cols;
      const T* __restrict from = g, * __restrict sum = y;
      for (std::size_t c = 0; c < cols; ++c) to[c] += rectified && !(sum[c] > T{0}) ? T{0} : from[c];
    }
}

}  // namespace

// gx_j[index_j[r]] += g[r] where the sum is kept
template <class T>
Var<T> gather_sum(std::size_t rows, std::initializer_list<Part<T>> parts, bool rectified) {
  Parts<Var<T>> kept{};
  std::size_t count = 0;
  for (const auto& part : parts) {
    if (!part.x) continue;
    if (count == most_parts) throw Bug("gather_sum: too many parts");
    if ((part.index.empty() ? part.x.rows() : part.index.size()) != rows) throw Bug("gather_sum: rows differ");
    require_indices("gather_sum", part.index, -1, part.x.rows());
    kept[count++] = {part.x, part.index.empty() ? nullptr : part.x.tape->keep(part.index).data()};
    require_shapes(part.x.cols() == kept[0].x.cols(), "gather_sum", {kept[0].x, part.x});
  }
  if (count == 0) throw Bug("gather_sum: no parts");
  auto& tape = *kept[0].x.tape;
  const std::size_t cols = kept[0].x.cols();
  auto out = tape.output(rows, cols, {kept[0].x, kept[1].x, kept[2].x, kept[3].x});
  const auto to = tape.mutable_value(out);
  Parts<const T*> addends{};
  for (std::size_t j = 0; j < count; ++j) addends[j] = {kept[j].x.value().data, kept[j].index};
  kernels::for_width(cols, [&](auto cols) {
    rectified ? add_up<true>(addends, count, rows, cols, to.data) : add_up<false>(addends, count, rows, cols, to.data);
  });
  tape.on_backward({out}, [=](Tape<T>& t) {
    const T *g = t.cotangent(out).data, *y = rectified ? t.value(out).data : g;  // unread: the sum may be overwritten
    Parts<T*> scattered{};
    std::size_t indexed = 0;
    for (std::size_t j = 0; j < count; ++j)
      if (kept[j].index && t.needs_gradient(kept[j].x))
        scattered[indexed++] = {t.sink(kept[j].x).scattered().data, kept[j].index};
    if (indexed > 0)
      kernels::for_width(cols, [&](auto cols) {
        rectified ? scatter<true>(scattered, indexed, rows, cols, g, y) : scatter<false>(scattered, indexed, rows, cols, g, y);
      });
    std::size_t as_it_stands = count;  // without a rectifier the last of these parts takes over the cotangent's memory
    for (std::size_t j = 0; j < count; ++j) {
      if (kept[j].index || !t.needs_gradient(kept[j].x)) continue;
      if (rectified) {
        t.sink(kept[j].x).accumulate([&](std::size_t i) { return y[i] > T{0} ? g[i] : T{0}; });
        continue;
      }
      if (as_it_stands < count) t.sink(kept[as_it_stands].x).accumulate([&](std::size_t i) { return g[i]; });
      as_it_stands = j;
    }
    if (as_it_stands < count) t.pass_on(out, kept[as_it_stands].x);
  });
  return out;
}

template Var<float> gather_sum(std::size_t, std::initializer_list<Part<float>>, bool);
template Var<double> gather_sum(std::size_t, std::initializer_list<Part<double>>, bool);

}  // namespace hardgrad
