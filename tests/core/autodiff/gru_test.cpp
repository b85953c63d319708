#include "core/autodiff/recurrent_cells.hpp"

#include "core/autodiff/elementwise.hpp"
#include "core/autodiff/rearrange.hpp"
#include "tests/support/gradient_check.hpp"

namespace hardgrad::testing::gru_test {

TEST_CASE("gru_cell: alone, chained, and with one matrix for both parts of the gates") {
  for (auto [rows, hidden] : {std::pair<std::size_t, std::size_t>{1, 1}, {3, 2}, {2, 16}, {2, 19}}) {
    const std::vector<Matrix> x{random_matrix(rows, 3 * hidden, 1, -2, 2), random_matrix(rows, 3 * hidden, 2, -2, 2),
                                random_matrix(rows, hidden, 3)};
    expect_gradient([](auto&, const auto& v) { return gru_cell(v[0], v[1], v[2]); }, x);
    expect_gradient([](auto&, const auto& v) { return gru_cell(v[0], v[0], v[2]); }, x);
    expect_gradient([](auto&, const auto& v) { return gru_cell(v[0], v[1], gru_cell(v[1], v[0], v[2])); }, x);
    expect_gradient(  // two inputs without a gradient
        [](auto& tape, const auto& v) {
          const auto rows = v[0].rows(), H = v[0].cols() / 3;
          return gru_cell(v[0], tape.constant(rows, 3 * H, {0.4f}), tape.constant(rows, H, {-0.7f}));
        },
        {x[0]});
  }
}

TEST_CASE("gru_cell: the input's part from rows of a table is that of the gathered rows") {
  const std::vector<int> index{2, 0, 2, 1};
  for (const std::size_t hidden : {2, 17}) {
    const std::vector<Matrix> x{random_matrix(3, 3 * hidden, 1, -2, 2), random_matrix(4, 3 * hidden, 2, -2, 2),
                                random_matrix(4, hidden, 3)};
    expect_gradient([&](auto&, const auto& v) { return gru_cell(v[0], v[1], v[2], std::span<const int>(index)); }, x);
    expect_gradient([&](auto&, const auto& v) { return gru_cell(v[1], v[1], v[2], std::span<const int>(index)); }, x);
    Tape<double> tape;
    const auto v = place(tape, x);
    const auto direct = gru_cell(v[0], v[1], v[2], std::span<const int>(index)).value(),
               gathered = gru_cell(gather_rows(v[0], std::span<const int>(index)), v[1], v[2]).value();
    CHECK(std::equal(direct.data, direct.data + direct.size(), gathered.data));
    CHECK_THROWS_AS(gru_cell(v[0], v[1], v[2], std::span<const int>(index).first(3)), Bug);
  }
}

TEST_CASE("gru_cell equals its formula") {
  Tape<double> tape;
  const auto v =
      place(tape, {shaped<double>({1, 3}, {0.1, -0.2, 0.3}), shaped<double>({1, 3}, {0.4, 0.7, -0.6}), Matrix({1, 1}, 0.5)});
  const auto sig = [](double x) { return 1 / (1 + std::exp(-x)); };
  const double r = sig(0.5), z = sig(0.5), n = std::tanh(0.3 - 0.6 * r);
  CHECK(gru_cell(v[0], v[1], v[2]).item() == doctest::Approx((1 - z) * n + z * 0.5).epsilon(1e-14));
  CHECK_THROWS_AS(gru_cell(v[2], v[1], v[2]), Bug);
  CHECK_THROWS_AS(gru_cell(v[0], v[2], v[2]), Bug);
}

}  // namespace hardgrad::testing::gru_test
