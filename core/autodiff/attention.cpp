// Attention over the items of a row's own example. Consecutive rows of one example form a run; a run of
// several rows is one matrix product, a short one plain loops.
#include "core/autodiff/attention.hpp"

#include "core/autodiff/product.hpp"
#include "core/kernels/functions.hpp"
#include "core/kernels/require.hpp"
#include "core/kernels/rows.hpp"

namespace hardgrad {
namespace {

constexpr std::size_t product_rows = 4;  ///< from so many rows a run is worth a call of BLAS

/// f(b, first, last) for each run of rows [first, last) of example b.
template <class F>
void for_runs(std::span<const int> example, F&& f) {
  for (std::size_t first = 0, last; first < example.size(); first = last) {
    for (last = first + 1; last < example.size() && example[last] == example[first];) ++last;
    f(static_cast<std::size_t>(example[first]), first, last);
  }
}

template <class U>
MatrixView<U> part(MatrixView<U> x, std::size_t from, std::size_t count) {
  return {x.row(from), count, x.cols};
}

/// to[r, i] = (store ? 0 : to) + a_r . b_{example r, i}: a [R, D], b [B L, D], to [R, L].
template <class T>
void grouped_dots(MatrixView<const T> a, MatrixView<const T> b, std::span<const int> example,
                  MatrixView<T> to, bool store) {
  const std::size_t items = to.cols;
  for_runs(example, [&](std::size_t e, std::size_t first, std::size_t last) {
    const auto mine = part(b, e * items, items);
    if (last - first >= product_rows)
      return gemm<T>(part(a, first, last - first), false, mine, true, part(to, first, last - first),
                     store ? T{0} : T{1});
    for (std::size_t r = first; r < last; ++r)
      for (std::size_t i = 0; i < items; ++i) {
        const T dot = kernels::dot(a.row(r), mine.row(i), a.cols);
        to(r, i) = store ? dot : to(r, i) + dot;
      }
  });
}

/// to[r] = (store ? 0 : to) + sum_i w[r, i] b_{example r, i}: w [R, L], b [B L, D], to [R, D].
template <class T>
void grouped_mixtures(MatrixView<const T> w, MatrixView<const T> b, std::span<const int> example,
                      MatrixView<T> to, bool store) {
  for_runs(example, [&](std::size_t e, std::size_t first, std::size_t last) {
    const auto mine = part(b, e * w.cols, w.cols);
    if (last - first >= product_rows)
      return gemm<T>(part(w, first, last - first), false, mine, false, part(to, first, last - first),
                     store ? T{0} : T{1});
    for (std::size_t r = first; r < last; ++r) {
      T* out = to.row(r);
      if (store) std::fill_n(out, to.cols, T{0});
      for (std::size_t i = 0; i < w.cols; ++i) {
        const T weight = w(r, i), *from = mine.row(i);
        if (weight != 0)
          for (std::size_t j = 0; j < to.cols; ++j) out[j] += weight * from[j];
      }
    }
  });
}

/// to_{example r, i} += w[r, i] a_r: w [R, L], a [R, D], to [B L, D].
template <class T>
void grouped_outer(MatrixView<const T> w, MatrixView<const T> a, std::span<const int> example,
                   MatrixView<T> to) {
  for_runs(example, [&](std::size_t e, std::size_t first, std::size_t last) {
    const auto mine = part(to, e * w.cols, w.cols);
    if (last - first >= product_rows)
      return gemm<T>(part(w, first, last - first), true, part(a, first, last - first), false, mine, T{1});
    for (std::size_t r = first; r < last; ++r)
      for (std::size_t i = 0; i < w.cols; ++i) {
        const T weight = w(r, i), *from = a.row(r);
        T* out = mine.row(i);
        if (weight != 0)
          for (std::size_t j = 0; j < a.cols; ++j) out[j] += weight * from[j];
      }
  });
}

/// Every example in the batch, and each row's items behind it.
void require_examples(const char* operation, std::span<const int> example, std::size_t rows,
                      std::size_t items, std::size_t item_rows) {
  if (example.size() != rows || items == 0 || item_rows % items != 0)
    throw Bug(std::string(operation) + ": rows, examples and items do not fit");
  require_indices(operation, example, 0, item_rows / items);
}

/// t[i, j] = tanh(q[j] + k[i, j]) for the items of one row: k [L, D].
template <class T>
void tanh_sums(const T* __restrict q, MatrixView<const T> k, T* __restrict t) {
  for (std::size_t i = 0; i < k.rows; ++i) {
    const T* row = k.row(i);
    for (std::size_t j = 0; j < k.cols; ++j) t[i * k.cols + j] = q[j] + row[j];
  }
  kernels::map(t, t, k.size(), [](const kernels::Batch<T>& x) { return kernels::tanh<T>(x); });
}

}  // namespace

// e[r, i] = q_r . k_{b, i}, b = example[r]; gq_r = sum_i g[r, i] k_{b, i}, gk_{b, i} = sum_r g[r, i] q_r
template <class T>
Var<T> dot_scores(Var<T> query, Var<T> keys, std::span<const int> example, std::size_t items) {
  require_examples("dot_scores", example, query.rows(), items, keys.rows());
  require_shapes(query.cols() == keys.cols(), "dot_scores", {query, keys});
  auto& tape = *query.tape;
  auto y = tape.output(query.rows(), items, {query, keys});
  grouped_dots<T>(query.value(), keys.value(), example, tape.mutable_value(y), true);
  if (!tape.needs_gradient(y)) return y;
  tape.on_backward({y}, [query, keys, y, example = tape.keep(example)](Tape<T>& tape) {
    const auto g = tape.cotangent(y);
    if (tape.needs_gradient(query)) {
      const auto sink = tape.sink(query);
      grouped_mixtures<T>(g, tape.value(keys), example, sink.to, sink.first);
    }
    if (tape.needs_gradient(keys))
      grouped_outer<T>(g, tape.value(query), example, tape.sink(keys).scattered());
  });
  return y;
}

// e[r, i] = v . t, t = tanh(q_r + k_{b, i}); with d = g[r, i] v (1 - t^2): gq_r = sum_i d, gk_{b, i} = sum_r
// d, gv = sum_{r, i} g[r, i] t
template <class T>
Var<T> additive_scores(Var<T> query, Var<T> keys, Var<T> v, std::span<const int> example, std::size_t items) {
  require_examples("additive_scores", example, query.rows(), items, keys.rows());
  require_shapes(query.cols() == keys.cols() && v.rows() == 1 && v.cols() == keys.cols(), "additive_scores",
                 {query, keys, v});
  auto& tape = *query.tape;
  const std::size_t width = keys.cols();
  auto y = tape.output(query.rows(), items, {query, keys, v});
  const auto t = tape.template scratch<T>(items * width);
  const auto q = query.value(), k = keys.value();
  const auto out = tape.mutable_value(y);
  for (std::size_t r = 0; r < out.rows; ++r) {
    tanh_sums<T>(q.row(r), part(k, example[r] * items, items), t.data());
    for (std::size_t i = 0; i < items; ++i)
      out(r, i) = kernels::dot(t.data() + i * width, v.value().data, width);
  }
  if (!tape.needs_gradient(y)) return y;
  tape.on_backward({y}, [query, keys, v, y, t, example = tape.keep(example)](Tape<T>& tape) {
    const auto g = tape.cotangent(y), q = tape.value(query), k = tape.value(keys), weight = tape.value(v);
    const std::size_t items = g.cols, width = k.cols;
    const auto wanted = [&](Var<T> x) { return tape.needs_gradient(x) ? tape.sink(x).scattered() : MatrixView<T>{}; };
    const auto to_q = wanted(query), to_k = wanted(keys);  // perhaps the same matrix: a row is written when it is done
    const auto dv = tape.template scratch<double>(width);
    const auto dv_row = tape.template scratch<T>(width), dq_row = tape.template scratch<T>(width),
               unwanted = tape.template scratch<T>(width);
    std::fill(dv.begin(), dv.end(), 0.0);
    for (std::size_t r = 0; r < g.rows; ++r) {
      const std::size_t from = example[r] * items;
      tanh_sums<T>(q.row(r), part(k, from, items), t.data());
      std::fill(dv_row.begin(), dv_row.end(), T{0});
      std::fill(dq_row.begin(), dq_row.end(), T{0});
      for (std::size_t i = 0; i < items; ++i) {
        const T gi = g(r, i);
        if (gi == 0) continue;
        const T* __restrict ti = t.data() + i * width, * __restrict w = weight.data;
        T* __restrict dqr = dq_row.data(), * __restrict dvr = dv_row.data(),
            * __restrict dki = to_k.data ? to_k.row(from + i) : unwanted.data();
        for (std::size_t j = 0; j < width; ++j) {
          const T d = gi * w[j] * (T{1} - ti[j] * ti[j]);
          dqr[j] += d;
          dki[j] += d;
          dvr[j] += gi * ti[j];
        }
      }
      for (std::size_t j = 0; j < width; ++j) dv[j] += static_cast<double>(dv_row[j]);
      for (std::size_t j = 0; to_q.data && j < width; ++j) to_q(r, j) += dq_row[j];
    }
    if (tape.needs_gradient(v)) tape.sink(v).accumulate([=](std::size_t j) { return static_cast<T>(dv[j]); });
  });
  return y;
}

// z_r = sum_i w[r, i] x_{b, i}; gw[r, i] = g_r . x_{b, i}, gx_{b, i} = sum_r w[r, i] g_r
template <class T>
Var<T> mix(Var<T> weights, Var<T> values, std::span<const int> example) {
  require_examples("mix", example, weights.rows(), weights.cols(), values.rows());
  auto& tape = *weights.tape;
  auto y = tape.output(weights.rows(), values.cols(), {weights, values});
  grouped_mixtures<T>(weights.value(), values.value(), example, tape.mutable_value(y), true);
  if (!tape.needs_gradient(y)) return y;
  tape.on_backward({y}, [weights, values, y, example = tape.keep(example)](Tape<T>& tape) {
    const auto g = tape.cotangent(y);
    if (tape.needs_gradient(weights)) {
      const auto sink = tape.sink(weights);
      grouped_dots<T>(g, tape.value(values), example, sink.to, sink.first);
    }
    if (tape.needs_gradient(values))
      grouped_outer<T>(tape.value(weights), g, example, tape.sink(values).scattered());
  });
  return y;
}

#define HARDGRAD_INSTANTIATE(T)                                                               \
  template Var<T> dot_scores(Var<T>, Var<T>, std::span<const int>, std::size_t);              \
  template Var<T> additive_scores(Var<T>, Var<T>, Var<T>, std::span<const int>, std::size_t); \
  template Var<T> mix(Var<T>, Var<T>, std::span<const int>);
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)

}  // namespace hardgrad
