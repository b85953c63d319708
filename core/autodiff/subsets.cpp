#include "core/autodiff/subsets.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "core/autodiff/require.hpp"
#include "core/kernels/conditional_poisson.hpp"
#include "core/kernels/plackett_luce.hpp"

namespace hardgrad {
namespace {

using kernels::ConditionalPoisson;
constexpr std::size_t lanes = ConditionalPoisson::lanes;

/// f(rows, first) for groups of rows of x, first, first + 1, ...
template <class T, class F>
void for_groups(MatrixView<const T> x, std::span<const int> options, SubsetSizes subset_size, F&& f) {
  ConditionalPoisson rows;
  for (std::size_t first = 0; first < x.rows; first += lanes) {
    rows.load(x, options, first, subset_size);
    f(rows, first);
  }
}

/// put(r, i, number) for the rows of a group, from a register of their numbers.
template <class F>
void spread(const ConditionalPoisson& rows, std::size_t first, std::span<const int> options, std::size_t i,
            const kernels::Batch<double>& numbers, F&& put) {
  alignas(64) double each[lanes];
  numbers.store_aligned(each);
  for (std::size_t lane = 0; lane < rows.size(); ++lane)
    if (i < static_cast<std::size_t>(options[first + lane])) put(first + lane, i, each[lane]);
}

/// put(r, i, pi) for every option.
template <class F>
void for_marginals(ConditionalPoisson& rows, std::size_t first, std::span<const int> options, F&& put) {
  rows.marginals([&](std::size_t i, const auto& pi) { spread(rows, first, options, i, pi, put); });
}

/// x's cotangent += scale[r] Cov(b, b'g)_i, with g(r, i) given.
template <class T, class G, class Scale>
void add_covariances(Tape<T>& tape, Var<T> x, std::span<const int> options, SubsetSizes subset_size, G&& g, Scale&& scale) {
  const auto to = tape.sink(x).scattered();
  std::vector<double> of_group;
  for_groups(tape.value(x), options, subset_size, [&](ConditionalPoisson& rows, std::size_t first) {
    of_group.assign(rows.options() * lanes, 0.0);
    for (std::size_t lane = 0; lane < rows.size(); ++lane)
      for (std::size_t i = 0; i < static_cast<std::size_t>(options[first + lane]); ++i)
        of_group[i * lanes + lane] = g(first + lane, i);
    rows.covariance(of_group, [&](std::size_t i, const auto& c) {
      spread(rows, first, options, i, c,
             [&](std::size_t r, std::size_t i, double value) { to(r, i) += static_cast<T>(scale(r) * value); });
    });
  });
}

template <class T>
void require_subsets(const char* operation, Var<T> x, std::span<const int> options, SubsetSizes subset_size) {
  require_shapes(
      options.size() == x.rows() && (subset_size.of_row.empty() ? subset_size.same > 0 : subset_size.of_row.size() == x.rows()),
      operation, {x});
  require_indices(operation, options, 1, x.cols() + 1);
  for (int k : subset_size.of_row)
    if (k < 1) throw Bug(std::string(operation) + ": a row picks no option");
}

/// The same, as long as the tape lives.
template <class T>
SubsetSizes kept(Tape<T>& tape, SubsetSizes subset_size) {
  return subset_size.of_row.empty() ? subset_size : SubsetSizes(tape.keep(subset_size.of_row));
}

}  // namespace

// g x += g pi
template <class T>
Var<T> subset_normaliser(Var<T> x, std::span<const int> options, SubsetSizes subset_size) {
  require_subsets("subset_normaliser", x, options, subset_size);
  auto& tape = *x.tape;
  auto y = tape.output(x.rows(), 1, {x});
  T* out = tape.mutable_value(y).data;
  const auto pi = tape.template scratch<T>(tape.needs_gradient(y) ? x.value().size() : 0);
  for_groups(x.value(), options, subset_size, [&](ConditionalPoisson& rows, std::size_t first) {
    for (std::size_t lane = 0; lane < rows.size(); ++lane) out[first + lane] = static_cast<T>(rows.log_normaliser(lane));
    if (!pi.empty())
      for_marginals(rows, first, options,
                    [&](std::size_t r, std::size_t i, double p) { pi[r * x.cols() + i] = static_cast<T>(p); });
  });
  tape.on_backward({y}, [x, y, pi, options = tape.keep(options)](Tape<T>& tape) {
    const T* g = tape.cotangent(y).data;
    const auto to = tape.sink(x).scattered();
    for (std::size_t r = 0; r < to.rows; ++r)
      for (int i = 0; i < options[r]; ++i) to(r, i) += g[r] * pi[r * to.cols + i];
  });
  return y;
}

// gx += Cov(b) g, because pi is the gradient of log Z and Cov(b) its second derivative
template <class T>
Var<T> subset_marginals(Var<T> x, std::span<const int> options, SubsetSizes subset_size) {
  require_subsets("subset_marginals", x, options, subset_size);
  auto& tape = *x.tape;
  auto y = tape.output(x.rows(), x.cols(), {x});
  const auto out = tape.mutable_value(y);
  std::fill_n(out.data, out.size(), T{0});
  for_groups(x.value(), options, subset_size, [&](ConditionalPoisson& rows, std::size_t first) {
    for_marginals(rows, first, options, [&](std::size_t r, std::size_t i, double p) { out(r, i) = static_cast<T>(p); });
  });
  tape.on_backward({y}, [x, y, subset_size = kept(tape, subset_size), options = tape.keep(options)](Tape<T>& tape) {
    const auto g = tape.cotangent(y);
    add_covariances(
        tape, x, options, subset_size, [&](std::size_t r, std::size_t i) { return static_cast<double>(g(r, i)); },
        [](std::size_t) { return 1.0; });
  });
  return y;
}

// H = log Z - pi . x; gx -= g Cov(b) x
template <class T>
Var<T> subset_entropy(Var<T> x, std::span<const int> options, SubsetSizes subset_size) {
  require_subsets("subset_entropy", x, options, subset_size);
  auto& tape = *x.tape;
  auto y = tape.output(x.rows(), 1, {x});
  T* out = tape.mutable_value(y).data;
  for_groups(x.value(), options, subset_size, [&](ConditionalPoisson& rows, std::size_t first) {
    alignas(64) double each[lanes];
    rows.entropy().store_aligned(each);
    for (std::size_t lane = 0; lane < rows.size(); ++lane) out[first + lane] = static_cast<T>(each[lane]);
  });
  tape.on_backward({y}, [x, y, subset_size = kept(tape, subset_size), options = tape.keep(options)](Tape<T>& tape) {
    const T* g = tape.cotangent(y).data;
    const auto logits = tape.value(x);
    const auto logit = [&](std::size_t r, std::size_t i) {
      const auto v = static_cast<double>(logits(r, i));
      return std::isinf(v) ? 0 : v;  // impossible: its indicator is constant
    };
    add_covariances(tape, x, options, subset_size, logit, [&](std::size_t r) { return -static_cast<double>(g[r]); });
  });
  return y;
}

// y[r] = sum_{i in S_r} x[parent_r, i] - log Z[parent_r]; gx[parent_r] += g[r] (1_S - pi)
template <class T>
Var<T> subset_log_probability(Var<T> x, std::span<const int> options, SubsetSizes subset_size, std::span<const int> parent,
                              std::span<const int> picked) {
  require_subsets("subset_log_probability", x, options, subset_size);
  const std::size_t most = parent.empty() ? 0 : picked.size() / parent.size();
  require_shapes(picked.size() == parent.size() * most, "subset_log_probability", {x});
  require_indices("subset_log_probability", parent, 0, x.rows());
  require_indices("subset_log_probability", picked, -1, x.cols());
  auto& tape = *x.tape;
  const auto in = x.value();
  auto y = tape.output(parent.size(), 1, {x});
  const auto pi = tape.template scratch<T>(tape.needs_gradient(y) ? in.size() : 0);
  std::vector<double> log_z(in.rows);
  for_groups(in, options, subset_size, [&](ConditionalPoisson& rows, std::size_t first) {
    for (std::size_t lane = 0; lane < rows.size(); ++lane) log_z[first + lane] = rows.log_normaliser(lane);
    if (!pi.empty())
      for_marginals(rows, first, options,
                    [&](std::size_t r, std::size_t i, double p) { pi[r * in.cols + i] = static_cast<T>(p); });
  });
  T* out = tape.mutable_value(y).data;
  for (std::size_t r = 0; r < parent.size(); ++r) {
    double sum = -log_z[parent[r]];
    for (int i : picked.subspan(r * most, most))
      if (i >= 0) sum += static_cast<double>(in(parent[r], i));
    out[r] = static_cast<T>(sum);
  }
  tape.on_backward({y}, [x, y, most, pi, options = tape.keep(options), parent = tape.keep(parent),
                         picked = tape.keep(picked)](Tape<T>& tape) {
    const T* g = tape.cotangent(y).data;
    const auto to = tape.sink(x).scattered();
    const auto sums = tape.template scratch<double>(to.rows);
    std::fill(sums.begin(), sums.end(), 0.0);
    for (std::size_t r = 0; r < parent.size(); ++r) {
      sums[parent[r]] += static_cast<double>(g[r]);
      for (int i : picked.subspan(r * most, most))
        if (i >= 0) to(parent[r], i) += g[r];
    }
    for (std::size_t r = 0; r < to.rows; ++r)
      for (int i = 0; i < options[r]; ++i) to(r, i) -= static_cast<T>(sums[r] * static_cast<double>(pi[r * to.cols + i]));
  });
  return y;
}

#define HARDGRAD_INSTANTIATE(T)                                                 \
  template Var<T> subset_normaliser(Var<T>, std::span<const int>, SubsetSizes); \
  template Var<T> subset_marginals(Var<T>, std::span<const int>, SubsetSizes);  \
  template Var<T> subset_entropy(Var<T>, std::span<const int>, SubsetSizes);    \
  template Var<T> subset_log_probability(Var<T>, std::span<const int>, SubsetSizes, std::span<const int>, std::span<const int>);
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)
#undef HARDGRAD_INSTANTIATE

// gx[parent_r] += g[r] d log p_r / dx
template <class T>
Var<T> plackett_luce_log_probability(Var<T> x, std::span<const int> options, std::span<const int> parent,
                                     std::span<const int> picked) {
  const std::size_t most = parent.empty() ? 0 : picked.size() / parent.size();
  require_shapes(options.size() == x.rows() && picked.size() == parent.size() * most &&
                     most <= static_cast<std::size_t>(kernels::PlackettLuce::most_picks),
                 "plackett_luce_log_probability", {x});
  require_indices("plackett_luce_log_probability", options, 1, x.cols() + 1);
  require_indices("plackett_luce_log_probability", parent, 0, x.rows());
  require_indices("plackett_luce_log_probability", picked, -1, x.cols());
  auto& tape = *x.tape;
  auto y = tape.output(parent.size(), 1, {x});
  T* out = tape.mutable_value(y).data;
  kernels::PlackettLuce set;
  for (std::size_t r = 0; r < parent.size(); ++r) {
    set.load(x.value().row(parent[r]), options[parent[r]], picked.subspan(r * most, most));
    out[r] = static_cast<T>(set.log_probability());
  }
  tape.on_backward({y}, [x, y, most, options = tape.keep(options), parent = tape.keep(parent),
                         picked = tape.keep(picked)](Tape<T>& tape) {
    const T* g = tape.cotangent(y).data;
    const auto to = tape.sink(x).scattered();
    kernels::PlackettLuce set;
    for (std::size_t r = 0; r < parent.size(); ++r) {
      if (g[r] == 0) continue;
      set.load(tape.value(x).row(parent[r]), options[parent[r]], picked.subspan(r * most, most));
      set.score([&](std::size_t i, double score) { to(parent[r], i) += static_cast<T>(static_cast<double>(g[r]) * score); });
    }
  });
  return y;
}

template Var<float> plackett_luce_log_probability(Var<float>, std::span<const int>, std::span<const int>, std::span<const int>);
template Var<double> plackett_luce_log_probability(Var<double>, std::span<const int>, std::span<const int>,
                                                   std::span<const int>);

}  // namespace hardgrad
