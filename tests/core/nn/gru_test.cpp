#include "core/nn/layers.hpp"

#include "core/autodiff/reduce.hpp"
#include "tests/support/gradient_check.hpp"

namespace hardgrad::testing::gru_test {

TEST_CASE("a GRU has PyTorch's names, shapes and range, and steps with its cell") {
  ParameterSet<double> set;
  const Gru<double> gru(set, "reader", 5, 4, Key(1));
  std::vector<std::string> names;
  for (const auto& p : set) {
    names.push_back(p.name);
    for (double x : p.value) CHECK(std::abs(x) < 0.5);
  }
  CHECK(names == std::vector<std::string>{"reader.input.weight", "reader.input.bias", "reader.recurrent.weight",
                                          "reader.recurrent.bias"});
  CHECK(set.begin()->value.shape() == std::vector<std::size_t>{12, 5});
  CHECK(gru.recurrent.weight->value.shape() == std::vector<std::size_t>{12, 4});
  Tape<double> tape;
  const auto x = place(tape, {random_matrix(3, 5, 1), random_matrix(3, 4, 2)});
  const auto h = gru.step(gru.project(x[0]), x[1]).value();
  // The first unit of the first row, computed explicitly.
  const auto gate = [&](const Linear<double>& layer, const Matrix& in, std::size_t row) {
    double sum = layer.bias->value.flat(row);
    for (std::size_t i = 0; i < in.shape()[1]; ++i) sum += layer.weight->value(row, i) * in.flat(i);
    return sum;
  };
  const auto in = random_matrix(3, 5, 1), last = random_matrix(3, 4, 2);
  const auto sig = [](double v) { return 1 / (1 + std::exp(-v)); };
  const double r = sig(gate(gru.input, in, 0) + gate(gru.recurrent, last, 0)),
               z = sig(gate(gru.input, in, 4) + gate(gru.recurrent, last, 4)),
               n = std::tanh(gate(gru.input, in, 8) + r * gate(gru.recurrent, last, 8));
  CHECK(h(0, 0) == doctest::Approx((1 - z) * n + z * last.flat(0)).epsilon(1e-13));
}

}  // namespace hardgrad::testing::gru_test
