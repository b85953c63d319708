// Log probabilities and functions of them. An entry with log probability -inf has p = 0;
// it is skipped where 0 * inf would arise.
#include "core/autodiff/softmax.hpp"

#include <type_traits>
#include <utility>

#include "core/autodiff/require.hpp"
#include "core/kernels/few_options.hpp"
#include "core/kernels/softmax.hpp"

namespace hardgrad {
namespace {

using kernels::Batch;
using kernels::rows_per_group;
template <class T>
constexpr T nothing = kernels::minus_infinity<T>;

/// Row r of the cotangent (+)= f(j).
template <class T, class N, class F>
void put_row(const Sink<T>& sink, std::size_t r, N cols, F&& f) {
  T* __restrict to = sink.to.row(r);
  if (sink.first)
    for (std::size_t j = 0; j < cols; ++j) to[j] = f(j);
  else
    for (std::size_t j = 0; j < cols; ++j) to[j] += f(j);
}
template <class T, class F>
void put_row(const Sink<T>& sink, std::size_t r, F&& f) {
  put_row(sink, r, sink.to.cols, f);
}

/// Calls f(n); for the two options of a bit, n is a compile-time constant, so that the loops are unrolled.
template <class F>
void with_count(int n, F&& f) {
  if (n == 2)
    f(std::integral_constant<std::size_t, 2>{});
  else
    f(static_cast<std::size_t>(n));
}

/// One value per row, repeated at each of its entries.
template <class T>
void spread(const T* of_rows, std::size_t cols, std::span<T> each) {
  with_count(static_cast<int>(cols), [&](auto n) {
    for (std::size_t r = 0; r * n < each.size(); ++r)
      for (std::size_t j = 0; j < n; ++j) each[r * n + j] = of_rows[r];
  });
}

}  // namespace

// y[r, j] = x[r, j] - m - log(1 + s), m the row's maximum and s the sum of exp(x[r, k] - m) over all entries but the largest:
// the logarithm of a probability near 1 keeps all digits. gx = g - p sum_k g[k] with p = exp(y). For the largest p it is
// computed as g (1 - p) - p (sum of the others' g): both parts are as small as the others' probability.
template <class T>
Var<T> log_softmax(Var<T> x, std::span<const int> options) {
  require_shapes(options.size() == x.rows(), "log_softmax", {x});
  auto& tape = *x.tape;
  const std::size_t rows = x.rows(), cols = x.cols(), group = rows_per_group(cols);
  int least = static_cast<int>(cols), most = 0;
  for (int n : options) {
    least = n < least ? n : least;
    most = n > most ? n : most;
  }
  if (least < 0 || static_cast<std::size_t>(most) > cols) throw Bug("log_softmax: more options than columns");
  auto y = tape.output(rows, cols, {x});
  const auto in = x.value();
  const auto out = tape.mutable_value(y);
  const bool pairs = cols == 2 && least == 2;
  const bool few = least == static_cast<int>(cols) && kernels::few_options(rows, cols);
  if (pairs) kernels::log_softmax_pairs(in.data, rows, out.data);
  if (few) kernels::log_softmax_few(in.data, rows, cols, out.data);
  const auto powers = tape.template scratch<T>(group * cols);
  const auto log_totals = tape.template scratch<double>(std::min(rows, group));
  for (std::size_t first = 0; first < rows && !pairs && !few; first += group) {
    const std::size_t last = std::min(rows, first + group);
    for (std::size_t r = first; r < last; ++r)
      with_count(options[r], [v = in.row(r), o = out.row(r), cols](auto n) {
        const T most = n == 0 ? nothing<T> : kernels::row_max(v, n);
        const T shift = most == nothing<T> ? T{0} : most;  // a row of only -inf stays one
        for (std::size_t j = 0; j < n; ++j) o[j] = v[j] - shift;
        for (std::size_t j = n; j < cols; ++j) o[j] = nothing<T>;
      });
    kernels::exp_all(out.row(first), powers.data(), (last - first) * cols);
    for (std::size_t r = first; r < last; ++r)
      with_count(options[r], [o = out.row(r), p = powers.data() + (r - first) * cols, &to = log_totals[r - first]](auto n) {
        std::size_t largest = 0;
        while (largest < n && o[largest] != 0) ++largest;
        if (largest < n) p[largest] = 0;
        to = kernels::row_sum(p, n);
      });
    kernels::map(log_totals.data(), log_totals.data(), last - first,
                 [](const Batch<double>& v) { return kernels::log1p<double>(v); });
    for (std::size_t r = first; r < last; ++r)
      with_count(options[r], [o = out.row(r), log_total = static_cast<T>(log_totals[r - first])](auto n) {
        for (std::size_t j = 0; j < n; ++j) o[j] -= log_total;
      });
  }
  if (!tape.needs_gradient(y)) return y;
  tape.on_backward({y}, [x, y, group, powers, given = tape.template scratch<T>(cols)](Tape<T>& tape) {
    const auto g = tape.cotangent(y), out = tape.value(y);
    const auto sink = tape.sink(x);
    const std::size_t rows = g.rows, cols = g.cols;
    if (cols == 2) return kernels::log_softmax_pairs_backward(g.data, out.data, rows, sink.to.data, sink.first);
    if (kernels::few_options(rows, cols))
      return kernels::log_softmax_few_backward(g.data, out.data, rows, cols, sink.to.data, sink.first);
    for (std::size_t first = 0; first < rows; first += group) {
      const std::size_t last = std::min(rows, first + group);
      kernels::exp_all(out.row(first), powers.data(), (last - first) * cols);
      for (std::size_t r = first; r < last; ++r)
        with_count(static_cast<int>(cols), [&, p = powers.data() + (r - first) * cols, gr = g.row(r), o = out.row(r)](auto n) {
          T* __restrict live = given.data();
          for (std::size_t j = 0; j < n; ++j) live[j] = o[j] == nothing<T> ? T{0} : gr[j];
          std::size_t top = 0;
          for (std::size_t j = 1; j < n; ++j)
            if (p[j] > p[top]) top = j;
          const T most = std::exchange(live[top], T{0}), share = std::exchange(p[top], T{0});
          const auto others = static_cast<T>(kernels::row_sum(p, n)), rest = static_cast<T>(kernels::row_sum(live, n));
          const T total = most + rest;
          live[top] = most * others - share * rest;  // live is 0 where p is 0
          put_row(sink, r, n, [=](std::size_t j) { return live[j] - p[j] * total; });
        });
    }
  });
  return y;
}

// y = exp(log p); g log p = g y
template <class T>
Var<T> probabilities(Var<T> log_p) {
  auto y = log_p.tape->output(log_p.rows(), log_p.cols(), {log_p});
  kernels::exp_all(log_p.value().data, log_p.tape->mutable_value(y).data, y.value().size());
  log_p.tape->on_backward({y}, [log_p, y](Tape<T>& tape) {
    const T *g = tape.cotangent(y).data, *p = tape.value(y).data;
    tape.sink(log_p).accumulate([=](std::size_t i) { return p[i] == 0 ? T{0} : g[i] * p[i]; });
  });
  return y;
}

namespace {

/// Calls f(first, last, p) for groups of rows; p [last - first, cols] are their probabilities, which f may overwrite.
template <class T, class F>
void for_probabilities(Tape<T>& tape, MatrixView<const T> log_p, F&& f) {
  const std::size_t group = rows_per_group(log_p.cols);
  const auto p = tape.template scratch<T>(std::min(group, log_p.rows) * log_p.cols);
  for (std::size_t first = 0; first < log_p.rows; first += group) {
    const std::size_t last = std::min(log_p.rows, first + group);
    kernels::exp_all(log_p.row(first), p.data(), (last - first) * log_p.cols);
    f(first, last, MatrixView<T>{p.data(), last - first, log_p.cols});
  }
}

}  // namespace

// H = -sum_j p log p; g log p[j] = -g p (1 + log p)
template <class T>
Var<T> entropy(Var<T> log_p) {
  auto y = log_p.tape->output(log_p.rows(), 1, {log_p});
  const auto l = log_p.value();
  T* out = log_p.tape->mutable_value(y).data;
  for_probabilities<T>(*log_p.tape, l, [&](std::size_t first, std::size_t last, MatrixView<T> p) {
    for (std::size_t r = first; r < last; ++r) {
      T* __restrict term = p.row(r - first);
      const T* log_row = l.row(r);
      for (std::size_t j = 0; j < l.cols; ++j) term[j] = log_row[j] == nothing<T> ? T{0} : -term[j] * log_row[j];
      out[r] = static_cast<T>(kernels::row_sum(term, l.cols));
    }
  });
  log_p.tape->on_backward({y}, [log_p, y](Tape<T>& tape) {
    const T* g = tape.cotangent(y).data;
    const auto l = tape.value(log_p);
    const auto sink = tape.sink(log_p);
    for_probabilities<T>(tape, l, [&](std::size_t first, std::size_t last, MatrixView<T> p) {
      for (std::size_t r = first; r < last; ++r)
        put_row(sink, r, [log_row = l.row(r), p_row = p.row(r - first), gr = g[r]](std::size_t j) {
          return log_row[j] == nothing<T> ? T{0} : -gr * p_row[j] * (1 + log_row[j]);
        });
    });
  });
  return y;
}

// KL = sum_j q (log q - log p); g log q = g q (1 + log q - log p), g log p = -g q. Entries with q = 0 have no term. If
// q > 0 = p, the value is inf.
template <class T>
Var<T> kl_divergence(Var<T> log_q, Var<T> log_p) {
  require_shapes(same_shape(log_q, log_p), "kl_divergence", {log_q, log_p});
  auto y = log_q.tape->output(log_q.rows(), 1, {log_q, log_p});
  const auto a = log_q.value(), b = log_p.value();
  T* out = log_q.tape->mutable_value(y).data;
  const auto term = log_q.tape->template scratch<double>(std::min(rows_per_group(a.cols), a.rows) * a.cols);
  for_probabilities<T>(*log_q.tape, a, [&](std::size_t first, std::size_t, MatrixView<T> q) {
    const T *log_q = a.row(first), *log_p = b.row(first);
    for (std::size_t i = 0; i < q.size(); ++i)
      term[i] = log_q[i] == nothing<T>
                    ? 0.0
                    : static_cast<double>(q.data[i]) * (static_cast<double>(log_q[i]) - static_cast<double>(log_p[i]));
    with_count(static_cast<int>(q.cols), [&](auto n) {
      for (std::size_t r = 0; r < q.rows; ++r) {
        double total = 0;
        for (std::size_t j = 0; j < n; ++j) total += term[r * n + j];
        out[first + r] = static_cast<T>(total);
      }
    });
  });
  const auto each = log_q.tape->template scratch<T>(term.size());
  log_q.tape->on_backward({y}, [log_q, log_p, y, each](Tape<T>& tape) {
    const T* g = tape.cotangent(y).data;
    const auto a = tape.value(log_q), b = tape.value(log_p);
    const auto back = [&](Var<T> input, auto rule) {
      if (!tape.needs_gradient(input)) return;
      const auto sink = tape.sink(input);
      for_probabilities<T>(tape, a, [&](std::size_t first, std::size_t last, MatrixView<T> q) {
        spread(g + first, q.cols, each.first(q.size()));
        const T *a_row = a.row(first), *b_row = b.row(first), *weight = each.data(), *q_row = q.data;
        Sink<T>{{sink.to.row(first), last - first, q.cols}, sink.first}.accumulate([=](std::size_t i) {
          const T x = weight[i] * q_row[i] * rule(a_row[i], b_row[i]);
          return a_row[i] == nothing<T> || weight[i] == 0 ? T{0} : x;
        });
      });
    };
    back(log_q, [](T log_q, T log_p) { return 1 + log_q - log_p; });
    back(log_p, [](T, T) { return T{-1}; });
  });
  return y;
}

// y[r] = sum_j w[r, j] (log q - log p)[parent[r], j]; gw[r, j] = g[r] (log q - log p), g log q = g w, g log p = -g w. Columns
// beyond the options (log q = -inf) have no term.
template <class T>
Var<T> log_ratio(Var<T> weights, Var<T> log_q, Var<T> log_p, std::span<const int> parent) {
  require_shapes(same_shape(log_q, log_p) && weights.cols() == log_q.cols() && parent.size() == weights.rows(), "log_ratio",
                 {weights, log_q, log_p});
  require_indices("log_ratio", parent, 0, log_q.rows());
  auto& tape = *weights.tape;
  auto y = tape.output(weights.rows(), 1, {weights, log_q, log_p});
  const auto w = weights.value(), a = log_q.value(), b = log_p.value();
  T* out = tape.mutable_value(y).data;
  for (std::size_t r = 0; r < w.rows; ++r) {
    const T *q = a.row(parent[r]), *p = b.row(parent[r]);
    double total = 0;
    for (std::size_t j = 0; j < w.cols; ++j)
      if (q[j] != nothing<T> && w(r, j) != 0)
        total += static_cast<double>(w(r, j)) * (static_cast<double>(q[j]) - static_cast<double>(p[j]));
    out[r] = static_cast<T>(total);
  }
  tape.on_backward({y}, [weights, log_q, log_p, y, parent = tape.keep(parent)](Tape<T>& tape) {
    const T* g = tape.cotangent(y).data;
    const auto w = tape.value(weights), a = tape.value(log_q), b = tape.value(log_p);
    if (tape.needs_gradient(weights)) {
      const auto sink = tape.sink(weights);
      for (std::size_t r = 0; r < w.rows; ++r)
        put_row(sink, r, [q = a.row(parent[r]), p = b.row(parent[r]), gr = g[r]](std::size_t j) {
          return q[j] == nothing<T> ? T{0} : gr * (q[j] - p[j]);
        });
    }
    const auto back = [&](Var<T> input, T sign) {
      if (!tape.needs_gradient(input)) return;
      const auto to = tape.sink(input).scattered();
      for (std::size_t r = 0; r < w.rows; ++r)
        for (std::size_t j = 0; j < w.cols; ++j)
          if (a(parent[r], j) != nothing<T>) to(parent[r], j) += sign * g[r] * w(r, j);
    };
    back(log_q, T{1});
    back(log_p, T{-1});
  });
  return y;
}

#define HARDGRAD_INSTANTIATE(T)                              \
  template Var<T> log_softmax(Var<T>, std::span<const int>); \
  template Var<T> probabilities(Var<T>);                     \
  template Var<T> entropy(Var<T>);                           \
  template Var<T> kl_divergence(Var<T>, Var<T>);             \
  template Var<T> log_ratio(Var<T>, Var<T>, Var<T>, std::span<const int>);
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)
#undef HARDGRAD_INSTANTIATE

}  // namespace hardgrad
