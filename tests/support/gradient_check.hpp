// Compares gradients with central differences, and float with double. All entries of the cotangent differ, so errors that are
// symmetric in the entries are detected.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/autodiff/tape.hpp"
#include "core/random/randomness.hpp"

namespace hardgrad::testing {

using Matrix = Array<double>;

/// Uniform random numbers in [low, high], a function of the arguments.
inline Matrix random_matrix(std::size_t rows, std::size_t cols, std::uint64_t seed, double low = -1.5, double high = 1.5) {
  Matrix x = zeros<double>({rows, cols});
  KeyedRandomness randomness{Key(seed)};
  std::uint32_t index = 0;
  for (double& v : x) v = low + (high - low) * randomness.uniform({.index = index++});
  return x;
}

template <class T>
std::vector<Var<T>> place(Tape<T>& tape, const std::vector<Matrix>& inputs) {
  std::vector<Var<T>> placed;
  for (const auto& x : inputs) {
    const std::vector<T> values(x.begin(), x.end());
    placed.push_back(tape.input({values.data(), x.shape()[0], x.shape()[1]}));
  }
  return placed;
}

/// The cotangent of entry i.
inline double asymmetric(std::size_t i) { return 0.4 + 0.6 * std::sin(1.3 * static_cast<double>(i) + 0.5); }

/// sum_i cotangent[i] y[i]; outputs of -inf are skipped.
template <class F>
double projected(F& f, const std::vector<Matrix>& inputs) {
  Tape<double> tape;
  const auto y = f(tape, place(tape, inputs)).value();
  double total = 0;
  for (std::size_t i = 0; i < y.size(); ++i)
    if (y.data[i] != -INFINITY) total += asymmetric(i) * y.data[i];
  return total;
}

/// The values of f, and the concatenated gradients of the inputs.
template <class T, class F>
std::pair<std::vector<double>, std::vector<double>> evaluate(F& f, const std::vector<Matrix>& inputs) {
  Tape<T> tape;
  const auto placed = place(tape, inputs);
  const auto out = f(tape, placed);
  const auto y = out.value();
  std::vector<T> cotangent(y.size());
  for (std::size_t i = 0; i < y.size(); ++i) cotangent[i] = static_cast<T>(asymmetric(i));
  tape.backward(out, {cotangent.data(), y.rows, y.cols});
  std::pair<std::vector<double>, std::vector<double>> result;
  result.first.assign(y.data, y.data + y.size());
  for (auto x : placed) {
    const auto g = tape.gradient(x);
    result.second.insert(result.second.end(), g.data, g.data + g.size());
  }
  return result;
}

/// Empty if backward agrees with central differences, otherwise a message about the worst entry.
template <class F>
std::string gradient_error(F f, std::vector<Matrix> inputs, double tolerance = 1e-6) {
  const auto gradient = evaluate<double>(f, inputs).second;
  std::string message;
  double worst = 0;
  std::size_t at = 0;
  for (std::size_t k = 0; k < inputs.size(); ++k)
    for (std::size_t i = 0; i < inputs[k].size(); ++i, ++at) {
      double& x = inputs[k].flat(i);
      if (!std::isfinite(x)) {
        if (gradient[at] != 0) return "gradient " + std::to_string(gradient[at]) + " at an infinite input";
        continue;
      }
      const double centre = x, h = 1e-5;
      x = centre + h;
      const double above = projected(f, inputs);
      x = centre - h;
      const double below = projected(f, inputs);
      x = centre;
      const double expected = (above - below) / (2 * h);
      const double error = std::abs(gradient[at] - expected) / std::max(1.0, std::abs(expected));
      if (!(error <= tolerance) && !(error <= worst)) {
        worst = error;
        message = "input " + std::to_string(k) + ", entry " + std::to_string(i) + ": backward gives " +
                  std::to_string(gradient[at]) + ", differences give " + std::to_string(expected);
      }
    }
  return message;
}

/// Empty if values and gradients in float and double agree up to rounding, otherwise a message.
template <class F>
std::string precision_error(F f, const std::vector<Matrix>& inputs, double tolerance = 2e-5) {
  std::vector<Matrix> rounded = inputs;
  for (auto& x : rounded)
    for (double& v : x) v = static_cast<float>(v);
  const auto single = evaluate<float>(f, rounded), exact = evaluate<double>(f, rounded);
  const auto compare = [&](const std::vector<double>& a, const std::vector<double>& b, const char* what) {
    double scale = 1;
    for (double v : b)
      if (std::isfinite(v)) scale = std::max(scale, std::abs(v));
    for (std::size_t i = 0; i < b.size(); ++i)
      if (a[i] != b[i] && !(std::abs(a[i] - b[i]) <= tolerance * scale))
        return std::string(what) + " " + std::to_string(i) + ": float gives " + std::to_string(a[i]) + ", double gives " +
               std::to_string(b[i]);
    return std::string();
  };
  const auto values = compare(single.first, exact.first, "value");
  return values.empty() ? compare(single.second, exact.second, "gradient") : values;
}

/// Checks f(tape, inputs) -> Var, a generic lambda: `[](auto& tape, const auto& x) { ... }`.
template <class F>
void expect_gradient(F f, const std::vector<Matrix>& inputs) {
  const auto gradient = gradient_error(f, inputs), precision = precision_error(f, inputs);
  CHECK_MESSAGE(gradient.empty(), gradient);
  CHECK_MESSAGE(precision.empty(), precision);
}

/// The scalar type T of a tape, for use in a generic lambda.
template <class T>
T number(const Tape<T>&);
template <class Tape>
using Number = decltype(number(std::declval<const Tape&>()));

}  // namespace hardgrad::testing
