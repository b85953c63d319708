#include "core/autodiff/matching.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/autodiff/require.hpp"

namespace hardgrad {

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
