#include "core/nn/layers.hpp"

#include <algorithm>
#include <cmath>

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/reduce.hpp"
#include "tests/support/gradient_check.hpp"

namespace hardgrad::testing::layers_test {

TEST_CASE("parameters have the documented names, shapes and ranges") {
  ParameterSet<double> set;
  Linear<double> linear(set, "read", 16, 3, Key(1));
  Linear<double> bare(set, "bare", 16, 3, Key(1), false);
  Embedding<double> embedding(set, "words", 300, 8, Key(1));
  Lstm<double> lstm(set, "decoder.lstm", 5, 4, Key(1));
  std::vector<std::string> names;
  for (const auto& p : set) names.push_back(p.name);
  CHECK(names == std::vector<std::string>{"read.weight", "read.bias", "bare.weight", "words.weight",
                                          "decoder.lstm.input.weight", "decoder.lstm.recurrent.weight", "decoder.lstm.bias"});
  CHECK(linear.weight->value.shape() == std::vector<std::size_t>{3, 16});
  CHECK(bare.bias == nullptr);
  CHECK(lstm.input->value.shape() == std::vector<std::size_t>{16, 5});
  CHECK(lstm.recurrent->value.shape() == std::vector<std::size_t>{16, 4});
  CHECK(lstm.bias->value.shape() == std::vector<std::size_t>{16});
  for (double x : linear.weight->value) CHECK(std::abs(x) < 0.25);
  for (double x : lstm.recurrent->value) CHECK(std::abs(x) < 0.5);
  for (std::size_t j = 0; j < 16; ++j) CHECK((lstm.bias->value.flat(j) == 1) == (j >= 4 && j < 8));
  double mean = 0, square = 0;
  for (double x : embedding.weight->value) mean += x / 2400, square += x * x / 2400;
  CHECK(std::abs(mean) < 0.01);  // 5 standard errors
  CHECK(std::sqrt(square) == doctest::Approx(0.1).epsilon(0.08));
}

TEST_CASE("a parameter's initial value depends only on its name and the key, and is the same in float") {
  ParameterSet<double> a, b, c;
  uniform_parameter(a, "first", {7}, 1.0, Key(1));
  const auto& x = uniform_parameter(a, "x", {50, 3}, 1.0, Key(1)).value.storage();
  CHECK(x == uniform_parameter(b, "x", {50, 3}, 1.0, Key(1)).value.storage());
  CHECK(x != uniform_parameter(c, "x", {50, 3}, 1.0, Key(2)).value.storage());
  CHECK(x != uniform_parameter(b, "y", {50, 3}, 1.0, Key(1)).value.storage());
  ParameterSet<float> f;
  const auto& single = uniform_parameter(f, "x", {50, 3}, 1.0, Key(1)).value.storage();
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(single[i] == static_cast<float>(x[i]));
  CHECK(*std::min_element(x.begin(), x.end()) < -0.9);
  CHECK(*std::max_element(x.begin(), x.end()) > 0.9);
}

TEST_CASE("gradients of layers in their parameters") {
  ParameterSet<double> set;
  Linear<double> linear(set, "linear", 3, 2, Key(1));
  Embedding<double> embedding(set, "embedding", 4, 3, Key(1));
  Lstm<double> lstm(set, "lstm", 3, 3, Key(1));
  const std::vector<int> index{1, 3, 1};
  const auto loss = [&](Tape<double>& tape) {
    auto x = embedding(tape, std::span<const int>(index));
    auto state = lstm.zero(tape, 3);
    for (int t = 0; t < 3; ++t) state = lstm.step(lstm.project(x), state);
    return sum(square(affine(linear(add(state.h, state.c)), 1.0, 0.3)));
  };
  Tape<double> tape;
  tape.backward(loss(tape));
  std::vector<double> gradient(set.size());
  tape.add_gradient(set, std::span<double>(gradient));
  for (auto& p : set)
    for (std::size_t i = 0; i < p.value.size(); ++i) {
      double& x = p.value.flat(i);
      const double centre = x, h = 1e-5;
      double side[2];
      for (int s = 0; s < 2; ++s) {
        x = centre + (s ? -h : h);
        tape.clear();
        side[s] = loss(tape).item();
      }
      x = centre;
      CHECK(std::abs(gradient[p.offset + i] - (side[0] - side[1]) / (2 * h)) < 1e-6);
    }
}

}  // namespace hardgrad::testing::layers_test
