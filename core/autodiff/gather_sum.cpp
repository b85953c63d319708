#include "core/autodiff/gather_sum.hpp"

#include <array>

#include "core/autodiff/require.hpp"
#include "core/kernels/narrow.hpp"

namespace hardgrad {
namespace {

constexpr std::size_t most_parts = 4;

/// to = x_0 + .. + x_{n-1} in one pass.
template <std::size_t n, class T, class Cols>
void sum_rows(std::array<const T*, most_parts> x, Cols cols, T* __restrict to) {
  for (std::size_t c = 0; c < cols; ++c) {
    T total = x[0][c];
    for (std::size_t j = 1; j < n; ++j) total += x[j][c];
    to[c] = total;
  }
}

}  // namespace

// gx_j[index_j[r]] += g[r]
template <class T>
Var<T> gather_sum(std::size_t rows, std::initializer_list<Part<T>> parts) {
  struct Kept {
    Var<T> x;
    const int* index;
  };
  std::array<Kept, most_parts> kept{};
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
  std::array<MatrixView<const T>, most_parts> from;
  for (std::size_t j = 0; j < count; ++j) from[j] = kept[j].x.value();
  kernels::for_width(cols, [&](auto cols) {
    for (std::size_t r = 0; r < rows; ++r) {
      std::array<const T*, most_parts> x;
      std::size_t n = 0;
      for (std::size_t j = 0; j < count; ++j)
        if (const int i = kept[j].index ? kept[j].index[r] : static_cast<int>(r); i >= 0) x[n++] = from[j].row(i);
      switch (n) {
        case 0: std::fill_n(to.row(r), cols, T{0}); break;
        case 1: std::copy_n(x[0], cols, to.row(r)); break;
        case 2: sum_rows<2>(x, cols, to.row(r)); break;
        case 3: sum_rows<3>(x, cols, to.row(r)); break;
        default: sum_rows<4>(x, cols, to.row(r));
      }
    }
  });
  tape.on_backward({out}, [=](Tape<T>& t) {
    const auto g = t.cotangent(out);
    for (std::size_t j = 0; j < count; ++j) {
      if (!kept[j].index || !t.needs_gradient(kept[j].x)) continue;
      const auto into = t.sink(kept[j].x).scattered();
      kernels::for_width(cols, [&, index = kept[j].index](auto cols) {
        for (std::size_t r = 0; r < rows; ++r) {
          if (index[r] < 0) continue;
          T* __restrict o = into.row(index[r]);
          const T* __restrict x = g.row(r);
          for (std::size_t c = 0; c < cols; ++c) o[c] += x[c];
        }
      });
    }
    std::size_t as_it_stands = count;  // the last of these parts takes over the cotangent's memory
    for (std::size_t j = 0; j < count; ++j) {
      if (kept[j].index || !t.needs_gradient(kept[j].x)) continue;
      if (as_it_stands < count) t.sink(kept[as_it_stands].x).accumulate([&](std::size_t i) { return g.data[i]; });
      as_it_stands = j;
    }
    if (as_it_stands < count) t.pass_on(out, kept[as_it_stands].x);
  });
  return out;
}

template Var<float> gather_sum(std::size_t, std::initializer_list<Part<float>>);
template Var<double> gather_sum(std::size_t, std::initializer_list<Part<double>>);

}  // namespace hardgrad
