#include "core/autodiff/regularisation.hpp"

#include <cmath>

#include "core/autodiff/require.hpp"

namespace hardgrad {

// y = m x with m = 0 or 1 / (1 - rate); gx = m g
template <class T>
Var<T> dropout(Var<T> x, double rate, Key key, std::span<const Draw> place) {
  require_shapes(place.size() == x.rows(), "dropout", {x});
  if (!(rate >= 0 && rate < 1)) throw Bug("dropout: the rate must be in [0, 1), got " + std::to_string(rate));
  if (rate == 0) return x;
  auto& tape = *x.tape;
  auto y = tape.output(x.rows(), x.cols(), {x});
  const auto mask = tape.template scratch<T>(x.value().size());
  const auto kept = static_cast<T>(1 / (1 - rate));
  KeyedRandomness random(key);
  const std::size_t cols = x.cols();
  for (std::size_t i = 0; i < mask.size(); ++i) {
    auto where = place[i / cols];
    where.column += static_cast<std::uint32_t>(i % cols);
    mask[i] = random.uniform(where) < rate ? T{0} : kept;
  }
  const T *in = x.value().data, *m = mask.data();
  T* out = tape.mutable_value(y).data;
  for (std::size_t i = 0; i < mask.size(); ++i) out[i] = m[i] == 0 ? T{0} : m[i] * in[i];
  tape.on_backward({y}, [x, y, m](Tape<T>& tape) {
    const T* g = tape.cotangent(y).data;
    tape.sink(x).accumulate([=](std::size_t i) { return m[i] * g[i]; });
  });
  return y;
}

template Var<float> dropout(Var<float>, double, Key, std::span<const Draw>);
template Var<double> dropout(Var<double>, double, Key, std::span<const Draw>);

// With u = (x - m) s, s = 1 / sqrt(v + epsilon), y = gain u + bias and d = g gain:
// gx = s (d - mean_j d - u mean_j(d u)), g gain[j] = sum_r g u, g bias[j] = sum_r g
template <class T>
Var<T> layer_norm(Var<T> x, Var<T> gain, Var<T> bias, double epsilon) {
  const auto row_of = [&](Var<T> v) { return v.rows() == 1 && v.cols() == x.cols(); };
  require_shapes(x.cols() > 0 && row_of(gain) && row_of(bias), "layer_norm", {x, gain, bias});
  auto& tape = *x.tape;
  auto y = tape.output(x.rows(), x.cols(), {x, gain, bias});
  const auto in = x.value();
  const auto out = tape.mutable_value(y);
  const std::size_t rows = in.rows, cols = in.cols;
  const T *scale = gain.value().data, *shift = bias.value().data;
  const auto unit = tape.template scratch<T>(in.size()), slope = tape.template scratch<T>(rows);  // u, s
  for (std::size_t r = 0; r < rows; ++r) {
    double mean = 0, variance = 0;
    for (std::size_t j = 0; j < cols; ++j) mean += in(r, j);
    mean /= static_cast<double>(cols);
    for (std::size_t j = 0; j < cols; ++j) variance += (in(r, j) - mean) * (in(r, j) - mean);
    const double s = 1 / std::sqrt(variance / static_cast<double>(cols) + epsilon);
    slope[r] = static_cast<T>(s);
    for (std::size_t j = 0; j < cols; ++j) {
      unit[r * cols + j] = static_cast<T>((in(r, j) - mean) * s);
      out(r, j) = scale[j] * unit[r * cols + j] + shift[j];
    }
  }
  tape.on_backward({y}, [x, gain, bias, y, u = unit.data(), s = slope.data()](Tape<T>& tape) {
    const auto g = tape.cotangent(y);
    const std::size_t rows = g.rows, cols = g.cols;
    const T* scale = tape.value(gain).data;
    if (tape.needs_gradient(x)) {
      const auto sink = tape.sink(x);
      for (std::size_t r = 0; r < rows; ++r) {
        double mean = 0, along = 0;
        for (std::size_t j = 0; j < cols; ++j) {
          const double d = double(g(r, j)) * scale[j];
          mean += d / double(cols);
          along += d * u[r * cols + j] / double(cols);
        }
        for (std::size_t j = 0; j < cols; ++j) {
          const auto give = static_cast<T>(s[r] * (double(g(r, j)) * scale[j] - mean - u[r * cols + j] * along));
          sink.to(r, j) = sink.first ? give : sink.to(r, j) + give;
        }
      }
    }
    const auto sums = [&](Var<T> of, auto term) {
      if (!tape.needs_gradient(of)) return;
      tape.sink(of).accumulate([&](std::size_t j) {
        double sum = 0;
        for (std::size_t r = 0; r < rows; ++r) sum += term(r, j);
        return static_cast<T>(sum);
      });
    };
    sums(gain, [&](std::size_t r, std::size_t j) { return double(g(r, j)) * u[r * cols + j]; });
    sums(bias, [&](std::size_t r, std::size_t j) { return double(g(r, j)); });
  });
  return y;
}

template Var<float> layer_norm(Var<float>, Var<float>, Var<float>, double);
template Var<double> layer_norm(Var<double>, Var<double>, Var<double>, double);

}  // namespace hardgrad
