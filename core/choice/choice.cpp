#include "core/choice/choice.hpp"

#include <algorithm>
#include <cmath>

#include "core/autodiff/product.hpp"
#include "core/autodiff/rearrange.hpp"
#include "core/autodiff/require.hpp"

namespace hardgrad {

RowsPtr Rows::after(RowsPtr origin, std::vector<int> parent, int step) {
  auto rows = std::make_shared<Rows>();
  const std::size_t n = parent.size();
  rows->example.resize(n);
  rows->replica.resize(n);
  int longest = 0;
  for (std::size_t r = 0; r < n; ++r) {
    rows->example[r] = origin->example[parent[r]];
    rows->replica[r] = r > 0 && rows->example[r] == rows->example[r - 1] ? rows->replica[r - 1] + 1 : 0;
    longest = std::max(longest, rows->replica[r] + 1);
  }
  const std::size_t examples = n ? static_cast<std::size_t>(rows->example.back()) + 1 : 0;
  rows->copies = examples * longest == n ? longest : 0;
  rows->parent = std::move(parent);
  rows->origin = std::move(origin);
  rows->step = step;
  return rows;
}

namespace {

/// |h + q|^2 of directions within 1e-6 radians of opposite ones, where rounding would choose the plane.
constexpr double opposite = 1e-12;

/// A row's g -> A' g |code| / |point|, with A = I - 2 r r' + 2 q h' of the directions h and q, and r that of h + q.
template <class T>
void rotate_back(const T* point, const T* code, const T* g, std::size_t d, T* to) {
  const auto dot = [d](auto a, auto b) {
    double sum = 0;
    for (std::size_t i = 0; i < d; ++i) sum += a(i) * b(i);
    return sum;
  };
  const auto of = [](const T* x, double scale) {
    return [x, scale](std::size_t i) { return static_cast<double>(x[i]) * scale; };
  };
  const double length = std::sqrt(dot(of(point, 1), of(point, 1))), other = std::sqrt(dot(of(code, 1), of(code, 1)));
  const auto h = of(point, 1 / length), q = of(code, 1 / other), out = of(g, 1);
  const auto between = [&](std::size_t i) { return h(i) + q(i); };
  const double square = dot(between, between);
  if (!(length > 0 && other > 0 && square > opposite)) {
    std::copy_n(g, d, to);
    return;
  }
  const double along = 2 * dot(between, out) / square, turned = 2 * dot(q, out);
  for (std::size_t i = 0; i < d; ++i) to[i] = static_cast<T>(other / length * (out(i) - along * between(i) + turned * h(i)));
}

}  // namespace

template <class T>
Var<T> codes_of(const Choice<T>& choice, Var<T> table) {
  if (choice.code) return choice.code;
  if (!choice.hard()) return matmul(choice.weights(), table);
  return gather_rows(table, std::span<const int>(choice.option()));
}

template <class T>
Var<T> copied_gradient(Var<T> point, Var<T> code) {
  require_shapes(same_shape(point, code), "copied_gradient", {point, code});
  const auto y = point.tape->output(code.rows(), code.cols(), {point});
  std::copy_n(code.value().data, code.value().size(), point.tape->mutable_value(y).data);
  point.tape->on_backward({y}, [point, y](Tape<T>& tape) { tape.pass_on(y, point); });
  return y;
}

template <class T>
Var<T> rotated_gradient(Var<T> point, Var<T> code) {
  require_shapes(same_shape(point, code), "rotated_gradient", {point, code});
  const auto y = point.tape->output(code.rows(), code.cols(), {point});
  std::copy_n(code.value().data, code.value().size(), point.tape->mutable_value(y).data);
  point.tape->on_backward({y}, [point, y](Tape<T>& tape) {
    if (!tape.needs_gradient(point)) return;
    const auto h = tape.value(point), q = tape.value(y), g = tape.cotangent(y);
    const auto turned = tape.template scratch<T>(g.size());
    for (std::size_t r = 0; r < g.rows; ++r)
      rotate_back(h.data + r * g.cols, q.data + r * g.cols, g.data + r * g.cols, g.cols, turned.data() + r * g.cols);
    tape.sink(point).accumulate([&](std::size_t i) { return turned[i]; });
  });
  return y;
}

#define HARDGRAD_INSTANTIATE(T)                       \
  template Var<T> codes_of(const Choice<T>&, Var<T>); \
  template Var<T> copied_gradient(Var<T>, Var<T>);    \
  template Var<T> rotated_gradient(Var<T>, Var<T>);
HARDGRAD_INSTANTIATE(float)
HARDGRAD_INSTANTIATE(double)
#undef HARDGRAD_INSTANTIATE

}  // namespace hardgrad
