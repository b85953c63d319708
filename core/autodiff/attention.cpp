// Attention over the items of each row's example. Consecutive rows of one example form a run. A long run is one matrix product;
// short runs use plain loops.
#include "core/autodiff/attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/autodiff/product.hpp"
#include "core/autodiff/require.hpp"
#include "core/kernels/functions.hpp"
#include "core/kernels/rows.hpp"

namespace hardgrad {
namespace {

constexpr std::size_t product_rows = 4;  ///< shortest run for which a BLAS call is faster

/// Calls f(b, first, last) for each run of rows [first, last) of example b.
template <class F>
void for_runs(std::span<const int> example, F&& f) {
  for (std::size_t first = 0, last; first < example.size(); first = last) {
    for (last = first + 1; last < example.size() && example[last] == example[first];) ++last;
    f(static_cast<std::size_t>(example[first]), first, last);
  }
}

template <class U>
MatrixView<U> rows_from(MatrixView<U> x, std::size_t from, std::size_t count) {
  return {x.row(from), count, x.cols};
}

/// The items of example e.
template <class T>
MatrixView<T> items_of(MatrixView<T> x, std::span<const int> first, std::size_t e) {
  return rows_from(x, first[e], first[e + 1] - first[e]);
}

/// to[r, i] = (store ? 0 : to) + a_r . b_{example r, i}: a [R, D], b [items, D], to [R, S]; 0 beyond the items.
template <class T>
void grouped_dots(MatrixView<const T> a, MatrixView<const T> b, std::span<const int> example, std::span<const int> first_item,
                  MatrixView<T> to, bool store) {
  for_runs(example, [&](std::size_t e, std::size_t first, std::size_t last) {
    const auto mine = items_of(b, first_item, e);
    for (std::size_t r = first; store && r < last; ++r) std::fill_n(to.row(r) + mine.rows, to.cols - mine.rows, T{0});
    if (last - first >= product_rows)
      return gemm<T>(rows_from(a, first, last - first), false, mine, true,
                     Block<T>(rows_from(to, first, last - first), mine.rows), store ? T{0} : T{1});
    for (std::size_t r = first; r < last; ++r)
      for (std::size_t i = 0; i < mine.rows; ++i) {
        const T dot = kernels::dot(a.row(r), mine.row(i), a.cols);
        to(r, i) = store ? dot : to(r, i) + dot;
      }
  });
}

/// to[r] = (store ? 0 : to) + sum_i w[r, i] b_{example r, i}: w [R, S], b [items, D], to [R, D].
template <class T>
void grouped_mixtures(MatrixView<const T> w, MatrixView<const T> b, std::span<const int> example,
                      std::span<const int> first_item, MatrixView<T> to, bool store) {
  for_runs(example, [&](std::size_t e, std::size_t first, std::size_t last) {
    const auto mine = items_of(b, first_item, e);
    if (last - first >= product_rows)
      return gemm<T>(Block<const T>(rows_from(w, first, last - first), mine.rows), false, mine, false,
                     rows_from(to, first, last - first), store ? T{0} : T{1});
    for (std::size_t r = first; r < last; ++r) {
      T* out = to.row(r);
      if (store) std::fill_n(out, to.cols, T{0});
      kernels::for_nonzero(w.row(r), mine.rows, [&](std::size_t i, T weight) {
        const T* from = mine.row(i);
        for (std::size_t j = 0; j < to.cols; ++j) out[j] += weight * from[j];
      });
    }
  });
}

/// to_{example r, i} += w[r, i] a_r: w [R, S], a [R, D], to [items, D].
template <class T>
void grouped_outer(MatrixView<const T> w, MatrixView<const T> a, std::span<const int> example, std::span<const int> first_item,
                   MatrixView<T> to) {
  for_runs(example, [&](std::size_t e, std::size_t first, std::size_t last) {
    const auto mine = items_of(to, first_item, e);
    if (last - first >= product_rows)
      return gemm<T>(Block<const T>(rows_from(w, first, last - first), mine.rows), true, rows_from(a, first, last - first),
                     false, mine, T{1});
    for (std::size_t r = first; r < last; ++r)
      kernels::for_nonzero(w.row(r), mine.rows, [&, from = a.row(r)](std::size_t i, T weight) {
        T* out = mine.row(i);
        for (std::size_t j = 0; j < a.cols; ++j) out[j] += weight * from[j];
      });
  });
}

/// Checks that every row has an example, and every example has items.
void require_examples(const char* operation, std::span<const int> example, std::size_t rows, const Items& items,
                      std::size_t item_rows) {
  if (example.size() != rows || items.most() == 0 || item_rows != items.total())
    throw Bug(std::string(operation) + ": rows, examples and items do not match");
  require_indices(operation, example, 0, items.examples());
}

/// e[i] = sum_j v[j] tanh(q[j] + k[i, j]) for the items of one row: k [n, D]. `sums` [n] is workspace.
template <class T>
void additive_row(const T* q, MatrixView<const T> k, const T* v, kernels::Batch<T>* sums, T* e) {
  std::fill_n(sums, k.rows, kernels::Batch<T>(T{0}));
  kernels::for_lanes<T>(k.cols, [&](auto lane) {
    const auto query = lane.load(q), weight = lane.load_own(v);
    for (std::size_t i = 0; i < k.rows; ++i)
      sums[i] = xsimd::fma(weight, kernels::tanh<T>(query + lane.load(k.row(i))), sums[i]);
  });
  for (std::size_t i = 0; i < k.rows; ++i) e[i] = kernels::lane_sum(sums[i]);
}

/// Its cotangents from the cotangent g of e. With t the tanh and d = g[i] v (1 - t^2): dq = sum_i d, dv = sum_i g[i] t, and
/// dk[i] += d if it is wanted.
template <class T>
void additive_row_backward(const T* g, const T* q, MatrixView<const T> k, const T* v, T* dq, T* dv, MatrixView<T> dk) {
  const kernels::Batch<T> one(T{1}), zero(T{0});
  kernels::for_lanes<T>(k.cols, [&](auto lane) {
    const auto query = lane.load(q), weight = lane.load(v);
    auto to_q = zero, to_v = zero;
    for (std::size_t i = 0; i < k.rows; ++i) {
      if (g[i] == 0) continue;
      const auto t = kernels::tanh<T>(query + lane.load(k.row(i))), slope = kernels::Batch<T>(g[i]);
      const auto d = slope * weight * (one - t * t);
      to_q += d;
      to_v += slope * t;
      if (dk.data) lane.store(dk.row(i), lane.load(dk.row(i)) + d);
    }
    lane.store(dq, to_q);
    lane.store(dv, to_v);
  });
}

}  // namespace

// e[r, i] = q_r . k_{b, i}, b = example[r]; gq_r = sum_i g[r, i] k_{b, i}, gk_{b, i} = sum_r g[r, i] q_r
template <class T>
Var<T> dot_scores(Var<T> query, Var<T> keys, std::span<const int> example, const Items& items) {
  require_examples("dot_scores", example, query.rows(), items, keys.rows());
  require_shapes(query.cols() == keys.cols(), "dot_scores", {query, keys});
  auto& tape = *query.tape;
  auto y = tape.output(query.rows(), items.most(), {query, keys});
  grouped_dots<T>(query.value(), keys.value(), example, items.first(), tape.mutable_value(y), true);
  if (!tape.needs_gradient(y)) return y;
  tape.on_backward({y}, [query, keys, y, example = tape.keep(example), first = tape.keep(items.first())](Tape<T>& tape) {
    const auto g = tape.cotangent(y);
    if (tape.needs_gradient(query)) {
      const auto sink = tape.sink(query);
      grouped_mixtures<T>(g, tape.value(keys), example, first, sink.to, sink.first);
    }
    if (tape.needs_gradient(keys)) grouped_outer<T>(g, tape.value(query), example, first, tape.sink(keys).scattered());
  });
  return y;
}

// e[r, i] = v_h . t, t = tanh(q_r + k_{b, i}), h = r mod H; with d = g[r, i] v_h (1 - t^2): gq_r = sum_i d, gk_{b, i} = sum_r
// d, gv_h = sum_{r, i} g[r, i] t over the rows of h
template <class T>
Var<T> additive_scores(Var<T> query, Var<T> keys, Var<T> v, std::span<const int> example, const Items& items) {
  require_examples("additive_scores", example, query.rows(), items, keys.rows());
  require_shapes(query.cols() == keys.cols() && v.rows() >= 1 && v.cols() == keys.cols(), "additive_scores", {query, keys, v});
  auto& tape = *query.tape;
  auto y = tape.output(query.rows(), items.most(), {query, keys, v});
  const auto sums = tape.template scratch<kernels::Batch<T>>(items.most());
  const auto q = query.value(), k = keys.value(), weight = v.value();
  const auto out = tape.mutable_value(y);
  for (std::size_t r = 0; r < out.rows; ++r) {
    const auto mine = items_of(k, items.first(), example[r]);
    additive_row<T>(q.row(r), mine, weight.row(r % weight.rows), sums.data(), out.row(r));
    std::fill_n(out.row(r) + mine.rows, out.cols - mine.rows, T{0});
  }
  if (!tape.needs_gradient(y)) return y;
  tape.on_backward({y}, [query, keys, v, y, example = tape.keep(example), first = tape.keep(items.first())](Tape<T>& tape) {
    const auto g = tape.cotangent(y), q = tape.value(query), k = tape.value(keys), weight = tape.value(v);
    const auto wanted = [&](Var<T> x) { return tape.needs_gradient(x) ? tape.sink(x).scattered() : MatrixView<T>{}; };
    const auto to_q = wanted(query), to_k = wanted(keys);  // may be the same matrix: each row is written once it is complete
    const std::size_t width = k.cols;
    const auto dv = tape.template scratch<double>(weight.size());
    const auto dv_row = tape.template scratch<T>(width), dq_row = tape.template scratch<T>(width);
    std::fill(dv.begin(), dv.end(), 0.0);
    for (std::size_t r = 0; r < g.rows; ++r) {
      const int e = example[r];
      additive_row_backward<T>(g.row(r), q.row(r), items_of(k, first, e), weight.row(r % weight.rows), dq_row.data(),
                               dv_row.data(), to_k.data ? items_of(to_k, first, e) : MatrixView<T>{});
      double* const dv_head = dv.data() + r % weight.rows * width;
      for (std::size_t j = 0; j < width; ++j) dv_head[j] += static_cast<double>(dv_row[j]);
      for (std::size_t j = 0; to_q.data && j < width; ++j) to_q(r, j) += dq_row[j];
    }
    if (tape.needs_gradient(v)) tape.sink(v).accumulate([=](std::size_t j) { return static_cast<T>(dv[j]); });
  });
  return y;
}

// z_r = sum_i w[r, i] x_{b, i}; gw[r, i] = g_r . x_{b, i}, gx_{b, i} = sum_r w[r, i] g_r
template <class T>
Var<T> mix(Var<T> weights, Var<T> values, std::span<const int> example, const Items& items) {
  require_examples("mix", example, weights.rows(), items, values.rows());
  require_shapes(weights.cols() == items.most(), "mix", {weights, values});
  auto& tape = *weights.tape;
  auto y = tape.output(weights.rows(), values.cols(), {weights, values});
  grouped_mixtures<T>(weights.value(), values.value(), example, items.first(), tape.mutable_value(y), true);
  if (!tape.needs_gradient(y)) return y;
  tape.on_backward({y}, [weights, values, y, example = tape.keep(example), first = tape.keep(items.first())](Tape<T>& tape) {
    const auto g = tape.cotangent(y);
    if (tape.needs_gradient(weights)) {
      const auto sink = tape.sink(weights);
      grouped_dots<T>(g, tape.value(values), example, first, sink.to, sink.first);
    }
    if (tape.needs_gradient(values)) grouped_outer<T>(tape.value(weights), g, example, first, tape.sink(values).scattered());
  });
  return y;
}

#define HARDGRAD_INSTANTIATE(T)                                                                \
  template Var<T> dot_scores(Var<T>, Var<T>, std::span<const int>, const Items&);              \
  template Var<T> additive_scores(Var<T>, Var<T>, Var<T>, std::span<const int>, const Items&); \
  template Var<T> mix(Var<T>, Var<T>, std::span<const int>, const Items&);
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)
#undef HARDGRAD_INSTANTIATE

// d log a / dx = -(x - y) / (|x - y| (1 + |x - y|)), and the negative for y
template <class T>
Var<T> match_scores(Var<T> x, Var<T> y, std::span<const int> example, const Items& items) {
  require_shapes(x.rows() == example.size() && y.rows() == items.total() && x.cols() == y.cols(), "match_scores", {x, y});
  require_indices("match_scores", example, 0, items.examples());
  auto& tape = *x.tape;
  const auto log_a = tape.output(x.rows(), items.most(), {x, y});
  const auto out = tape.mutable_value(log_a);
  std::fill_n(out.data, out.size(), -std::numeric_limits<T>::infinity());
  for (std::size_t r = 0; r < x.rows(); ++r)
    for (int i = 0; i < items.count(example[r]); ++i) {
      const T *a = x.value().row(r), *b = y.value().row(items.row(example[r], i));
      double sum = 0;
      for (std::size_t j = 0; j < x.cols(); ++j) sum += static_cast<double>(a[j] - b[j]) * static_cast<double>(a[j] - b[j]);
      out(r, i) = static_cast<T>(-std::log1p(std::sqrt(sum)));
    }
  tape.on_backward({log_a}, [=, whose = tape.keep(example), first = tape.keep(items.first())](Tape<T>& tape) {
    const auto g = tape.cotangent(log_a), of = log_a.value(), from = x.value(), to = y.value();
    // calls f(r, item, factor of (x_r - y_item) in the gradient of x_r)
    const auto pairs = [&](auto f) {
      for (std::size_t r = 0; r < from.rows; ++r)
        for (int i = 0; i < first[whose[r] + 1] - first[whose[r]]; ++i) {
          const T distance = std::expm1(-of(r, i));
          if (distance != 0) f(r, static_cast<std::size_t>(first[whose[r]]) + i, -g(r, i) / (distance * (1 + distance)));
        }
    };
    if (tape.needs_gradient(x)) {
      const auto into = tape.sink(x).scattered();
      pairs([&](std::size_t r, std::size_t item, T factor) {
        for (std::size_t j = 0; j < into.cols; ++j) into(r, j) += factor * (from(r, j) - to(item, j));
      });
    }
    if (tape.needs_gradient(y)) {
      const auto into = tape.sink(y).scattered();
      pairs([&](std::size_t r, std::size_t item, T factor) {
        for (std::size_t j = 0; j < into.cols; ++j) into(item, j) -= factor * (from(r, j) - to(item, j));
      });
    }
  });
  return log_a;
}

template Var<float> match_scores(Var<float>, Var<float>, std::span<const int>, const Items&);
template Var<double> match_scores(Var<double>, Var<double>, std::span<const int>, const Items&);

}  // namespace hardgrad
