// l = x W' + b; loss[r] = m + log sum_j exp(l[r, j] - m) - l[r, label], m the row's maximum. With
// d = softmax(l) - one-hot(label) and the losses' cotangent g: gx[r] = g[r] d[r] W, gW = sum_r g[r] d[r]' x[r],
// gb = sum_r g[r] d[r]. The forward pass computes d [R, V], the largest matrix by far, but does not know g. Three ways:
//   formed       if the caller expects g = s w: gx, gW and gb are computed for g = w while a chunk of d is in the cache. The
//                backward pass checks g and multiplies by s. If g is not s w, d is recomputed;
//   kept         d is kept, up to kept_bytes;
//   recomputed   the remaining chunks of d.
// g is applied to the rows of x and gx, or to those of d if there are fewer classes than columns of x.
#include "core/autodiff/cross_entropy.hpp"

#include <cmath>
#include <optional>

#include "core/autodiff/product.hpp"
#include "core/autodiff/require.hpp"
#include "core/autodiff/tape.hpp"
#include "core/kernels/functions.hpp"
#include "core/kernels/rows.hpp"
#include "core/kernels/softmax.hpp"

namespace hardgrad {
namespace {

constexpr std::size_t chunk_rows = 256;
constexpr std::size_t kept_bytes = std::size_t{1} << 28;

/// Rows [from, to) of a matrix.
template <class U>
MatrixView<U> part(MatrixView<U> x, std::size_t from, std::size_t to) {
  return {x.row(from), to - from, x.cols};
}

/// End of the chunk that begins at row `first`. Groups are not split, so a chunk may be shorter or longer than `chunk_rows`.
std::size_t end_of_chunk(std::size_t first, std::size_t rows, std::span<const int> group) {
  std::size_t last = std::min(rows, first + chunk_rows);
  if (group.empty() || last == rows) return last;
  const auto inside = [&](std::size_t r) { return r < rows && group[r] == group[r - 1]; };
  while (last > first + 1 && inside(last)) --last;
  if (last == first + 1 && inside(last))  // one group is longer than a chunk
    while (inside(last)) ++last;
  return last;
}

/// The end of each chunk, for both passes.
std::vector<int> chunk_ends(std::size_t rows, std::span<const int> group) {
  std::vector<int> ends;
  for (std::size_t first = 0; first < rows; ends.push_back(static_cast<int>(first))) first = end_of_chunk(first, rows, group);
  return ends;
}

/// Calls f(first, last) for the rows [first, last) of every chunk.
template <class F>
void for_chunks(std::span<const int> ends, F&& f) {
  std::size_t first = 0;
  for (int last : ends) {
    f(first, static_cast<std::size_t>(last));
    first = last;
  }
}

/// Turns the prior weights of some rows into the expected cotangents w, given the losses:
/// within each group w[r] = prior[r] exp(-loss[r]), scaled to the sum of the priors.
/// Computed in logarithms, since peaked priors and large losses would over- or underflow.
template <class T>
void share_out(std::span<const int> group, const T* loss, std::span<const double> prior, std::span<const double> log_prior,
               std::span<T> w) {
  for (std::size_t from = 0, to; from < w.size(); from = to) {
    double most = -std::numeric_limits<double>::infinity(), all = 0, total = 0;
    for (to = from; to < w.size() && group[to] == group[from]; ++to) {
      all += prior[to];
      most = std::max(most, log_prior[to] - static_cast<double>(loss[to]));
    }
    if (all == 0) continue;  // w is 0 already
    for (std::size_t r = from; r < to; ++r) {
      const double share = std::exp(log_prior[r] - static_cast<double>(loss[r]) - most);
      w[r] = static_cast<T>(share);
      total += share;
    }
    for (std::size_t r = from; r < to; ++r) w[r] = static_cast<T>(all / total * static_cast<double>(w[r]));
  }
}

/// Rows of `sink` (+)= g[r] times row r of x.
template <class T>
void put_scaled(Sink<T> sink, MatrixView<const T> x, const T* g) {
  kernels::for_width(x.cols, [&](auto cols) {
    for (std::size_t r = 0; r < x.rows; ++r) {
      const T *from = x.data + r * cols, scale = g[r];
      T* __restrict to = sink.to.data + r * cols;
      for (std::size_t j = 0; j < cols; ++j) to[j] = scale * from[j] + (sink.first ? T{0} : to[j]);
    }
  });
}

/// Destinations of the gradients of the layer's inputs; an unwanted one has no data.
template <class T>
struct Gradients {
  Sink<T> x, weight, bias;

  /// (+)= the gradients of the rows from `first` on: d [n, V] and x [n, I] of these rows, g [n] the cotangents of their losses.
  /// The narrower of d and x is scaled by g. `some` [n, min(V, I)] is workspace.
  void add(std::size_t first, MatrixView<const T> d, const T* g, MatrixView<const T> in, MatrixView<const T> w,
           MatrixView<T> some) const {
    const bool store = first == 0;
    const auto scaled = [&](MatrixView<const T> by_row) -> MatrixView<const T> {
      put_scaled<T>({some, true}, by_row, g);
      return some;
    };
    if (d.cols < in.cols) {
      const auto gd = scaled(d);
      if (x.to.data) gemm<T>(gd, false, w, false, part(x.to, first, first + d.rows), x.beta());
      if (weight.to.data) gemm<T>(gd, true, in, false, weight.to, store ? weight.beta() : T{1});
    } else {
      if (x.to.data) {
        gemm<T>(d, false, w, false, some);
        put_scaled<T>({part(x.to, first, first + d.rows), x.first}, some, g);
      }
      if (weight.to.data) gemm<T>(d, true, scaled(in), false, weight.to, store ? weight.beta() : T{1});
    }
    if (bias.to.data) kernels::column_sums(d.data, d.rows, d.cols, bias.to.data, store && bias.first, g);
  }
};

/// The s with g = s w up to rounding, if there is one. Expected cotangents are exponentials of log prior - loss, a number of
/// type T with a rounding error in proportion to its size, so the tolerance grows with that size (0 if log_prior is empty).
/// Entries of w or g below the least normal number have few correct digits or none.
template <class T>
std::optional<T> common_factor(std::span<const T> w, const T* g, std::span<const double> log_prior, const T* loss) {
  std::size_t most = 0;
  for (std::size_t r = 1; r < w.size(); ++r)
    if (std::abs(w[r]) > std::abs(w[most])) most = r;
  if (w.empty() || w[most] == 0) return {};
  using limits = std::numeric_limits<T>;
  const auto size = [&](std::size_t r) {
    return log_prior.empty() ? 0.0 : std::abs(log_prior[r]) + std::abs(static_cast<double>(loss[r]));
  };
  const double s = static_cast<double>(g[most]) / static_cast<double>(w[most]), size_most = size(most);
  const double smallest = 4 * static_cast<double>(limits::min()) * (1 + std::abs(s));
  for (std::size_t r = 0; r < w.size(); ++r) {
    const double expected = s * static_cast<double>(w[r]);
    const double relative = w[r] == 0 ? 0 : (64 + 2 * (size(r) + size_most)) * static_cast<double>(limits::epsilon());
    if (!(std::abs(static_cast<double>(g[r]) - expected) <= relative * std::abs(expected) + smallest)) return {};
  }
  return static_cast<T>(s);
}

}  // namespace

template <class T>
Classified<T> linear_cross_entropy(Var<T> x, Var<T> weight, Var<T> bias, std::span<const int> label,
                                   ExpectedCotangents expected) {
  const std::size_t rows = x.rows(), classes = weight.rows();
  require_shapes(x.cols() == weight.cols() && label.size() == rows && classes > 0 && x.id != weight.id &&
                     (expected.weight.empty() || expected.weight.size() == rows) &&
                     (expected.group.empty() || expected.group.size() == rows) &&
                     (!bias || (bias.rows() == 1 && bias.cols() == classes && bias.id != x.id && bias.id != weight.id)),
                 "linear_cross_entropy", {x, weight, bias});
  require_indices("linear_cross_entropy (label)", label, -1, classes);
  auto& tape = *x.tape;
  auto loss = tape.output(rows, 1, {x, weight, bias});
  T* out = tape.mutable_value(loss).data;
  const bool differentiate = tape.needs_gradient(loss), form = differentiate && !expected.weight.empty();
  const auto group_of = form ? expected.group : std::span<const int>{};
  const auto ends = tape.keep(chunk_ends(rows, group_of));
  std::size_t longest = 0;  // longest chunk
  for_chunks(ends, [&](std::size_t first, std::size_t last) { longest = std::max(longest, last - first); });
  // Whole chunks are kept; the others use `work`, here and in the backward pass.
  const std::size_t keepable = kept_bytes / (chunk_rows * classes * sizeof(T)) * chunk_rows;
  const std::size_t kept_rows = differentiate && !form ? std::min(rows, keepable) : 0;
  const auto kept = scratch_matrix(tape, kept_rows, classes);
  const auto work = scratch_matrix(tape, std::min(longest, rows - kept_rows), classes);
  const auto some = scratch_matrix(tape, differentiate ? longest : 0, std::min(classes, x.cols()));
  const auto w = tape.template scratch<T>(form ? rows : 0);
  if (form) std::copy(expected.weight.begin(), expected.weight.end(), w.begin());
  const auto log_prior = tape.template scratch<double>(group_of.empty() ? 0 : rows);
  for (std::size_t r = 0; r < log_prior.size(); ++r) log_prior[r] = std::log(expected.weight[r]);
  const auto room = [&](Var<T> v) {
    return form && v && tape.needs_gradient(v) ? Sink<T>{scratch_matrix(tape, v.rows(), v.cols()), true} : Sink<T>{};
  };
  const Gradients<T> formed{room(x), room(weight), room(bias)};
  const auto bias_row = bias ? bias.value() : MatrixView<const T>{};
  std::vector<int> guess(rows);
  for_chunks(ends, [&](std::size_t first, std::size_t last) {
    const bool keep = last <= kept_rows;
    const auto l = keep ? part(kept, first, last) : part(work, 0, last - first);
    put_linear<T>(part(x.value(), first, last), weight.value(), bias_row, l);
    kernels::classify<T>(l.data, last - first, classes, {label.data() + first, out + first, guess.data() + first},
                         keep || form);
    if (!group_of.empty()) {
      const auto chunk = [&](auto all) { return all.subspan(first, last - first); };
      share_out<T>(chunk(group_of), out + first, chunk(expected.weight), chunk(std::span<const double>(log_prior)), chunk(w));
    }
    if (form) formed.add(first, l, w.data() + first, part(x.value(), first, last), weight.value(), part(some, 0, last - first));
  });
  if (!differentiate) return {loss, std::move(guess)};
  tape.on_backward({loss}, [x, weight, bias, loss, kept, work, some, formed, ends, w = std::span<const T>(w),
                            log_prior = std::span<const double>(log_prior), label = tape.keep(label)](Tape<T>& tape) {
    const auto g = tape.cotangent(loss), in = tape.value(x), matrix = tape.value(weight);
    const auto wanted = [&](Var<T> v) { return v && tape.needs_gradient(v) ? tape.sink(v) : Sink<T>{}; };
    const Gradients<T> to{wanted(x), wanted(weight), wanted(bias)};  // three different matrices
    if (const auto s = common_factor<T>(w, g.data, log_prior, tape.value(loss).data)) {
      const auto scaled = [s = *s](const Sink<T>& sink, const Sink<T>& formed) {
        sink.accumulate([=, from = formed.to.data](std::size_t i) { return s * from[i]; });
      };
      scaled(to.x, formed.x);
      scaled(to.weight, formed.weight);
      scaled(to.bias, formed.bias);
      return;
    }
    if (!w.empty()) tape.count_missed_hint();
    const auto bias_row = bias ? tape.value(bias) : MatrixView<const T>{};
    for_chunks(ends, [&](std::size_t first, std::size_t last) {
      const std::size_t n = last - first;
      const auto d = last <= kept.rows ? part(kept, first, last) : part(work, 0, n);
      if (last > kept.rows) {
        put_linear<T>(part(in, first, last), matrix, bias_row, d);
        kernels::classify<T>(d.data, n, d.cols, {label.data() + first, nullptr, nullptr}, true);
      }
      to.add(first, d, g.data + first, part(in, first, last), matrix, part(some, 0, n));
    });
  });
  return {loss, std::move(guess)};
}

template <class T>
Classified<T> cross_entropy(Var<T> logits, std::span<const int> label) {
  const std::size_t rows = logits.rows(), classes = logits.cols();
  require_shapes(label.size() == rows && classes > 0, "cross_entropy", {logits});
  require_indices("cross_entropy (label)", label, -1, classes);
  auto& tape = *logits.tape;
  const auto loss = tape.output(rows, 1, {logits});
  const auto d = scratch_matrix(tape, rows, classes);
  std::copy_n(logits.value().data, rows * classes, d.data);
  std::vector<int> guess(rows);
  const bool differentiate = tape.needs_gradient(loss);
  kernels::classify<T>(d.data, rows, classes, {label.data(), tape.mutable_value(loss).data, guess.data()}, differentiate);
  if (differentiate)
    tape.on_backward({loss},
                     [logits, loss, d](Tape<T>& tape) { put_scaled<T>(tape.sink(logits), d, tape.cotangent(loss).data); });
  return {loss, std::move(guess)};
}

template Classified<float> cross_entropy(Var<float>, std::span<const int>);
template Classified<double> cross_entropy(Var<double>, std::span<const int>);
template Classified<float> linear_cross_entropy(Var<float>, Var<float>, Var<float>, std::span<const int>, ExpectedCotangents);
template Classified<double> linear_cross_entropy(Var<double>, Var<double>, Var<double>, std::span<const int>,
                                                 ExpectedCotangents);

// loss[r] = sum_c max(l, 0) + log(1 + exp(-|l|)) - y l, accurate for large |l|. Its slope d = sig(l) - y replaces l in memory in
// the same pass. With l = x W' + b the cotangents g [R] of the losses are applied to the rows of x and gx (linear_backward).

namespace {

/// loss [n] of each bit; its slope replaces the log odds.
template <class T>
void bits(const T* seen, std::size_t n, T* odds, T* loss) {
  using Batch = kernels::Batch<T>;
  const Batch zero(T{0}), one(T{1});
  kernels::for_lanes<T>(n, [&](auto lane) {
    const Batch l = lane.load(odds), y = lane.load(seen);
    const Batch small = kernels::exp<T>(-xsimd::abs(l));
    lane.store(loss, xsimd::max(l, zero) + kernels::log1p_unit<T>(small) - y * l);
    lane.store(odds, xsimd::select(l < zero, small, one) / (one + small) - y);
  });
}

/// The loss of each row of log odds; its slope replaces them.
template <class T>
void losses(Tape<T>& tape, MatrixView<const T> seen, std::span<const int> index, MatrixView<T> odds, MatrixView<T> loss) {
  const auto each = tape.template scratch<T>(odds.cols);
  for (std::size_t r = 0; r < odds.rows; ++r) {
    bits(seen.row(index[r]), odds.cols, odds.row(r), each.data());
    loss.data[r] = static_cast<T>(kernels::row_sum(each.data(), odds.cols));
  }
}

}  // namespace

template <class T>
Var<T> binary_cross_entropy(Var<T> odds, Var<T> y, std::span<const int> index) {
  require_shapes(odds.cols() == y.cols() && odds.rows() == index.size(), "binary_cross_entropy", {odds, y});
  require_indices("binary_cross_entropy", index, 0, y.rows());
  auto& tape = *odds.tape;
  auto loss = tape.output(odds.rows(), 1, {odds});
  const auto l = scratch_matrix(tape, odds.rows(), odds.cols());  // then the slopes
  std::copy_n(odds.value().data, l.size(), l.data);
  losses(tape, y.value(), index, l, tape.mutable_value(loss));
  tape.on_backward({loss}, [odds, loss, l](Tape<T>& tape) { put_scaled<T>(tape.sink(odds), l, tape.cotangent(loss).data); });
  return loss;
}

template <class T>
Var<T> linear_binary_cross_entropy(Var<T> x, Var<T> weight, Var<T> bias, Var<T> y, std::span<const int> index) {
  require_shapes(x.cols() == weight.cols() && (!bias || (bias.rows() == 1 && bias.cols() == weight.rows())) &&
                     weight.rows() == y.cols() && x.rows() == index.size(),
                 "linear_binary_cross_entropy", {x, weight, bias, y});
  auto& tape = *x.tape;
  auto loss = tape.output(x.rows(), 1, {x, weight, bias});
  const auto l = scratch_matrix(tape, x.rows(), y.cols());  // then the slopes
  put_linear<T>(x.value(), weight.value(), bias ? bias.value() : MatrixView<const T>{}, l);
  losses(tape, y.value(), index, l, tape.mutable_value(loss));
  tape.on_backward({loss}, [x, weight, bias, loss, l](Tape<T>& tape) {
    linear_backward<T>(tape, x, weight, bias, l, tape.cotangent(loss).span());
  });
  return loss;
}

#define HARDGRAD_INSTANTIATE(T)                                               \
  template Var<T> binary_cross_entropy(Var<T>, Var<T>, std::span<const int>); \
  template Var<T> linear_binary_cross_entropy(Var<T>, Var<T>, Var<T>, Var<T>, std::span<const int>);
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)
#undef HARDGRAD_INSTANTIATE

}  // namespace hardgrad
