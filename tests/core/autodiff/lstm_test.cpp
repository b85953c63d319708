#include "core/autodiff/lstm.hpp"

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "tests/support/gradient_check.hpp"

namespace hardgrad::testing::lstm_test {

TEST_CASE("lstm_cell: h alone, c alone, both, chained") {
  for (auto [rows, hidden] : {std::pair<std::size_t, std::size_t>{1, 1}, {3, 2}, {2, 16}, {2, 19}}) {
    const std::vector<Matrix> x{random_matrix(rows, 4 * hidden, 1, -2, 2), random_matrix(rows, hidden, 2)};
    expect_gradient([](auto&, const auto& v) { return lstm_cell(v[0], v[1]).h; }, x);
    expect_gradient([](auto&, const auto& v) { return lstm_cell(v[0], v[1]).c; }, x);
    expect_gradient(
        [](auto&, const auto& v) {
          auto s = lstm_cell(v[0], v[1]);
          return concat_columns({s.h, s.c});
        },
        x);
    expect_gradient(
        [](auto&, const auto& v) {
          auto s = lstm_cell(v[0], lstm_cell(v[0], v[1]).c);
          return add(s.h, multiply(s.c, v[1]));
        },
        x);
  }
}

TEST_CASE("lstm_cell reuses the memory of gates that an operation computed") {
  const std::vector<Matrix> x{random_matrix(3, 8, 1, -2, 2), random_matrix(3, 2, 2)};
  expect_gradient([](auto&, const auto& v) { return lstm_cell(add(v[0], v[0]), v[1]).h; }, x);
  Tape<double> tape;
  const auto v = place(tape, x);
  const auto gates = affine(v[0], 1.0);
  const auto used = tape.arena().used();
  const auto s = lstm_cell(gates, v[1]);
  CHECK(tape.arena().used() - used <= 512);  // two results [3, 2] and a closure
  CHECK_THROWS_AS(gates.value(), Bug);
  const auto again = lstm_cell(v[0], v[1]);  // a leaf is not overwritten
  CHECK(v[0].value().data[3] == x[0].data[3]);
  for (std::size_t i = 0; i < 6; ++i) CHECK(again.h.value().data[i] == s.h.value().data[i]);
}

TEST_CASE("lstm_cell equals its formula") {
  Tape<double> tape;
  const auto v = place(tape, {Matrix({1, 4}, std::vector<double>{0.1, -0.2, 0.3, 0.4}), Matrix({1, 1}, 0.5)});
  const auto s = lstm_cell(v[0], v[1]);
  const auto sig = [](double x) { return 1 / (1 + std::exp(-x)); };
  const double c = sig(-0.2) * 0.5 + sig(0.1) * std::tanh(0.3);
  CHECK(s.c.item() == doctest::Approx(c).epsilon(1e-14));
  CHECK(s.h.item() == doctest::Approx(sig(0.4) * std::tanh(c)).epsilon(1e-14));
  CHECK_THROWS_AS(lstm_cell(v[1], v[1]), Bug);
}

}  // namespace hardgrad::testing::lstm_test
