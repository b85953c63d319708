// Operations that move entries forward, and cotangents back to their origin.
#include "core/autodiff/rearrange.hpp"

#include "core/autodiff/require.hpp"
#include "core/kernels/lanes.hpp"
#include "core/kernels/pairs.hpp"
#include "core/kernels/rows.hpp"

namespace hardgrad {
namespace {

// For rows of one or two entries, such as a bit's, a call of memcpy or a vector loop is too slow.
template <class T>
void copy_row(const T* from, std::size_t n, T* to) {
  if (n > 2) {
    std::copy_n(from, n, to);
    return;
  }
  if (n > 0) to[0] = from[0];
  if (n > 1) to[1] = from[1];
}

template <class T>
void add_row(const T* from, std::size_t n, T* to) {
  if (n > 2) {
    for (std::size_t j = 0; j < n; ++j) to[j] += from[j];
    return;
  }
  if (n > 0) to[0] += from[0];
  if (n > 1) to[1] += from[1];
}

/// Calls f(r, n) for runs of adjacent rows r .. r + n - 1, and skip(r) for a row of index -1.
template <class F, class Skip>
void for_runs(std::span<const int> index, F f, Skip skip) {
  constexpr std::size_t block = 16;  // without an exit, so that the loop is vectorised
  bool long_runs = index.size() >= block;
  for (std::size_t i = 1; long_runs && i < block; ++i) long_runs = index[i] == index[0] + static_cast<int>(i);
  for (std::size_t r = 0, n; r < index.size(); r += n) {
    n = 1;
    if (index[r] < 0) {
      skip(r);
      continue;
    }
    if (!long_runs) {
      f(r, 1);
      continue;
    }
    const auto goes_on = [&](std::size_t i) { return index[r + i] == index[r] + static_cast<int>(i); };
    for (bool all = r + 1 < index.size() && goes_on(1); all && r + n + block <= index.size(); n += all ? block : 0)
      for (std::size_t i = 0; i < block; ++i) all &= goes_on(n + i);
    while (r + n < index.size() && goes_on(n)) ++n;
    f(r, n);
  }
}

// to[j] += a[j] b[j]
template <class T>
void add_product(const T* a, const T* b, std::size_t n, T* __restrict to) {
  for (std::size_t j = 0; j < n; ++j) to[j] += a[j] * b[j];
}

template <class T>
struct Factors {
  const T *a, *b;
};

// to[j] = sum_k terms[k].a[j] terms[k].b[j]
template <class T>
void sum_products(std::span<const Factors<T>> terms, std::size_t n, T* to) {
  if (n < kernels::width<T>) {  // the padded copies of an incomplete register take longer
    std::fill_n(to, n, T{0});
    for (const auto& [a, b] : terms) add_product(a, b, n, to);
    return;
  }
  kernels::for_lanes<T>(n, [&](auto lane) {
    kernels::Batch<T> sum(T{0});
    for (const auto& [a, b] : terms) sum = xsimd::fma(lane.load(a), lane.load(b), sum);
    lane.store(to, sum);
  });
}

}  // namespace

// y[r] = x[index[r]]; gx[index[r]] += g[r]
template <class T>
Var<T> gather_rows(Var<T> x, std::span<const int> index) {
  require_indices("gather_rows", index, -1, x.rows());
  auto y = x.tape->output(index.size(), x.cols(), {x});
  const auto in = x.value();
  const auto out = x.tape->mutable_value(y);
  for_runs(
      index, [&](std::size_t r, std::size_t n) { copy_row(in.row(index[r]), n * out.cols, out.row(r)); },
      [&](std::size_t r) { std::fill_n(out.row(r), out.cols, T{0}); });
  if (!x.tape->needs_gradient(y)) return y;
  x.tape->on_backward({y}, [x, y, index = x.tape->keep(index)](Tape<T>& tape) {
    const auto g = tape.cotangent(y);
    const auto to = tape.sink(x).scattered();
    for_runs(
        index, [&](std::size_t r, std::size_t n) { add_row(g.row(r), n * g.cols, to.row(index[r])); }, [](std::size_t) {});
  });
  return y;
}

// If index[r] is row i of block k: y[r] = xk[i]; gxk[i] += g[r]
template <class T>
Var<T> gather_rows(std::span<const Var<T>> blocks, std::span<const int> index) {
  if (blocks.empty()) throw Bug("gather_rows: no blocks");
  auto& tape = *blocks[0].tape;
  const std::size_t cols = blocks[0].cols();
  struct BlockRow {
    int block, row;
  };
  std::size_t rows = 0;
  for (auto block : blocks) rows += block.rows();
  std::vector<BlockRow> stacked;
  stacked.reserve(rows);
  for (std::size_t k = 0; k < blocks.size(); ++k) {
    require_shapes(blocks[k].cols() == cols, "gather_rows", {blocks[0], blocks[k]});
    for (std::size_t i = 0; i < blocks[k].rows(); ++i) stacked.push_back({static_cast<int>(k), static_cast<int>(i)});
  }
  require_indices("gather_rows", index, -1, stacked.size());
  auto y = tape.output(index.size(), cols, blocks);
  const auto out = tape.mutable_value(y);
  const auto from = tape.template scratch<BlockRow>(index.size());
  for (std::size_t r = 0; r < index.size(); ++r) {
    const auto [block, row] = from[r] = index[r] < 0 ? BlockRow{-1, 0} : stacked[index[r]];
    if (block >= 0)
      copy_row(blocks[block].value().row(row), cols, out.row(r));
    else
      std::fill_n(out.row(r), cols, T{0});
  }
  if (!tape.needs_gradient(y)) return y;
  tape.on_backward({y}, [y, from, kept = tape.keep(blocks)](Tape<T>& tape) {
    const auto g = tape.cotangent(y);
    const auto to = tape.template scratch<MatrixView<T>>(kept.size());
    for (std::size_t k = 0; k < kept.size(); ++k)
      to[k] = tape.needs_gradient(kept[k]) ? tape.sink(kept[k]).scattered() : MatrixView<T>{};
    for (std::size_t r = 0; r < g.rows; ++r)
      if (const auto [block, row] = from[r]; block >= 0 && to[block].data) add_row(g.row(r), g.cols, to[block].row(row));
  });
  return y;
}

// y = [x1 x2 ...]; gxk = columns of xk in g
template <class T>
Var<T> concat_columns(std::initializer_list<Var<T>> blocks) {
  if (blocks.size() == 0) throw Bug("concat_columns: nothing to concatenate");
  auto& tape = *blocks.begin()->tape;
  const std::size_t rows = blocks.begin()->rows();
  std::size_t cols = 0;
  for (auto block : blocks) {
    require_shapes(block.rows() == rows, "concat_columns", blocks);
    cols += block.cols();
  }
  auto y = tape.output(rows, cols, blocks);
  const auto out = tape.mutable_value(y);
  std::size_t from = 0;
  for (auto block : blocks) {
    const auto in = block.value();
    for (std::size_t r = 0; r < rows; ++r) copy_row(in.row(r), in.cols, out.row(r) + from);
    from += in.cols;
  }
  if (!tape.needs_gradient(y)) return y;
  tape.on_backward({y}, [y, kept = tape.keep(std::span<const Var<T>>(blocks.begin(), blocks.size()))](Tape<T>& tape) {
    const auto g = tape.cotangent(y);
    std::size_t from = 0;
    for (auto block : kept) {
      const std::size_t n = block.cols();
      if (tape.needs_gradient(block)) {
        const auto sink = tape.sink(block);
        for (std::size_t r = 0; r < g.rows; ++r)
          if (sink.first)
            copy_row(g.row(r) + from, n, sink.to.row(r));
          else
            add_row(g.row(r) + from, n, sink.to.row(r));
      }
      from += n;
    }
  });
  return y;
}

// y[r, j] = x[r, from + j]; gx = g in those columns, 0 in the others
template <class T>
Var<T> slice_columns(Var<T> x, std::size_t from, std::size_t count) {
  require_shapes(from + count <= x.cols(), "slice_columns", {x});
  auto y = x.tape->output(x.rows(), count, {x});
  const auto in = x.value();
  const auto out = x.tape->mutable_value(y);
  if (count == 1)
    for (std::size_t r = 0; r < out.rows; ++r) out.data[r] = in.data[r * in.cols + from];
  else
    for (std::size_t r = 0; r < out.rows; ++r) copy_row(in.row(r) + from, count, out.row(r));
  x.tape->on_backward({y}, [x, y, from](Tape<T>& tape) {
    const auto g = tape.cotangent(y);
    const auto to = tape.sink(x).scattered();
    if (g.cols == 1)
      for (std::size_t r = 0; r < g.rows; ++r) to.data[r * to.cols + from] += g.data[r];
    else
      for (std::size_t r = 0; r < g.rows; ++r) add_row(g.row(r), g.cols, to.row(r) + from);
  });
  return y;
}

// y = the blocks stacked vertically; each block's cotangent is its rows of g
template <class T>
Var<T> stack_rows(std::span<const Var<T>> blocks) {
  if (blocks.empty()) throw Bug("stack_rows: nothing to stack");
  auto& tape = *blocks[0].tape;
  const std::size_t cols = blocks[0].cols();
  std::size_t rows = 0;
  for (auto block : blocks) {
    require_shapes(block.cols() == cols, "stack_rows", {blocks[0], block});
    rows += block.rows();
  }
  auto y = tape.output(rows, cols, blocks);
  T* out = tape.mutable_value(y).data;
  for (auto block : blocks) out = std::copy_n(block.value().data, block.value().size(), out);
  if (!tape.needs_gradient(y)) return y;
  tape.on_backward({y}, [y, kept = tape.keep(blocks)](Tape<T>& tape) {
    const T* g = tape.cotangent(y).data;
    for (auto block : kept) {
      if (tape.needs_gradient(block)) tape.sink(block).accumulate([g](std::size_t i) { return g[i]; });
      g += block.value().size();
    }
  });
  return y;
}

// y[i] = (0, x[i]) by flat index; gx[i] = g[i, 1]
template <class T>
Var<T> beside_zero(Var<T> x) {
  const std::size_t n = x.value().size();
  auto y = x.tape->output(n, 2, {x});
  const T* in = x.value().data;
  T* out = x.tape->mutable_value(y).data;
  for (std::size_t i = 0; i < n; ++i) {
    out[2 * i] = T{0};
    out[2 * i + 1] = in[i];
  }
  x.tape->on_backward({y}, [x, y](Tape<T>& tape) {
    const T* g = tape.cotangent(y).data;
    tape.sink(x).accumulate([=](std::size_t i) { return g[2 * i + 1]; });
  });
  return y;
}

namespace {

constexpr std::size_t picked_at_once = 512;  // columns whose numbers stay in the first-level cache

/// to[d] = x[d S + column[d]]
template <class T>
void pick_row(const T* x, std::size_t S, const int* column, std::size_t D, T* __restrict to) {
  if (S != 2) {
    for (std::size_t d = 0; d < D; ++d) to[d] = x[d * S + column[d]];
    return;
  }
  T first[picked_at_once], second[picked_at_once];
  for (std::size_t from = 0; from < D; from += picked_at_once) {
    const std::size_t n = std::min(picked_at_once, D - from);
    kernels::split_pairs(x + 2 * from, n, first, second);
    for (std::size_t i = 0; i < n; ++i) to[from + i] = column[from + i] == 0 ? first[i] : second[i];
  }
}

/// to[d S + column[d]] += give(d)
template <class T, class F>
void add_picked(F give, std::size_t S, const int* column, std::size_t D, T* __restrict to) {
  if (S != 2) {
    for (std::size_t d = 0; d < D; ++d) to[d * S + column[d]] += give(d);
    return;
  }
  T first[picked_at_once], second[picked_at_once];
  for (std::size_t from = 0; from < D; from += picked_at_once) {
    const std::size_t n = std::min(picked_at_once, D - from);
    for (std::size_t i = 0; i < n; ++i) {
      const T g = give(from + i);
      first[i] = column[from + i] == 0 ? g : T{0};
      second[i] = column[from + i] == 0 ? T{0} : g;
    }
    kernels::add_pairs(first, second, n, to + 2 * from);
  }
}

template <class T>
void require_groups(const char* operation, Var<T> x, std::size_t D, std::span<const int> group, std::span<const int> column) {
  if (D == 0 || group.size() * D != column.size() || x.rows() % D != 0)
    throw Bug(std::string(operation) + ": groups and columns do not match");
  require_indices(operation, group, 0, x.rows() / D);
  require_indices(operation, column, 0, x.cols());
}

}  // namespace

// y[r, d] = x[group[r] D + d, column[r D + d]]; gx at the same entry += g[r, d]
template <class T>
Var<T> pick_in_groups(Var<T> x, std::size_t D, std::span<const int> group, std::span<const int> column) {
  require_groups("pick_in_groups", x, D, group, column);
  const std::size_t R = group.size(), S = x.cols();
  auto y = x.tape->output(R, D, {x});
  const auto out = x.tape->mutable_value(y);
  for (std::size_t r = 0; r < R; ++r) pick_row(x.value().row(group[r] * D), S, column.data() + r * D, D, out.row(r));
  if (!x.tape->needs_gradient(y)) return y;
  x.tape->on_backward({y}, [x, y, D, S, group = x.tape->keep(group), column = x.tape->keep(column)](Tape<T>& tape) {
    const auto g = tape.cotangent(y);
    const auto to = tape.sink(x).scattered();
    for (std::size_t r = 0; r < g.rows; ++r)
      add_picked([give = g.row(r)](std::size_t d) { return give[d]; }, S, column.data() + r * D, D, to.row(group[r] * D));
  });
  return y;
}

// y[r] = sum_d x[group[r] D + d, column[r D + d]]; gx at the same entries += g[r]
template <class T>
Var<T> sums_in_groups(Var<T> x, std::size_t D, std::span<const int> group, std::span<const int> column) {
  require_groups("sums_in_groups", x, D, group, column);
  const std::size_t R = group.size(), S = x.cols();
  auto& tape = *x.tape;
  auto y = tape.output(R, 1, {x});
  T* out = tape.mutable_value(y).data;
  const auto picked = tape.template scratch<T>(D);
  for (std::size_t r = 0; r < R; ++r) {
    pick_row(x.value().row(group[r] * D), S, column.data() + r * D, D, picked.data());
    out[r] = static_cast<T>(kernels::row_sum(picked.data(), D));
  }
  if (!tape.needs_gradient(y)) return y;
  tape.on_backward({y}, [x, y, D, S, group = tape.keep(group), column = tape.keep(column)](Tape<T>& tape) {
    const T* g = tape.cotangent(y).data;
    const auto to = tape.sink(x).scattered();
    for (std::size_t from = 0; from < D; from += picked_at_once)
      for (std::size_t r = 0; r < group.size(); ++r)
        add_picked([give = g[r]](std::size_t) { return give; }, S, column.data() + r * D + from,
                   std::min(picked_at_once, D - from), to.row(group[r] * D + from));
  });
  return y;
}

// y[n] = sum_w u[n W + w] (.) table[tokens[n W + w]]; gtable[token] += u (.) g[n]
template <class T>
Var<T> bag(Var<T> table, std::span<const int> tokens, std::size_t words, BagWeights<T> weights) {
  if (words == 0 || tokens.size() % words != 0) throw Bug("bag: tokens are not a whole number of bags");
  auto& tape = *table.tape;
  const std::size_t D = table.cols();
  const bool weighted = weights.rows.data;
  if (weighted && (weights.index.size() != tokens.size() || weights.rows.cols != D))
    throw Bug("bag: weights have the wrong shape");
  require_indices("bag", tokens, -1, table.rows());
  if (weighted)
    for (std::size_t i = 0; i < tokens.size(); ++i)
      if (tokens[i] >= 0 && static_cast<std::size_t>(weights.index[i]) >= weights.rows.rows)
        throw Bug("bag: weight index out of range");
  const auto u = tape.template scratch<T>(weighted ? weights.rows.size() : D);  // without weights a single row of ones
  if (weighted)
    std::copy_n(weights.rows.data, u.size(), u.begin());
  else
    std::ranges::fill(u, T{1});
  const auto factors = tape.template scratch<const T*>(tokens.size());  // the row of u for each token
  for (std::size_t i = 0; i < tokens.size(); ++i)
    factors[i] = u.data() + (weighted && tokens[i] >= 0 ? weights.index[i] * D : 0);
  auto y = tape.output(tokens.size() / words, D, {table});
  const auto in = table.value();
  const auto out = tape.mutable_value(y);
  const auto terms = tape.template scratch<Factors<T>>(words);
  for (std::size_t n = 0; n < out.rows; ++n) {
    std::size_t count = 0;
    for (std::size_t i = n * words; i < (n + 1) * words; ++i)
      if (tokens[i] >= 0) terms[count++] = {factors[i], in.row(tokens[i])};
    sum_products(std::span<const Factors<T>>(terms.first(count)), D, out.row(n));
  }
  if (!tape.needs_gradient(y)) return y;
  tape.on_backward({y}, [table, y, words, tokens = tape.keep(tokens), factors](Tape<T>& tape) {
    const auto g = tape.cotangent(y);
    const auto to = tape.sink(table).scattered();
    for (std::size_t n = 0; n < g.rows; ++n)
      for (std::size_t i = n * words; i < (n + 1) * words; ++i)
        if (tokens[i] >= 0) add_product(factors[i], g.row(n), g.cols, to.row(tokens[i]));
  });
  return y;
}

// y[i] = x[i] by flat index; gx = g
template <class T>
Var<T> reshape(Var<T> x, std::size_t cols) {
  const std::size_t size = x.value().size();
  if (cols == x.cols()) return x;
  require_shapes(cols > 0 && size % cols == 0, "reshape", {x});
  auto y = x.tape->view(x, size / cols, cols);
  x.tape->on_backward({y}, [x, y](Tape<T>& tape) { tape.pass_on(y, x); });
  return y;
}

#define HARDGRAD_INSTANTIATE(T)                                                                    \
  template Var<T> beside_zero(Var<T>);                                                             \
  template Var<T> reshape(Var<T>, std::size_t);                                                    \
  template Var<T> gather_rows(Var<T>, std::span<const int>);                                       \
  template Var<T> concat_columns(std::initializer_list<Var<T>>);                                   \
  template Var<T> slice_columns(Var<T>, std::size_t, std::size_t);                                 \
  template Var<T> stack_rows(std::span<const Var<T>>);                                             \
  template Var<T> pick_in_groups(Var<T>, std::size_t, std::span<const int>, std::span<const int>); \
  template Var<T> sums_in_groups(Var<T>, std::size_t, std::span<const int>, std::span<const int>); \
  template Var<T> bag(Var<T>, std::span<const int>, std::size_t, BagWeights<T>);                   \
  template Var<T> gather_rows(std::span<const Var<T>>, std::span<const int>);
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)
#undef HARDGRAD_INSTANTIATE

}  // namespace hardgrad
