// Sums, accumulated in double for any T.
#include "core/autodiff/reduce.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/autodiff/require.hpp"
#include "core/kernels/rows.hpp"

namespace hardgrad {

// y = sum_i w[i] x[i]; gx[i] = g w[i]. An entry of weight 0 does not count, even if it is infinite.
template <class T>
Var<T> weighted_sum(Var<T> x, std::span<const double> weight) {
  if (weight.size() != x.value().size()) throw Bug("weighted_sum: numbers of weights and entries differ");
  auto y = x.tape->output(1, 1, {x});
  const double total = kernels::live_dot(weight.data(), x.value().data, weight.size());
  *x.tape->mutable_value(y).data = static_cast<T>(total);
  if (!x.tape->needs_gradient(y)) return y;
  x.tape->on_backward({y}, [x, y, weight = x.tape->keep(weight)](Tape<T>& tape) {
    const double g = *tape.cotangent(y).data;
    tape.sink(x).accumulate([=](std::size_t i) { return static_cast<T>(g * weight[i]); });
  });
  return y;
}

// y = sum_i w[i] x[i]; gx[i] = g w[i]
template <class T>
Var<T> inner_product(Var<T> x, std::span<const T> weight) {
  if (weight.size() != x.value().size()) throw Bug("inner_product: numbers of weights and entries differ");
  auto y = x.tape->output(1, 1, {x});
  *x.tape->mutable_value(y).data = static_cast<T>(kernels::live_dot(weight.data(), x.value().data, weight.size()));
  x.tape->on_backward({y}, [x, y, weight](Tape<T>& tape) {
    const T g = *tape.cotangent(y).data;
    tape.sink(x).accumulate([=](std::size_t i) { return g * weight[i]; });
  });
  return y;
}

// y = w sum_i x[i]; gx[i] = g w
template <class T>
Var<T> sum(Var<T> x, double weight) {
  auto y = x.tape->output(1, 1, {x});
  const double total = weight == 0 ? 0 : weight * kernels::row_sum(x.value().data, x.value().size());
  *x.tape->mutable_value(y).data = static_cast<T>(total);
  x.tape->on_backward({y}, [x, y, weight](Tape<T>& tape) {
    const T g = static_cast<T>(*tape.cotangent(y).data * weight);
    tape.sink(x).accumulate([=](std::size_t) { return g; });
  });
  return y;
}

// y[r] = sum_j x[r, j]; gx[r, j] = g[r]
template <class T>
Var<T> row_sums(Var<T> x) {
  auto y = x.tape->output(x.rows(), 1, {x});
  const auto in = x.value();
  T* out = x.tape->mutable_value(y).data;
  for (std::size_t r = 0; r < in.rows; ++r) out[r] = static_cast<T>(kernels::row_sum(in.row(r), in.cols));
  x.tape->on_backward({y}, [x, y](Tape<T>& tape) {
    const T* g = tape.cotangent(y).data;
    const auto sink = tape.sink(x);
    for (std::size_t r = 0; r < sink.to.rows; ++r)
      Sink<T>{{sink.to.row(r), 1, sink.to.cols}, sink.first}.accumulate([gr = g[r]](std::size_t) { return gr; });
  });
  return y;
}

// y[r, j] = sum_{i < j} x[r, i] + sum_{i > j} x[r, i]; gx is the same of g
template <class T>
Var<T> sums_of_others(Var<T> x) {
  auto& tape = *x.tape;
  auto y = tape.output(x.rows(), x.cols(), {x});
  const auto after = tape.template scratch<double>(x.cols());
  const auto of_row = [after](const T* in, auto&& write) {
    double sum = 0;
    for (std::size_t j = after.size(); j-- > 0; sum += static_cast<double>(in[j])) after[j] = sum;
    sum = 0;
    for (std::size_t j = 0; j < after.size(); sum += static_cast<double>(in[j++])) write(j, static_cast<T>(sum + after[j]));
  };
  for (std::size_t r = 0; r < x.rows(); ++r)
    of_row(x.value().row(r), [to = tape.mutable_value(y).row(r)](std::size_t j, T v) { to[j] = v; });
  tape.on_backward({y}, [x, y, of_row](Tape<T>& tape) {
    const auto g = tape.cotangent(y);
    const auto sink = tape.sink(x);
    for (std::size_t r = 0; r < g.rows; ++r)
      of_row(g.row(r), [to = sink.to.row(r), first = sink.first](std::size_t j, T v) { to[j] = first ? v : to[j] + v; });
  });
  return y;
}

// y[k] = m + log sum_{r in k} exp(x[r] - m), m the largest of the group; gx[r] = g[k] exp(x[r] - y[k]).
// A group of only -inf gives -inf and takes no gradient.
template <class T>
Var<T> segment_logsumexp(Var<T> x, std::span<const int> group, std::size_t groups) {
  require_shapes(x.cols() == 1 && group.size() == x.rows(), "segment_logsumexp", {x});
  constexpr double nothing = -std::numeric_limits<double>::infinity();
  auto& tape = *x.tape;
  auto y = tape.output(groups, 1, {x});
  const auto exact = tape.template scratch<double>(groups);  // unrounded double: gradients sum to 1
  const T* in = x.value().data;
  T* out = tape.mutable_value(y).data;
  std::size_t r = 0;
  for (std::size_t k = 0; k < groups; ++k) {
    const std::size_t first = r;
    double most = nothing, total = 0;
    for (; r < group.size() && group[r] == static_cast<int>(k); ++r)
      if (in[r] > most || std::isnan(in[r])) most = in[r];  // a NaN stays
    if (r == first) throw Bug("segment_logsumexp: a group without rows, or groups out of order");
    for (std::size_t i = first; i < r && most != nothing; ++i) total += std::exp(static_cast<double>(in[i]) - most);
    exact[k] = most == nothing ? nothing : most + std::log(total);
    out[k] = static_cast<T>(exact[k]);
  }
  if (r != group.size()) throw Bug("segment_logsumexp: a row outside the groups, or groups out of order");
  if (!tape.needs_gradient(y)) return y;
  tape.on_backward({y}, [x, y, exact, group = tape.keep(group)](Tape<T>& tape) {
    const T *g = tape.cotangent(y).data, *in = tape.value(x).data;
    tape.sink(x).accumulate([=](std::size_t r) {
      const int k = group[r];
      if (g[k] == 0 || exact[k] == nothing) return T{0};
      return static_cast<T>(static_cast<double>(g[k]) * std::exp(static_cast<double>(in[r]) - exact[k]));
    });
  });
  return y;
}

// y[k] = sum_{r in k} x[r]; gx[r] = g[group r]
template <class T>
Var<T> segment_sums(Var<T> x, std::span<const int> group, std::size_t groups) {
  require_shapes(group.size() == x.rows(), "segment_sums", {x});
  require_indices("segment_sums", group, 0, groups);
  auto& tape = *x.tape;
  const std::size_t C = x.cols();
  auto y = tape.output(groups, C, {x});
  const auto total = tape.template scratch<double>(groups * C);
  std::fill(total.begin(), total.end(), 0.0);
  const T* in = x.value().data;
  for (std::size_t i = 0; i < group.size() * C; ++i) total[group[i / C] * C + i % C] += static_cast<double>(in[i]);
  std::copy(total.begin(), total.end(), tape.mutable_value(y).data);
  tape.on_backward({y}, [x, y, C, group = tape.keep(group)](Tape<T>& tape) {
    const T* g = tape.cotangent(y).data;
    tape.sink(x).accumulate([=](std::size_t i) { return g[group[i / C] * C + i % C]; });
  });
  return y;
}

// y[r] = sum_i x[r n + i]; gx[r n + i] = g[r]
template <class T>
Var<T> group_sums(Var<T> x, std::size_t count) {
  if (count == 1) return x;
  require_shapes(x.cols() == 1 && count > 0 && x.rows() % count == 0, "group_sums", {x});
  auto y = x.tape->output(x.rows() / count, 1, {x});
  const auto out = x.tape->mutable_value(y);
  const T* in = x.value().data;
  for (std::size_t r = 0; r < out.rows; ++r) out.data[r] = static_cast<T>(kernels::row_sum(in + r * count, count));
  x.tape->on_backward({y}, [x, y, count](Tape<T>& tape) {
    const auto g = tape.cotangent(y);
    const auto sink = tape.sink(x);
    for (std::size_t r = 0; r < g.rows; ++r)
      Sink<T>{{sink.to.row(r * count), count, 1}, sink.first}.accumulate([gr = g.data[r]](std::size_t) { return gr; });
  });
  return y;
}

#define HARDGRAD_INSTANTIATE(T)                                            \
  template Var<T> weighted_sum(Var<T>, std::span<const double>);           \
  template Var<T> inner_product(Var<T>, std::span<const T>);               \
  template Var<T> sum(Var<T>, double);                                     \
  template Var<T> group_sums(Var<T>, std::size_t);                         \
  template Var<T> row_sums(Var<T>);                                        \
  template Var<T> sums_of_others(Var<T>);                                  \
  template Var<T> segment_sums(Var<T>, std::span<const int>, std::size_t); \
  template Var<T> segment_logsumexp(Var<T>, std::span<const int>, std::size_t);
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)
#undef HARDGRAD_INSTANTIATE

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
Var<T> gather_sum(std::size_t rows, std::initializer_list<Gathered<T>> parts, bool rectified) {
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

template Var<float> gather_sum(std::size_t, std::initializer_list<Gathered<float>>, bool);
template Var<double> gather_sum(std::size_t, std::initializer_list<Gathered<double>>, bool);

}  // namespace hardgrad
