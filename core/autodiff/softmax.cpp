// Log probabilities and what is computed from them. An entry with log probability -inf has p = 0 and is
// skipped wherever 0 * inf would turn up.
#include "core/autodiff/softmax.hpp"

#include <cmath>

#include "core/autodiff/product.hpp"
#include "core/kernels/require.hpp"
#include "core/kernels/softmax.hpp"

namespace hardgrad {
namespace {

using kernels::Batch;
template <class T>
constexpr T nothing = kernels::minus_infinity<T>;

/// Rows are worked off in groups of about this many numbers, which stay in the first-level cache while one
/// vector loop runs over all of them: short rows would leave the registers half empty.
constexpr std::size_t group_size = 2048;

std::size_t rows_per_group(std::size_t cols) {
  return std::max<std::size_t>(1, group_size / std::max<std::size_t>(1, cols));
}

/// Row r of the cotangent (+)= f(j).
template <class T, class F>
void put_row(const Sink<T>& sink, std::size_t r, F&& f) {
  T* __restrict to = sink.to.row(r);
  if (sink.first)
    for (std::size_t j = 0; j < sink.to.cols; ++j) to[j] = f(j);
  else
    for (std::size_t j = 0; j < sink.to.cols; ++j) to[j] += f(j);
}

}  // namespace

// y[r, j] = x[r, j] - m - log sum_{k < n_r} exp(x[r, k] - m), m the row's maximum; gx = g - exp(y) sum_k g[k]
template <class T>
Var<T> log_softmax(Var<T> x, std::span<const int> options) {
  require_shapes(options.size() == x.rows(), "log_softmax", {x});
  auto& tape = *x.tape;
  const std::size_t rows = x.rows(), cols = x.cols(), group = rows_per_group(cols);
  for (int n : options)
    if (n < 0 || static_cast<std::size_t>(n) > cols) throw Bug("log_softmax: more options than columns");
  auto y = tape.output(rows, cols, {x});
  const auto in = x.value();
  const auto out = tape.mutable_value(y);
  const auto powers = tape.template scratch<T>(group * cols);
  for (std::size_t first = 0; first < rows; first += group) {
    const std::size_t last = std::min(rows, first + group);
    for (std::size_t r = first; r < last; ++r) {
      const std::size_t n = options[r];
      T* o = out.row(r);
      std::fill(o + n, o + cols, nothing<T>);
      if (n == 0) continue;
      const T* v = in.row(r);
      const T most = kernels::row_max(v, n);
      const T shift = most == nothing<T> ? T{0} : most;  // a row of nothing but -inf stays one
      for (std::size_t j = 0; j < n; ++j) o[j] = v[j] - shift;
    }
    kernels::map(out.row(first), powers.data(), (last - first) * cols,
                 [](const Batch<T>& v) { return kernels::exp<T>(v); });
    for (std::size_t r = first; r < last; ++r) {
      const std::size_t n = options[r];
      const double total = kernels::row_sum(powers.data() + (r - first) * cols, n);
      if (total == 0) continue;
      const T log_total = static_cast<T>(std::log(total));
      T* o = out.row(r);
      for (std::size_t j = 0; j < n; ++j) o[j] -= log_total;
    }
  }
  if (!tape.needs_gradient(y)) return y;
  tape.on_backward({y}, [x, y, group, powers, given = tape.template scratch<T>(cols)](Tape<T>& tape) {
    const auto g = tape.cotangent(y), out = tape.value(y);
    const auto sink = tape.sink(x);
    const std::size_t rows = g.rows, cols = g.cols;
    for (std::size_t first = 0; first < rows; first += group) {
      const std::size_t last = std::min(rows, first + group);
      kernels::map(out.row(first), powers.data(), (last - first) * cols,
                   [](const Batch<T>& v) { return kernels::exp<T>(v); });
      for (std::size_t r = first; r < last; ++r) {
        const T *p = powers.data() + (r - first) * cols, *gr = g.row(r), *o = out.row(r);
        T* __restrict live = given.data();
        for (std::size_t j = 0; j < cols; ++j) live[j] = o[j] == nothing<T> ? T{0} : gr[j];
        const T total = static_cast<T>(kernels::row_sum(live, cols));
        put_row(sink, r, [=](std::size_t j) { return live[j] - p[j] * total; });  // where p is 0, so is live
      }
    }
  });
  return y;
}

// y = exp(log p); g log p = g y
template <class T>
Var<T> probabilities(Var<T> log_p) {
  auto y = log_p.tape->output(log_p.rows(), log_p.cols(), {log_p});
  kernels::map(log_p.value().data, log_p.tape->mutable_value(y).data, y.value().size(),
               [](const Batch<T>& v) { return kernels::exp<T>(v); });
  log_p.tape->on_backward({y}, [log_p, y](Tape<T>& tape) {
    const T *g = tape.cotangent(y).data, *p = tape.value(y).data;
    tape.sink(log_p).accumulate([=](std::size_t i) { return p[i] == 0 ? T{0} : g[i] * p[i]; });
  });
  return y;
}

namespace {

/// f(first, last, p) over groups of rows, p [last - first, cols] their probabilities, which f may overwrite.
template <class T, class F>
void for_probabilities(Tape<T>& tape, MatrixView<const T> log_p, F&& f) {
  const std::size_t group = rows_per_group(log_p.cols);
  const auto p = tape.template scratch<T>(std::min(group, log_p.rows) * log_p.cols);
  for (std::size_t first = 0; first < log_p.rows; first += group) {
    const std::size_t last = std::min(log_p.rows, first + group);
    kernels::map(log_p.row(first), p.data(), (last - first) * log_p.cols,
                 [](const Batch<T>& v) { return kernels::exp<T>(v); });
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
      for (std::size_t j = 0; j < l.cols; ++j)
        term[j] = log_row[j] == nothing<T> ? T{0} : -term[j] * log_row[j];
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

// KL = sum_j q (log q - log p); g log q = g q (1 + log q - log p), g log p = -g q. Where q = 0 there is no
// term; where q > 0 = p the value is inf, as it should be.
template <class T>
Var<T> kl_divergence(Var<T> log_q, Var<T> log_p) {
  require_shapes(same_shape(log_q, log_p), "kl_divergence", {log_q, log_p});
  auto y = log_q.tape->output(log_q.rows(), 1, {log_q, log_p});
  const auto a = log_q.value(), b = log_p.value();
  T* out = log_q.tape->mutable_value(y).data;
  for_probabilities<T>(*log_q.tape, a, [&](std::size_t first, std::size_t last, MatrixView<T> q) {
    for (std::size_t r = first; r < last; ++r) {
      double total = 0;
      for (std::size_t j = 0; j < a.cols; ++j)
        if (a(r, j) != nothing<T>)
          total += static_cast<double>(q(r - first, j)) *
                   (static_cast<double>(a(r, j)) - static_cast<double>(b(r, j)));
      out[r] = static_cast<T>(total);
    }
  });
  log_q.tape->on_backward({y}, [log_q, log_p, y](Tape<T>& tape) {
    const T* g = tape.cotangent(y).data;
    const auto a = tape.value(log_q), b = tape.value(log_p);
    const auto back = [&](Var<T> input, auto rule) {
      if (!tape.needs_gradient(input)) return;
      const auto sink = tape.sink(input);
      for_probabilities<T>(tape, a, [&](std::size_t first, std::size_t last, MatrixView<T> q) {
        for (std::size_t r = first; r < last; ++r)
          put_row(sink, r, [=, a_row = a.row(r), b_row = b.row(r), q_row = q.row(r - first)](std::size_t j) {
            return a_row[j] == nothing<T> || g[r] == 0 ? T{0} : g[r] * q_row[j] * rule(a_row[j], b_row[j]);
          });
      });
    };
    back(log_q, [](T log_q, T log_p) { return 1 + log_q - log_p; });
    back(log_p, [](T, T) { return T{-1}; });
  });
  return y;
}

namespace {

constexpr std::size_t chunk_rows = 512;
/// Gradients at the logits up to this size are kept from the forward pass; those of later chunks are
/// recomputed.
constexpr std::size_t kept_bytes = std::size_t{1} << 28;

/// A [rows from .. rows to) part of a matrix.
template <class U>
MatrixView<U> part(MatrixView<U> x, std::size_t from, std::size_t to) {
  return {x.row(from), to - from, x.cols};
}

/// The logits of some rows, x W' + b.
template <class T>
void logits(MatrixView<const T> x, MatrixView<const T> weight, MatrixView<const T> bias, MatrixView<T> out) {
  if (bias.data)
    for (std::size_t r = 0; r < out.rows; ++r) std::copy_n(bias.data, out.cols, out.row(r));
  gemm<T>(x, false, weight, true, out, bias.data ? T{1} : T{0});
}

/// A row of logits becomes d loss / d logits = softmax - one-hot(label).
template <class T>
void logit_gradient(T* row, std::size_t n, double total, int label) {
  if (label < 0) {
    std::fill_n(row, n, T{0});
    return;
  }
  const T scale = static_cast<T>(1 / total);
  for (std::size_t j = 0; j < n; ++j) row[j] *= scale;
  row[label] -= T{1};
}

}  // namespace

// l = x W' + b; loss[r] = m + log sum_j exp(l[r, j] - m) - l[r, label], m the row's maximum;
// gl = g (softmax(l) - one-hot(label)), gx = gl W, gW = gl' x, gb = column sums of gl. As gl is g times what
// the forward pass knows already, g is applied to the rows of x and gx, which are shorter.
template <class T>
Classified<T> linear_cross_entropy(Var<T> x, Var<T> weight, Var<T> bias, std::span<const int> label) {
  const std::size_t rows = x.rows(), classes = weight.rows();
  require_shapes(
      x.cols() == weight.cols() && label.size() == rows && classes > 0 && x.id != weight.id &&
          (!bias || (bias.rows() == 1 && bias.cols() == classes && bias.id != x.id && bias.id != weight.id)),
      "linear_cross_entropy", {x, weight, bias});
  require_indices("linear_cross_entropy (label)", label, -1, classes);
  auto& tape = *x.tape;
  auto loss = tape.output(rows, 1, {x, weight, bias});
  T* out = tape.mutable_value(loss).data;
  const bool differentiate = tape.needs_gradient(loss);
  // Whole chunks are kept; `work` serves the others, here and in the backward pass.
  const std::size_t keepable = kept_bytes / (chunk_rows * classes * sizeof(T)) * chunk_rows;
  const std::size_t kept_rows = differentiate ? std::min(rows, keepable) : 0;
  const std::size_t work_rows = std::min(chunk_rows, rows - kept_rows);
  const MatrixView<T> kept{tape.template scratch<T>(kept_rows * classes).data(), kept_rows, classes};
  const MatrixView<T> work{tape.template scratch<T>(work_rows * classes).data(), work_rows, classes};
  const auto bias_row = bias ? bias.value() : MatrixView<const T>{};
  const std::size_t group = rows_per_group(classes);
  const auto totals = tape.template scratch<double>(group), logs = tape.template scratch<double>(group),
             above = tape.template scratch<double>(group);  // [rows of a group] of the largest logit over the label's
  std::vector<int> guess(rows);
  for (std::size_t first = 0; first < rows; first += chunk_rows) {
    const std::size_t last = std::min(rows, first + chunk_rows);
    const bool keep = last <= kept_rows;
    const auto l = keep ? part(kept, first, last) : part(work, 0, last - first);
    logits(part(x.value(), first, last), weight.value(), bias_row, l);
    for (std::size_t from = first; from < last; from += group) {
      const std::size_t to = std::min(last, from + group);
      for (std::size_t r = from; r < to; ++r) {
        T* __restrict row = l.row(r - first);
        const T most = kernels::row_max(row, classes);
        guess[r] =
            static_cast<int>(std::min<std::size_t>(std::find(row, row + classes, most) - row, classes - 1));
        above[r - from] = label[r] < 0 ? 0 : static_cast<double>(most) - static_cast<double>(row[label[r]]);
        for (std::size_t j = 0; j < classes; ++j) row[j] -= most;
      }
      T* block = l.row(from - first);
      kernels::map(block, block, (to - from) * classes, [](const Batch<T>& v) { return kernels::exp<T>(v); });
      for (std::size_t r = from; r < to; ++r) totals[r - from] = kernels::row_sum(l.row(r - first), classes);
      kernels::map(totals.data(), logs.data(), to - from,
                   [](const Batch<double>& v) { return xsimd::log(v); });
      for (std::size_t r = from; r < to; ++r) {
        out[r] = label[r] < 0 ? T{0} : static_cast<T>(logs[r - from] + above[r - from]);
        if (keep) logit_gradient(l.row(r - first), classes, totals[r - from], label[r]);
      }
    }
  }
  if (!differentiate) return {loss, std::move(guess)};
  tape.on_backward({loss}, [x, weight, bias, loss, kept, work, label = tape.keep(label)](Tape<T>& tape) {
    const auto g = tape.cotangent(loss), in = tape.value(x), w = tape.value(weight);
    const auto bias_row = bias ? tape.value(bias) : MatrixView<const T>{};
    const auto wanted = [&](Var<T> v) { return v && tape.needs_gradient(v) ? tape.sink(v) : Sink<T>{}; };
    const auto to_x = wanted(x), to_weight = wanted(weight),
               to_bias = wanted(bias);  // three different matrices
    const MatrixView<T> rows{tape.template scratch<T>(std::min(in.rows, chunk_rows) * in.cols).data(),
                             std::min(in.rows, chunk_rows), in.cols};
    for (std::size_t first = 0; first < in.rows; first += chunk_rows) {
      const std::size_t last = std::min(in.rows, first + chunk_rows), n = last - first;
      const auto dl = last <= kept.rows ? part(kept, first, last) : part(work, 0, n);
      const auto some = part(rows, 0, n);
      if (last > kept.rows) {
        logits(part(in, first, last), w, bias_row, dl);
        for (std::size_t r = 0; r < n; ++r) {
          const bool dead = label[first + r] < 0;
          const double total =
              dead ? 1 : kernels::exp_row(dl.row(r), dl.cols, kernels::row_max(dl.row(r), dl.cols));
          logit_gradient(dl.row(r), dl.cols, total, label[first + r]);
        }
      }
      if (to_x.to.data) {
        gemm<T>(dl, false, w, false, some);
        for (std::size_t r = 0; r < n; ++r) {
          const T scale = g.data[first + r], *from = some.row(r);
          T* __restrict to = to_x.to.row(first + r);
          if (to_x.first)
            for (std::size_t j = 0; j < in.cols; ++j) to[j] = scale * from[j];
          else
            for (std::size_t j = 0; j < in.cols; ++j) to[j] += scale * from[j];
        }
      }
      const bool store = first == 0;
      if (to_weight.to.data) {
        for (std::size_t r = 0; r < n; ++r) {
          T* __restrict to = some.row(r);
          const T scale = g.data[first + r], *from = in.row(first + r);
          for (std::size_t j = 0; j < in.cols; ++j) to[j] = scale * from[j];
        }
        gemm<T>(dl, true, some, false, to_weight.to, store ? to_weight.beta() : T{1});
      }
      if (to_bias.to.data)
        kernels::column_sums(dl.data, n, dl.cols, to_bias.to.data, store && to_bias.first, g.data + first);
    }
  });
  return {loss, std::move(guess)};
}

#define HARDGRAD_INSTANTIATE(T)                              \
  template Var<T> log_softmax(Var<T>, std::span<const int>); \
  template Var<T> probabilities(Var<T>);                     \
  template Var<T> entropy(Var<T>);                           \
  template Var<T> kl_divergence(Var<T>, Var<T>);             \
  template Classified<T> linear_cross_entropy(Var<T>, Var<T>, Var<T>, std::span<const int>);
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)

}  // namespace hardgrad
