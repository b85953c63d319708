#include "core/autodiff/recurrent_cells.hpp"

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/product.hpp"
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
  CHECK(v[0].value().data[3] == x[0].flat(3));
  for (std::size_t i = 0; i < 6; ++i) CHECK(again.h.value().data[i] == s.h.value().data[i]);
}

TEST_CASE("lstm_cell equals its formula") {
  Tape<double> tape;
  const auto v = place(tape, {shaped<double>({1, 4}, {0.1, -0.2, 0.3, 0.4}), Matrix({1, 1}, 0.5)});
  const auto s = lstm_cell(v[0], v[1]);
  const auto sig = [](double x) { return 1 / (1 + std::exp(-x)); };
  const double c = sig(-0.2) * 0.5 + sig(0.1) * std::tanh(0.3);
  CHECK(s.c.item() == doctest::Approx(c).epsilon(1e-14));
  CHECK(s.h.item() == doctest::Approx(sig(0.4) * std::tanh(c)).epsilon(1e-14));
  CHECK_THROWS_AS(lstm_cell(v[1], v[1]), Bug);
}

TEST_CASE("lstm_steps: gradients with and without a first state, with one input and two") {
  for (auto [rows, hidden] : {std::pair<std::size_t, std::size_t>{1, 1}, {3, 2}, {2, 17}})
    for (const std::size_t steps : {1, 2, 4}) {
      const std::vector<Matrix> x{random_matrix(rows, 4 * hidden, 1, -2, 2), random_matrix(rows, 4 * hidden, 2, -2, 2),
                                  random_matrix(4 * hidden, hidden, 3, -0.6, 0.6), random_matrix(rows, hidden, 4),
                                  random_matrix(rows, hidden, 5)};
      const auto both = [](const auto& s) { return concat_columns({s.h, s.c}); };
      expect_gradient([=](auto&, const auto& v) { return both(lstm_steps(v[0], v[1], v[2], {v[3], v[4]}, steps)); }, x);
      expect_gradient([=](auto&, const auto& v) { return lstm_steps(v[0], v[0], v[2], {v[3], v[3]}, steps).h; }, x);
      expect_gradient([=](auto&, const auto& v) { return both(lstm_steps(v[0], v[0], v[2], {}, steps)); }, x);
      expect_gradient([=](auto&, const auto& v) { return lstm_steps(v[0], v[1], v[2], {}, steps).c; }, x);
    }
}

TEST_CASE("lstm_steps equals cells in a row") {
  Tape<double> tape;
  const auto v = place(tape, {random_matrix(2, 12, 1), random_matrix(2, 12, 2), random_matrix(12, 3, 3), random_matrix(2, 3, 4),
                              random_matrix(2, 3, 5)});
  for (const bool starts : {false, true}) {
    const auto zero = tape.constant(2, 3);
    LstmState<double> s = starts ? LstmState<double>{v[3], v[4]} : LstmState<double>{zero, zero};
    const auto all = lstm_steps(v[0], v[1], v[2], starts ? s : LstmState<double>{}, 3);
    for (std::size_t n = 0; n < 3; ++n) {
      s = lstm_cell(add(v[n == 0 ? 0 : 1], linear(s.h, v[2])), s.c);
      for (std::size_t r = 0; r < 2; ++r)
        for (std::size_t j = 0; j < 3; ++j) {
          CHECK(all.h.value()(r * 3 + n, j) == doctest::Approx(s.h.value()(r, j)).epsilon(1e-14));
          CHECK(all.c.value()(r * 3 + n, j) == doctest::Approx(s.c.value()(r, j)).epsilon(1e-14));
        }
    }
  }
  CHECK_THROWS_AS(lstm_steps(v[0], v[1], v[2], {}, 0), Bug);
}

}  // namespace hardgrad::testing::lstm_test
